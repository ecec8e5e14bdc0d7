"""One pass over the next tokens of several sequences, each with its own past and its own adapter."""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, Protocol, cast

import torch
from torch import Tensor, nn
from torch.nn.functional import linear, pad, scaled_dot_product_attention
from transformers import AttentionInterface, AttentionMaskInterface, DynamicCache, PreTrainedModel
from transformers.integrations.sdpa_attention import sdpa_attention_forward
from transformers.masking_utils import sdpa_mask
from transformers.pytorch_utils import Conv1D

from trainer.engine.adapter import block_linears
from trainer.engine.forward import PASSED_ON
from trainer.engine.sharing import agrees, plain_logprobs, probe_sequences, sharing_obstacle
from trainer.serving.rows import AdaptedRows, RowAdapters, Updates
from trainer.serving.stores import CacheStore, RowStore, Store

NAME = "everyturn-rows"
"""What transformers knows this attention by."""

FEW_ROWS = (2, 4, 8)
"""Numbers of rows for which W·Xᵀ is the faster product; others are filled up with zeros."""


@dataclass(frozen=True, slots=True)
class Piece:
    """The next tokens of one sequence.

    Attributes:
        tokens: The tokens, at least one.
        store: What is known of the tokens before them; the pass adds these.
        updates: The adapter that computes them, None for the base model.
    """

    tokens: tuple[int, ...]
    store: Store
    updates: Updates | None = None


class Passes(Protocol):
    """A way to compute pieces."""

    def new_store(self) -> Store:
        """Return an empty store of the kind that this way fills."""
        ...

    def run(self, pieces: Sequence[Piece]) -> Tensor:
        """Return the logits after each piece's last token, shape (P, V) in the model's dtype."""
        ...


@dataclass(frozen=True, slots=True)
class _Span:
    """Where a piece's rows lie in the pass, and what they see.

    Attributes:
        rows: The rows.
        store: Keys and values of the tokens before.
        is_causal: Plain causal attention, nothing before.
        is_visible_QK: bool, True where a row sees a key; None where every row sees all, or for
            plain causal attention.
    """

    rows: slice
    store: RowStore
    is_causal: bool
    is_visible_QK: Tensor | None


class RowPasses:
    """All pieces side by side in one row of tokens; attention keeps them apart.

    Nothing is padded, and a piece of one token lies beside another's whole prompt.
    """

    def __init__(self, model: PreTrainedModel, adapters: RowAdapters) -> None:
        """Use a model whose attention is `NAME`."""
        self._model = model
        self._adapters = adapters

    def new_store(self) -> RowStore:
        """Return an empty store."""
        return RowStore()

    @torch.inference_mode()
    def run(self, pieces: Sequence[Piece]) -> Tensor:
        """Return the logits after each piece's last token, shape (P, V)."""
        order = sorted(range(len(pieces)), key=lambda index: id(pieces[index].updates))
        ordered = [pieces[index] for index in order]
        device = self._model.device
        spans = _spans(ordered, device)
        self._adapters.active = _adapted(ordered, spans)
        try:
            output = self._model(
                input_ids=torch.tensor([[t for piece in ordered for t in piece.tokens]]).to(device),
                position_ids=torch.tensor([[p for piece in ordered for p in _positions(piece)]]).to(
                    device
                ),
                attention_mask=torch.ones(PASSED_ON, dtype=torch.bool, device=device),
                use_cache=False,
                logits_to_keep=torch.tensor([span.rows.stop - 1 for span in spans], device=device),
                spans=spans,
            )
        finally:
            self._adapters.active = ()
        for piece, span in zip(ordered, spans, strict=True):
            span.store.length += len(piece.tokens)
        place = torch.empty(len(order), dtype=torch.int64)
        place[torch.tensor(order)] = torch.arange(len(order))
        return output.logits[0][place.to(device)]


def _positions(piece: Piece) -> range:
    return range(piece.store.length, piece.store.length + len(piece.tokens))


def _spans(pieces: Sequence[Piece], device: torch.device) -> list[_Span]:
    spans: list[_Span] = []
    start = 0
    for piece in pieces:
        stop, past = start + len(piece.tokens), piece.store.length
        is_visible_QK = None
        if len(piece.tokens) > 1 and past:
            query_Q1 = torch.arange(past, past + len(piece.tokens), device=device)[:, None]
            is_visible_QK = torch.arange(past + len(piece.tokens), device=device) <= query_Q1
        spans.append(
            _Span(
                rows=slice(start, stop),
                store=cast(RowStore, piece.store),
                is_causal=len(piece.tokens) > 1 and not past,
                is_visible_QK=is_visible_QK,
            )
        )
        start = stop
    return spans


def _adapted(pieces: Sequence[Piece], spans: Sequence[_Span]) -> list[AdaptedRows]:
    """Return the rows of each adapter; pieces of one adapter are neighbours."""
    adapted: list[AdaptedRows] = []
    for piece, span in zip(pieces, spans, strict=True):
        if piece.updates is None:
            continue
        if adapted and adapted[-1].updates is piece.updates:
            rows = slice(adapted[-1].rows.start, span.rows.stop)
            adapted[-1] = AdaptedRows(rows, piece.updates)
        else:
            adapted.append(AdaptedRows(span.rows, piece.updates))
    return adapted


def _attend(
    module: nn.Module,
    query: Tensor,
    key: Tensor,
    value: Tensor,
    attention_mask: Tensor | None,
    *,
    scaling: float | None = None,
    spans: Sequence[_Span] | None = None,
    **kwargs: Any,
) -> tuple[Tensor, None]:
    """Serve transformers' models: each span over its own past, or their usual SDPA without spans."""
    if spans is None:
        return sdpa_attention_forward(
            module, query, key, value, attention_mask, scaling=scaling, **kwargs
        )
    layer = cast(int, module.layer_idx)
    answers = [_attend_span(layer, query, key, value, scaling, span) for span in spans]
    answer_1HND = answers[0] if len(answers) == 1 else torch.cat(answers, dim=2)
    return answer_1HND.transpose(1, 2).contiguous(), None


