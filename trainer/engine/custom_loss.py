"""A loss that a user wrote, as the pass that has its gradient."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

from trainer.engine.types import Datum, ForwardBackwardOutput, TensorData
from trainer.errors import ConfigError

CustomLoss = Callable[[list[Datum], list[Tensor]], tuple[Tensor, dict[str, float]]]
"""Takes the datums and, for each, the log-probabilities of its targets, shape (T,), carrying
gradient; returns a scalar and metrics by name."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Linearised:
    """A loss around the present weights.

    Attributes:
        data: Datums whose cross-entropy has the loss's gradient.
        loss: Its value.
        metrics: What the user measured.
    """

    data: list[Datum]
    loss: float
    metrics: dict[str, float]


def scoring_data(data: Sequence[Datum]) -> list[Datum]:
    """Return datums that ask for the log-probability of every target, whatever its weight."""
    return [_reweighted(datum, [1.0] * datum.model_input.length) for datum in data]


def linearise(
    data: Sequence[Datum], scored: ForwardBackwardOutput, loss_fn: CustomLoss
) -> Linearised:
    """Apply a user's loss to the log-probabilities that a forward pass gave.

    By the chain rule the gradient of a loss C(logprobs) is that of the sum over tokens of
    (dC/dlogprob)·logprob with the factors held fixed, which is the cross-entropy of the same
    tokens under the weights -dC/dlogprob.

    Raises:
        ConfigError: if the loss is not a scalar that depends on the log-probabilities.
    """
    logprobs = [
        outputs["logprobs"].to_torch().requires_grad_() for outputs in scored.loss_fn_outputs
    ]
    with torch.enable_grad():
        loss, metrics = loss_fn(list(data), logprobs)
        if not isinstance(loss, Tensor) or loss.numel() != 1 or not loss.requires_grad:
            raise ConfigError(
                "the loss must be one number, computed from the log-probabilities it is given",
                where="loss_fn",
                remedy="Return a scalar tensor that carries gradient, and a dict of metrics.",
            )
        gradients = torch.autograd.grad(loss.reshape(()), logprobs, allow_unused=True)
    weights = [
        torch.zeros_like(logprobs_T) if gradient_T is None else -gradient_T
        for logprobs_T, gradient_T in zip(logprobs, gradients, strict=True)
    ]
    return Linearised(
        data=[
            _reweighted(datum, weights_T.tolist())
            for datum, weights_T in zip(data, weights, strict=True)
        ],
        loss=float(loss.detach()),
        metrics=dict(metrics),
    )


def _reweighted(datum: Datum, weights: list[float]) -> Datum:
    inputs = {
        "target_tokens": datum.loss_fn_inputs["target_tokens"],
        "weights": TensorData.from_list(weights, "float32"),
    }
    return Datum(datum.model_input, inputs)
