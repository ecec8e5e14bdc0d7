"""Sampling replies from a model, with the log-probability of every sampled token."""

import copy
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import cast

import torch
from torch import Tensor
from transformers import (
    DynamicCache,
    GenerationConfig,
    PreTrainedConfig,
    PreTrainedModel,
    PreTrainedTokenizerBase,
)
from transformers.generation.utils import GenerateDecoderOnlyOutput

from trainer.engine.types import SampledSequence, SamplingParams
from trainer.errors import BadDataError


def end_tokens(model: PreTrainedModel, tokenizer: PreTrainedTokenizerBase) -> tuple[int, ...]:
    """Return the ids that end a reply: the model's own and the tokenizer's."""
    config = model.generation_config
    ids = config.eos_token_id if config is not None else None
    found = list(ids) if isinstance(ids, list) else [ids]
    found.append(tokenizer.eos_token_id)
    return tuple(dict.fromkeys(int(token) for token in found if token is not None))


def most_tokens(config: PreTrainedConfig) -> int | None:
    """Return how many tokens a model sees at once, by its config; None if that does not say."""
    stated = config.get_text_config().to_dict().get("max_position_embeddings")
    return int(stated) if stated else None


@torch.no_grad()
def generate(
    model: PreTrainedModel,
    tokenizer: PreTrainedTokenizerBase,
    prompt: Sequence[int],
    params: SamplingParams,
    *,
    num_samples: int,
    stop_ids: Sequence[int],
    context_tokens: int | None,
) -> list[SampledSequence]:
    """Sample continuations of a prompt, which goes through the model once however many there are.

    The log-probabilities are those of the model itself, before temperature, top-k and top-p:
    what training compares with. Temperature 0 takes the likeliest token each time.

    Args:
        model: The model, with or without an adapter inside.
        tokenizer: Needed to find stop strings.
        prompt: Token ids.
        params: How to sample.
        num_samples: How many continuations.
        stop_ids: Tokens that end a reply; the one that was sampled is kept.
        context_tokens: Most tokens of prompt and reply together; None if the model sets no limit.

    Raises:
        BadDataError: if the prompt leaves no room for a reply, or the room is unknown.
    """
    reply = _Reply(
        model=model,
        tokenizer=tokenizer,
        params=params,
        stop_ids=(*stop_ids, *params.stop_tokens),
        most_tokens=reply_tokens(len(prompt), params.max_tokens, context_tokens),
    )
    prompt_1T = torch.tensor([list(prompt)], device=model.device)
    with _seeded(params.seed, model.device):
        if params.is_greedy:
            return reply.sample(prompt_1T, 1) * num_samples
        read = _read(model, prompt_1T) if num_samples > 1 else None
        if params.stop_strings:  # a batch would pad the replies that a stop string ended first
            return [
                sequence
                for _ in range(num_samples)
                for sequence in reply.sample(prompt_1T, 1, copy.deepcopy(read))
            ]
        if read is not None:
            rows = torch.zeros(num_samples, dtype=torch.int64, device=model.device)
            read.reorder_cache(cast(torch.LongTensor, rows))
        return reply.sample(prompt_1T, num_samples, read)


def reply_tokens(prompt: int, wanted: int | None, context: int | None) -> int:
    """Return how many tokens a reply may have.

    Args:
        prompt: Tokens of the prompt.
        wanted: Most tokens that were asked for; None for as many as there is room for.
        context: Most tokens that the model sees; None if it sets no limit.

    Raises:
        BadDataError: if there is no room, or nothing says how much.
    """
    room = None if context is None else context - prompt
    if not prompt or (room is not None and room < 1):
        raise BadDataError(
            f"a prompt of {prompt} tokens cannot be answered by a model that sees {context}",
            where="prompt",
            remedy="Give it at least one token, and leave room for a reply.",
        )
    limits = [limit for limit in (wanted, room) if limit is not None]
    if not limits:
        raise BadDataError(
            "the model does not say how many tokens it can see",
            where="sampling_params",
            remedy="Set max_tokens.",
        )
    return min(limits)


def _read(model: PreTrainedModel, prompt_1T: Tensor) -> DynamicCache | None:
    """Return what a model keeps of a prompt all but its last token, which starts each reply."""
    if prompt_1T.shape[1] == 1:
        return None
    cache = DynamicCache(config=model.config)
    model(input_ids=prompt_1T[:, :-1], cache=cache, use_cache=True, logits_to_keep=1)
    return cache


@dataclass(frozen=True, slots=True, kw_only=True)
class _Reply:
    """How one request is answered.

    Attributes:
        stop_ids: Tokens that end a reply.
        most_tokens: Most tokens of a reply.
    """

    model: PreTrainedModel
    tokenizer: PreTrainedTokenizerBase
    params: SamplingParams
    stop_ids: Sequence[int]
    most_tokens: int

    def sample(
        self, prompt_1T: Tensor, count: int, read: DynamicCache | None = None
    ) -> list[SampledSequence]:
        """Return `count` replies.

        Args:
            prompt_1T: The whole prompt.
            count: How many replies.
            read: What `_read` gave, once for each reply; it is used up.
        """
        prompt_ST = prompt_1T.expand(count, -1)
        output = self.model.generate(  # pyright: ignore[reportCallIssue]
            prompt_ST,
            attention_mask=torch.ones_like(prompt_ST),
            generation_config=self._config(),
            tokenizer=self.tokenizer,
            **({} if read is None else {"cache": read}),
        )
        result = cast(GenerateDecoderOnlyOutput, output)
        sampled_ST = result.sequences[:, prompt_ST.shape[1] :]
        steps = enumerate(cast(tuple[Tensor, ...], result.logits))
        logprobs_ST = torch.stack(
            [
                logits_SV.float().log_softmax(-1).gather(1, sampled_ST[:, t, None])[:, 0]
                for t, logits_SV in steps
            ],
            dim=1,
        )
        return [
            self._cut(tokens, logprobs)
            for tokens, logprobs in zip(sampled_ST.tolist(), logprobs_ST.tolist(), strict=True)
        ]

    def _config(self) -> GenerationConfig:
        config = GenerationConfig(
            max_new_tokens=self.most_tokens,
            eos_token_id=list(self.stop_ids) or None,
            pad_token_id=self.stop_ids[0] if self.stop_ids else 0,
            output_logits=True,
            return_dict_in_generate=True,
            do_sample=not self.params.is_greedy,
        )
        if not self.params.is_greedy:
            config.temperature = self.params.temperature
            config.top_k = max(self.params.top_k, 0)
            config.top_p = self.params.top_p
        if self.params.stop_strings:
            config.stop_strings = list(self.params.stop_strings)
        return config

    def _cut(self, tokens: list[int], logprobs: list[float]) -> SampledSequence:
        """End a reply at its first end token; what follows in a batch is padding."""
        stops = (i + 1 for i, token in enumerate(tokens) if token in self.stop_ids)
        length = next(stops, len(tokens))
        ended = tokens[length - 1] in self.stop_ids or length < self.most_tokens
        return SampledSequence(
            tokens=tokens[:length],
            logprobs=logprobs[:length],
            stop_reason="stop" if ended else "length",
        )


@contextmanager
def _seeded(seed: int | None, device: torch.device) -> Iterator[None]:
    """Give the block a random state of its own if there is a seed."""
    if seed is None:
        yield
        return
    with torch.random.fork_rng(devices=[device] if device.type == "cuda" else []):
        torch.manual_seed(seed)
        yield