def _attend_span(
    layer: int, query: Tensor, key: Tensor, value: Tensor, scale: float | None, span: _Span
) -> Tensor:
    query_1HND = query[:, :, span.rows]
    keys, values = span.store.append(layer, key[:, :, span.rows], value[:, :, span.rows])
    heads, groups = query_1HND.shape[1], keys.shape[1]
    if query_1HND.shape[2] == 1:
        # The query heads of a group see the same keys: they become rows of one small product.
        grouped_1GHD = query_1HND.reshape(1, groups, heads // groups, -1)
        answer = scaled_dot_product_attention(grouped_1GHD, keys, values, scale=scale)
        return answer.reshape(1, heads, 1, -1)
    return scaled_dot_product_attention(
        query_1HND,
        keys,
        values,
        attn_mask=span.is_visible_QK,
        is_causal=span.is_causal,
        scale=scale,
        enable_gqa=heads != groups,
    )


AttentionInterface.register(NAME, _attend)
AttentionMaskInterface.register(NAME, sdpa_mask)


class SinglePasses:
    """One piece after the other, with transformers' own attention and cache: for any other model."""

    def __init__(self, model: PreTrainedModel, adapters: RowAdapters) -> None:
        """Use a model as it was loaded."""
        self._model = model
        self._adapters = adapters

    def new_store(self) -> CacheStore:
        """Return an empty store."""
        return CacheStore(DynamicCache(config=self._model.config))

    @torch.inference_mode()
    def run(self, pieces: Sequence[Piece]) -> Tensor:
        """Return the logits after each piece's last token, shape (P, V)."""
        return torch.stack([self._run(piece) for piece in pieces])

    def _run(self, piece: Piece) -> Tensor:
        store = cast(CacheStore, piece.store)
        if piece.updates is not None:
            self._adapters.active = [AdaptedRows(slice(None), piece.updates)]
        try:
            output = self._model(
                input_ids=torch.tensor([piece.tokens], device=self._model.device),
                cache=store.cache,
                use_cache=True,
                logits_to_keep=1,
            )
        finally:
            self._adapters.active = ()
        store.length += len(piece.tokens)
        return output.logits[0, -1]


def choose_passes(model: PreTrainedModel, adapters: RowAdapters) -> Passes:
    """Return the fastest way to run a model that a trial confirms."""
    if sharing_obstacle(model) is None:
        usual = model.config._attn_implementation
        sequences = probe_sequences(_vocabulary(model))
        expected = plain_logprobs(model, sequences)
        model.set_attn_implementation(NAME)
        rows = RowPasses(model, adapters)
        if agrees(model, expected, lambda: _probe(rows, sequences)):
            return rows
        model.set_attn_implementation(usual or "sdpa")
    return SinglePasses(model, adapters)


def _probe(passes: Passes, sequences: Sequence[Sequence[int]]) -> list[Tensor]:
    """Return the logprobs of the sequences' tokens after the first, all sequences together."""
    stores = [passes.new_store() for _ in sequences]
    found: list[list[Tensor]] = [[] for _ in sequences]
    for place in range(max(map(len, sequences)) - 1):
        going = [index for index, sequence in enumerate(sequences) if place + 1 < len(sequence)]
        logits = passes.run([Piece((sequences[i][place],), stores[i]) for i in going])
        for index, row in zip(going, logits.float().log_softmax(-1), strict=True):
            found[index].append(row[sequences[index][place + 1]])
    return [torch.stack(row) for row in found]


def adaptable_layers(model: PreTrainedModel) -> list[str]:
    """Return the paths of the linear layers inside the model's blocks."""
    names = set(block_linears(model, attention=True, other=True))
    return [
        path
        for path, module in model.named_modules()
        if path.rpartition(".")[2] in names and not list(module.children())
    ]


def in_and_out(layer: nn.Module) -> tuple[int, int]:
    """Return how many values a linear layer takes and gives."""
    if isinstance(layer, nn.Linear):
        return layer.in_features, layer.out_features
    inputs, outputs = cast(Conv1D, layer).weight.shape  # GPT-2's linear layer is laid the other way
    return inputs, outputs


def multiply_few_rows_fast(model: PreTrainedModel) -> None:
    """Let linear layers on a CPU compute W·Xᵀ for the few rows of a step of generation.

    A step multiplies one row for each sequence. With so few, MKL takes X·Wᵀ two to three times as
    long as W·Xᵀ, which reads the weights in the order in which they lie. The
    numbers are the same but for rounding.
    """
    if model.device.type != "cpu" or model.dtype != torch.float32:
        return
    for module in model.modules():
        if isinstance(module, nn.Linear):
            module.forward = partial(_linear, module)


def _linear(layer: nn.Linear, input: Tensor) -> Tensor:
    rows_NI = input.reshape(-1, layer.in_features)
    count = len(rows_NI)
    if not 0 < count <= FEW_ROWS[-1]:
        return linear(input, layer.weight, layer.bias)
    full = next(size for size in FEW_ROWS if count <= size)
    rows_NI = pad(rows_NI, (0, 0, 0, full - count))
    output_NO = torch.mm(layer.weight, rows_NI.T)[:, :count].T.contiguous()
    if layer.bias is not None:
        output_NO += layer.bias
    return output_NO.view(*input.shape[:-1], layer.out_features)


def _vocabulary(model: PreTrainedModel) -> int:
    return cast(nn.Embedding, model.get_input_embeddings()).num_embeddings
