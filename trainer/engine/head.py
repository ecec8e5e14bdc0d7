"""Log-probabilities of chosen tokens from hidden states, without keeping full-vocabulary logits.

A vocabulary has 50,000 to 250,000 entries: fp32 logits of a thousand positions fill a gigabyte,
and their gradient another. Here a few hundred positions are projected at a time into one buffer,
which the next pass uses again: memory that is new costs as much as the product that fills it.
Since each log-probability depends on one hidden state only, its derivative is a row of the same
size: it is computed while the logits are at hand, and kept in their place.
"""

from collections.abc import Iterator
from typing import Any, TypeGuard

import torch
from torch import Tensor, nn
from torch.nn.functional import pad

CHUNK_POSITIONS = 512

LEAST_ROWS = 4
"""A product of fewer rows adds a vocabulary up entry by entry (MKL): 4e-5 off instead of 2e-7."""


def chosen_logprobs(logits_PV: Tensor, targets_P: Tensor) -> Tensor:
    """Return log softmax of each row at its target, fp32, shape (P,)."""
    logits_PV = logits_PV.float()
    chosen_P = logits_PV.gather(1, targets_P[:, None])[:, 0]
    return chosen_P - logits_PV.logsumexp(dim=1)


def is_plain_head(head: object) -> TypeGuard[nn.Linear]:
    """Return whether a head is a matrix product and nothing else, as `Head` needs it."""
    return type(head) is nn.Linear and head.bias is None


class Head:
    """A model's output head with the buffer for its logits; one pass at a time."""

    def __init__(self, linear: nn.Linear) -> None:
        """Take a head with frozen weights and without bias."""
        self._weight_VH = linear.weight
        self._buffer_CV = linear.weight.new_empty(0, len(linear.weight))

    def logprobs(self, hidden_PH: Tensor, targets_P: Tensor) -> Tensor:
        """Return the log-probability of each target token.

        Args:
            hidden_PH: Hidden states that enter the head; carries gradient.
            targets_P: int64, the token to score at each position.

        Returns:
            fp32 tensor of shape (P,), differentiable once with respect to `hidden_PH`.
        """
        rows = min(CHUNK_POSITIONS, len(hidden_PH))
        if rows > len(self._buffer_CV):
            self._buffer_CV = self._buffer_CV.new_empty(rows, len(self._weight_VH))
        return _HeadLogprobs.apply(hidden_PH, targets_P, self._weight_VH, self._buffer_CV)  # pyright: ignore[reportReturnType]


class _HeadLogprobs(torch.autograd.Function):
    """log p of the targets; the derivative, W[target] − Σ p_v W[v], is taken chunk by chunk."""

    @staticmethod
    def forward(
        ctx: Any, hidden_PH: Tensor, targets_P: Tensor, weight_VH: Tensor, buffer_CV: Tensor
    ) -> Tensor:
        logprobs_P = torch.empty(len(hidden_PH), dtype=torch.float32, device=hidden_PH.device)
        derivative_PH = torch.empty_like(hidden_PH) if ctx.needs_input_grad[0] else None
        chunks = _projected(hidden_PH, targets_P, weight_VH, buffer_CV, logprobs_P)
        for chunk, probabilities_CV in chunks:
            if derivative_PH is not None:
                chosen_CH = weight_VH[targets_P[chunk]]
                derivative_PH[chunk] = chosen_CH.sub_(_expected(probabilities_CV, weight_VH))
        ctx.save_for_backward(derivative_PH)
        return logprobs_P

    @staticmethod
    def backward(ctx: Any, grad_P: Tensor) -> tuple[Tensor, None, None, None]:  # pyright: ignore[reportIncompatibleMethodOverride]
        (derivative_PH,) = ctx.saved_tensors
        return (grad_P[:, None] * derivative_PH).to(derivative_PH.dtype), None, None, None


def _expected(probabilities_CV: Tensor, weight_VH: Tensor) -> Tensor:
    """Return Σ p_v W[v] of each row, shape (C, H)."""
    rows = len(probabilities_CV)
    padded_CV = pad(probabilities_CV, (0, 0, 0, max(0, LEAST_ROWS - rows)))
    return (padded_CV.to(weight_VH.dtype) @ weight_VH)[:rows]


def _projected(
    hidden_PH: Tensor, targets_P: Tensor, weight_VH: Tensor, buffer_CV: Tensor, logprobs_P: Tensor
) -> Iterator[tuple[slice, Tensor]]:
    """Fill `logprobs_P` chunk by chunk; yield each chunk and its rows' probabilities, fp32."""
    for start in range(0, len(hidden_PH), CHUNK_POSITIONS):
        chunk = slice(start, min(start + CHUNK_POSITIONS, len(hidden_PH)))
        logits_CV = buffer_CV[: chunk.stop - start]
        torch.mm(hidden_PH[chunk], weight_VH.T, out=logits_CV)
        logits_CV = logits_CV.float()
        highest_C = logits_CV.amax(dim=1)
        chosen_C = logits_CV.gather(1, targets_P[chunk, None])[:, 0]
        # In place: a second buffer of this size costs more than the exponentials.
        probabilities_CV = torch.softmax(logits_CV, dim=1, out=logits_CV)
        # The likeliest token has p >= 1 / V, so that its logarithm is exact enough; then
        # logsumexp = highest logit − its log p.
        logsumexp_C = highest_C - probabilities_CV.amax(dim=1).log()
        logprobs_P[chunk] = chosen_C - logsumexp_C
        yield chunk, probabilities_CV
