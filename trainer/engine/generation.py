"""Sampling replies from a model, with the log-probability of every sampled token."""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import cast

import torch
from torch import Tensor
from transformers import GenerationConfig, PreTrainedModel, PreTrainedTokenizerBase
from transformers.generation.utils import GenerateDecoderOnlyOutput

from trainer.engine.types import SampledSequence, SamplingParams


def end_tokens(model: PreTrainedModel, tokenizer: PreTrainedTokenizerBase) -> tuple[int, ...]:
    """Return the ids that end a reply: the model's own and the tokenizer's."""
    config = model.generation_config
    ids = config.eos_token_id if config is not None else None
    found = list(ids) if isinstance(ids, list) else [ids]
    found.append(tokenizer.eos_token_id)
    return tuple(dict.fromkeys(int(token) for token in found if token is not None))


@torch.no_grad()
def generate(
    model: PreTrainedModel,
    tokenizer: PreTrainedTokenizerBase,
    prompt: Sequence[int],
    params: SamplingParams,
    *,
    num_samples: int,
    stop_ids: Sequence[int],
) -> list[SampledSequence]:
    """Sample continuations of a prompt.

    The log-probabilities are those of the model itself, before temperature, top-k and top-p:
    what training compares with. Temperature 0 takes the likeliest token each time.

    Args:
        model: The model, with or without an adapter inside.
        tokenizer: Needed to find stop strings.
        prompt: Token ids.
        params: How to sample.
        num_samples: How many continuations.
        stop_ids: Tokens that end a reply; the one that was sampled is kept.
    """
    prompt_1T = torch.tensor([list(prompt)], device=model.device)
    with _seeded(params.seed, model.device):
        if params.temperature == 0:
            return _generate(model, tokenizer, prompt_1T, params, 1, stop_ids) * num_samples
        if params.stop:  # a batch would pad the replies that a stop string ended first
            return [
                sequence
                for _ in range(num_samples)
                for sequence in _generate(model, tokenizer, prompt_1T, params, 1, stop_ids)
            ]
        return _generate(model, tokenizer, prompt_1T, params, num_samples, stop_ids)


def _generate(
    model: PreTrainedModel,
    tokenizer: PreTrainedTokenizerBase,
    prompt_1T: Tensor,
    params: SamplingParams,
    num_samples: int,
    stop_ids: Sequence[int],
) -> list[SampledSequence]:
    config = GenerationConfig(
        max_new_tokens=params.max_tokens,
        num_return_sequences=num_samples,
        eos_token_id=list(stop_ids) or None,
        pad_token_id=stop_ids[0] if stop_ids else 0,
        output_logits=True,
        return_dict_in_generate=True,
        do_sample=params.temperature > 0,
    )
    if params.temperature > 0:
        config.temperature = params.temperature
        config.top_k = max(params.top_k, 0)
        config.top_p = params.top_p
    if params.stop:
        config.stop_strings = list(params.stop)
    output = model.generate(  # pyright: ignore[reportCallIssue]
        prompt_1T,
        attention_mask=torch.ones_like(prompt_1T),
        generation_config=config,
        tokenizer=tokenizer,
    )
    result = cast(GenerateDecoderOnlyOutput, output)
    sampled_ST = result.sequences[:, prompt_1T.shape[1] :]
    steps = enumerate(cast(tuple[Tensor, ...], result.logits))
    logprobs_ST = torch.stack(
        [
            logits_SV.float().log_softmax(-1).gather(1, sampled_ST[:, t, None])[:, 0]
            for t, logits_SV in steps
        ],
        dim=1,
    )
    return [
        _cut(tokens, logprobs, params, stop_ids)
        for tokens, logprobs in zip(sampled_ST.tolist(), logprobs_ST.tolist(), strict=True)
    ]


def _cut(
    tokens: list[int], logprobs: list[float], params: SamplingParams, stop_ids: Sequence[int]
) -> SampledSequence:
    """End a reply at its first end token; what follows in a batch is padding."""
    length = next((i + 1 for i, token in enumerate(tokens) if token in stop_ids), len(tokens))
    ended = tokens[length - 1] in stop_ids or length < params.max_tokens
    return SampledSequence(
        tokens=tuple(tokens[:length]),
        logprobs=tuple(logprobs[:length]),
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
