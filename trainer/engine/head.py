"""Log-probabilities of chosen tokens from hidden states, without keeping full-vocabulary logits.

A vocabulary has 50,000 to 250,000 entries: fp32 logits of a thousand positions fill a gigabyte,
and their gradient another. Here a few hundred positions are projected at a time. Since each
log-probability depends on one hidden state only, its derivative is a row of the same size: it is
computed while the logits are at hand, and kept in their place.
"""

from collections.abc import Callable

import torch
from torch import Tensor

CHUNK_POSITIONS = 256

Head = Callable[[Tensor], Tensor]
"""Hidden states (P, H) to logits (P, V), each row on its own; its weights are frozen."""


def chosen_logprobs(logits_PV: Tensor, targets_P: Tensor) -> Tensor:
    """Return log softmax of each row at its target, fp32, shape (P,)."""
    logits_PV = logits_PV.float()
    chosen_P = logits_PV.gather(1, targets_P[:, None])[:, 0]
    return chosen_P - logits_PV.logsumexp(dim=1)


def head_logprobs(head: Head, hidden_PH: Tensor, targets_P: Tensor) -> Tensor:
    """Return the log-probability of each target token.

    Args:
        head: The output head.
        hidden_PH: Hidden states that enter the head; carries gradient.
        targets_P: int64, the token to score at each position.

    Returns:
        fp32 tensor of shape (P,), differentiable once with respect to `hidden_PH`.
    """
    if torch.is_grad_enabled() and hidden_PH.requires_grad:
        return _HeadLogprobs.apply(hidden_PH, targets_P, head)  # pyright: ignore[reportReturnType]
    chunks = zip(hidden_PH.split(CHUNK_POSITIONS), targets_P.split(CHUNK_POSITIONS), strict=True)
    return torch.cat([chosen_logprobs(head(hidden), targets) for hidden, targets in chunks])


class _HeadLogprobs(torch.autograd.Function):
    """`head_logprobs` with the derivative taken chunk by chunk during the forward pass."""

    @staticmethod
    def forward(ctx, hidden_PH: Tensor, targets_P: Tensor, head: Head) -> Tensor:
        logprobs: list[Tensor] = []
        derivatives: list[Tensor] = []
        chunks = zip(
            hidden_PH.split(CHUNK_POSITIONS), targets_P.split(CHUNK_POSITIONS), strict=True
        )
        for hidden, targets in chunks:
            with torch.enable_grad():
                leaf = hidden.detach().requires_grad_()
                chunk_P = chosen_logprobs(head(leaf), targets)
                (derivative,) = torch.autograd.grad(chunk_P.sum(), leaf)
            logprobs.append(chunk_P.detach())
            derivatives.append(derivative)
        ctx.save_for_backward(torch.cat(derivatives))
        return torch.cat(logprobs)

    @staticmethod
    def backward(ctx, grad_P: Tensor) -> tuple[Tensor, None, None]:  # pyright: ignore[reportIncompatibleMethodOverride]
        (derivative_PH,) = ctx.saved_tensors
        return (grad_P[:, None] * derivative_PH).to(derivative_PH.dtype), None, None
