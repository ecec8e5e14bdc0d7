"""From one row of logits to the next token, with the log-probability that training compares with."""

from collections.abc import Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

from trainer.engine.types import SamplingParams
from trainer.errors import NotFiniteError

LIKELIEST = 512
"""So many of the likeliest tokens are looked at first: top-p seldom needs more."""


@dataclass(frozen=True, slots=True)
class Sampled:
    """A token that was chosen.

    Attributes:
        token: Its id.
        logprob: Its log-probability under the untempered policy, natural logarithm.
        likeliest: The likeliest tokens with theirs, as many as were asked for.
    """

    token: int
    logprob: float
    likeliest: tuple[tuple[int, float], ...] = ()


def choose(
    logits_V: Tensor, params: SamplingParams, generator: torch.Generator, *, likeliest: int = 0
) -> Sampled:
    """Return the next token.

    Args:
        logits_V: fp32 on the CPU.
        params: Temperature, top-p and top-k; temperature 0, or next to it, takes the likeliest token.
        generator: The sequence's own dice, so that its neighbours do not change what it says.
        likeliest: How many of the likeliest tokens to report.

    Raises:
        NotFiniteError: if the logits are NaN or Inf.
    """
    logprobs_V = logits_V.log_softmax(-1)
    if not torch.isfinite(logprobs_V.amax()):
        raise NotFiniteError(
            "the model computes NaN or Inf",
            where="logits",
            remedy="Don't use this adapter; lower the learning rate and train again.",
        )
    token = _draw(logits_V, params, generator)
    best: tuple[tuple[int, float], ...] = ()
    if likeliest:
        values, ids = logprobs_V.topk(likeliest)
        best = tuple(zip(ids.tolist(), values.tolist(), strict=True))
    return Sampled(token, float(logprobs_V[token]), best)


def generators(seed: int | None, count: int) -> list[torch.Generator]:
    """Return one source of randomness for each choice of a request, all following from its seed."""
    root = torch.Generator()
    if seed is None:
        root.seed()
    else:
        root.manual_seed(seed)
    seeds: Sequence[int] = torch.randint(2**62, (count,), generator=root).tolist()
    return [torch.Generator().manual_seed(child) for child in seeds]


def _draw(logits_V: Tensor, params: SamplingParams, generator: torch.Generator) -> int:
    if params.is_greedy:
        return int(logits_V.argmax())
    tempered_V = logits_V / params.temperature
    if params.top_k > 0:
        values, ids = tempered_V.topk(min(params.top_k, len(tempered_V)))
        return int(ids[_of_nucleus(values.softmax(-1), params.top_p, generator)])
    probabilities_V = tempered_V.softmax(-1)
    if params.top_p >= 1:
        return _pick(probabilities_V, generator)
    values, ids = probabilities_V.topk(min(LIKELIEST, len(probabilities_V)))
    if values.sum() < params.top_p:
        values, ids = probabilities_V.sort(descending=True)
    return int(ids[_of_nucleus(values, params.top_p, generator)])


def _of_nucleus(sorted_V: Tensor, top_p: float, generator: torch.Generator) -> int:
    """Pick among the fewest likeliest tokens that reach `top_p` (Holtzman et al. 2020, 1904.09751)."""
    before_V = sorted_V.cumsum(-1, dtype=torch.float64) - sorted_V
    return _pick(torch.where(before_V < top_p, sorted_V, 0.0), generator)


def _pick(weights_V: Tensor, generator: torch.Generator) -> int:
    """Pick an index with a probability in proportion to its weight, which may not be 0."""
    total_V = weights_V.cumsum(-1, dtype=torch.float64)
    place = torch.rand((), dtype=torch.float64, generator=generator) * total_V[-1]
    index = int(torch.searchsorted(total_V, place, right=True))
    return index if index < len(weights_V) else int(weights_V.argmax())  # rounded up to the total
