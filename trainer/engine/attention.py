"""Attention over a prefix tree that does not compute what the tree hides.

A node sees itself and its ancestors. In depth-first order those are j <= i < end[j], so a block of
neighbouring nodes needs the keys of the block and of the path that leads to it, and no others: not
the branches in between, not the other conversations of the pass, not what comes later.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor
from torch.nn.functional import scaled_dot_product_attention
from transformers import AttentionInterface, AttentionMaskInterface
from transformers.integrations.sdpa_attention import sdpa_attention_forward
from transformers.masking_utils import sdpa_mask

from trainer.engine.prefix_tree import PrefixTree

NAME = "everyturn"
"""What transformers knows this attention by."""

BLOCK_NODES = 256
"""A block computes some pairs that its mask then removes: at most this many for each node."""


@dataclass(frozen=True, slots=True)
class Block:
    """Neighbouring nodes that are computed together, and the keys that they may see.

    Attributes:
        start: First node.
        stop: One past the last node.
        key_spans: Spans of nodes, in order, that hold every key some node of the block sees.
        hidden_QK: Added to the scores: 0 where the node (row) sees the key (column), -inf where
            it does not. None for plain causal attention of the block over itself.
    """

    start: int
    stop: int
    key_spans: tuple[slice, ...]
    hidden_QK: Tensor | None

    def keys(self, tensor_1HND: Tensor) -> Tensor:
        """Return the rows of the visible keys, without a copy where they lie side by side."""
        parts = [tensor_1HND[:, :, span] for span in self.key_spans]
        return parts[0] if len(parts) == 1 else torch.cat(parts, dim=2)

    def add_to_keys(self, target_1HND: Tensor, part_1HKD: Tensor) -> None:
        """Add a gradient for the visible keys to where those keys lie."""
        place = 0
        for span in self.key_spans:
            count = span.stop - span.start
            target_1HND[:, :, span] += part_1HKD[:, :, place : place + count]
            place += count


def attention_blocks(
    tree: PrefixTree, *, dtype: torch.dtype, device: torch.device
) -> tuple[Block, ...]:
    """Return the blocks of a tree, which together cover its nodes in order.

    A sequence without branches that is longer than a block is one block of plain causal attention;
    short sequences share a block.
    """
    return tuple(
        Block(start, stop, (slice(start, stop),), None)
        if is_causal
        else _masked_block(tree, start, stop, dtype, device)
        for start, stop, is_causal in _spans(tree)
    )


def _spans(tree: PrefixTree) -> list[tuple[int, int, bool]]:
    """Return (start, stop, whether plain causal) of each block."""
    spans: list[tuple[int, int, bool]] = []
    open_from: int | None = None
    root = 0
    while root < len(tree):
        stop = tree.end[root]
        is_chain = all(end == stop for end in tree.end[root:stop])
        alone = is_chain and stop - root > BLOCK_NODES
        if open_from is not None and (alone or stop - open_from > BLOCK_NODES):
            spans.append((open_from, root, False))
            open_from = None
        if alone:
            spans.append((root, stop, True))
        elif stop - root > BLOCK_NODES:
            starts = range(root, stop, BLOCK_NODES)
            spans += [(start, min(start + BLOCK_NODES, stop), False) for start in starts]
        elif open_from is None:
            open_from = root
        root = stop
    if open_from is not None:
        spans.append((open_from, len(tree), False))
    if len(spans) == 1 and tree.is_chain:
        return [(0, len(tree), True)]
    return spans


def _masked_block(
    tree: PrefixTree, start: int, stop: int, dtype: torch.dtype, device: torch.device
) -> Block:
    path = [node for node in range(start) if tree.end[node] > start]
    spans = _join([*path, *range(start, stop)])
    key_K = torch.cat([torch.arange(span.start, span.stop) for span in spans])
    end_K = torch.tensor(tree.end)[key_K]
    node_Q = torch.arange(start, stop)[:, None]
    is_visible_QK = (key_K <= node_Q) & (node_Q < end_K)
    hidden_QK = torch.zeros(is_visible_QK.shape, dtype=dtype)
    hidden_QK.masked_fill_(~is_visible_QK, -torch.inf)
    return Block(start, stop, spans, hidden_QK.to(device))


def _join(nodes: Sequence[int]) -> tuple[slice, ...]:
    """Return ascending numbers as spans of neighbours."""
    spans: list[slice] = []
    first = before = nodes[0]
    for node in nodes[1:]:
        if node != before + 1:
            spans.append(slice(first, before + 1))
            first = node
        before = node
    return (*spans, slice(first, before + 1))


def attend(
    query_1HND: Tensor, key_1GND: Tensor, value_1GND: Tensor, blocks: Sequence[Block], scale: float
) -> Tensor:
    """Return softmax(scale · Q Kᵀ over visible keys) V, shape (1, H, N, D), differentiable.

    Args:
        query_1HND: Queries of all nodes.
        key_1GND: Keys; a group of neighbouring query heads shares each of the G heads.
        value_1GND: Values, likewise.
        blocks: From `attention_blocks`.
        scale: What the scores are multiplied with.
    """
    if query_1HND.device.type == "cpu":
        return _BlockAttention.apply(query_1HND, key_1GND, value_1GND, blocks, scale)  # pyright: ignore[reportReturnType]
    return attend_by_autograd(query_1HND, key_1GND, value_1GND, blocks, scale)


def attend_by_autograd(
    query_1HND: Tensor, key_1GND: Tensor, value_1GND: Tensor, blocks: Sequence[Block], scale: float
) -> Tensor:
    """Return what `attend` does, on any device, its derivative left to autograd."""
    heads = query_1HND.shape[1]
    key_1HND, value_1HND = _for_all_heads(key_1GND, heads), _for_all_heads(value_1GND, heads)
    return torch.cat(
        [
            scaled_dot_product_attention(
                query_1HND[:, :, block.start : block.stop],
                block.keys(key_1HND),
                block.keys(value_1HND),
                attn_mask=block.hidden_QK,
                is_causal=block.hidden_QK is None,
                scale=scale,
            )
            for block in blocks
        ],
        dim=2,
    )


class _BlockAttention(torch.autograd.Function):
    """`attend` on a CPU, by torch's own flash kernel.

    Left to autograd, each block's gradient for its keys would be padded to all keys before it is
    added up, which costs more than the attention.
    """

    @staticmethod
    def forward(
        ctx: Any, query: Tensor, key: Tensor, value: Tensor, blocks: Sequence[Block], scale: float
    ) -> Tensor:
        heads = query.shape[1]
        grouped_key, grouped_value = key, value
        key, value = _for_all_heads(key, heads), _for_all_heads(value, heads)
        answers: list[Tensor] = []
        normalisers: list[Tensor] = []
        for block in blocks:
            answer, normaliser = torch.ops.aten._scaled_dot_product_flash_attention_for_cpu(
                query[:, :, block.start : block.stop],
                block.keys(key),
                block.keys(value),
                0.0,
                block.hidden_QK is None,
                attn_mask=block.hidden_QK,
                scale=scale,
            )
            answers.append(answer)
            normalisers.append(normaliser)
        ctx.blocks, ctx.scale = blocks, scale
        answer = answers[0] if len(blocks) == 1 else torch.cat(answers, dim=2)
        ctx.save_for_backward(query, grouped_key, grouped_value, answer, *normalisers)
        return answer

    @staticmethod
    def backward(ctx: Any, grad: Tensor) -> tuple[Tensor | None, ...]:  # pyright: ignore[reportIncompatibleMethodOverride]
        query, key, value, answer, *normalisers = ctx.saved_tensors
        heads, groups = query.shape[1], key.shape[1]
        key, value = _for_all_heads(key, heads), _for_all_heads(value, heads)

        def through(block: Block, normaliser: Tensor) -> tuple[Tensor, Tensor, Tensor]:
            return torch.ops.aten._scaled_dot_product_flash_attention_for_cpu_backward(
                grad[:, :, block.start : block.stop],
                query[:, :, block.start : block.stop],
                block.keys(key),
                block.keys(value),
                answer[:, :, block.start : block.stop],
                normaliser,
                0.0,
                block.hidden_QK is None,
                attn_mask=block.hidden_QK,
                scale=ctx.scale,
            )

        if len(ctx.blocks) == 1:
            grad_query, grad_key, grad_value = through(ctx.blocks[0], normalisers[0])
        else:
            grad_key, grad_value = torch.zeros_like(key), torch.zeros_like(value)
            grads_query: list[Tensor] = []
            for block, normaliser in zip(ctx.blocks, normalisers, strict=True):
                of_query, of_key, of_value = through(block, normaliser)
                grads_query.append(of_query)
                block.add_to_keys(grad_key, of_key)
                block.add_to_keys(grad_value, of_value)
            grad_query = torch.cat(grads_query, dim=2)
        return grad_query, _of_groups(grad_key, groups), _of_groups(grad_value, groups), None, None


def _for_all_heads(tensor_1GND: Tensor, heads: int) -> Tensor:
    """Repeat the keys or values of grouped-query attention, so that each query head has its own."""
    groups = tensor_1GND.shape[1]
    return tensor_1GND if groups == heads else tensor_1GND.repeat_interleave(heads // groups, dim=1)


def _of_groups(grad_1HND: Tensor, groups: int) -> Tensor:
    """Add up the gradients of the query heads that share a key or value."""
    heads = grad_1HND.shape[1]
    return grad_1HND if groups == heads else grad_1HND.unflatten(1, (groups, -1)).sum(dim=2)


def _attention_of_transformers(
    module: torch.nn.Module,
    query: Tensor,
    key: Tensor,
    value: Tensor,
    attention_mask: Tensor | None,
    *,
    scaling: float | None = None,
    blocks: Sequence[Block] | None = None,
    **kwargs: Any,
) -> tuple[Tensor, None]:
    """Serve transformers' models: `attend` where a pass brings blocks, else their usual SDPA."""
    if blocks is None:
        return sdpa_attention_forward(
            module, query, key, value, attention_mask, scaling=scaling, **kwargs
        )
    scale = query.shape[-1] ** -0.5 if scaling is None else scaling
    answer_1HND = attend(query, key, value, blocks, scale)
    return answer_1HND.transpose(1, 2).contiguous(), None


AttentionInterface.register(NAME, _attention_of_transformers)
AttentionMaskInterface.register(NAME, sdpa_mask)
