"""A datum's loss inputs as tensors, with what is missing filled in."""

from dataclasses import dataclass

import torch
from torch import Tensor

from trainer.engine.losses import LossFunction
from trainer.engine.types import Datum
from trainer.errors import BadDataError


@dataclass(frozen=True, slots=True, kw_only=True)
class LossInputs:
    """What a loss needs of one datum; every tensor has shape (T,) and lies on the CPU.

    Attributes:
        targets_T: int64, the token to predict at each position.
        weights_T: float32, what each token's loss is multiplied with.
        advantages_T: float32.
        old_logprobs_T: float32.
        is_trained_T: bool, True where the weight is not 0.
        is_off_policy_T: bool, True where no known policy sampled the target.
        reference_logprobs_T: float32, under the policy that KL is measured to; None if the datum
            has none.
    """

    targets_T: Tensor
    weights_T: Tensor
    advantages_T: Tensor
    old_logprobs_T: Tensor
    is_trained_T: Tensor
    is_off_policy_T: Tensor
    reference_logprobs_T: Tensor | None


def needed_inputs(loss: LossFunction) -> tuple[str, ...]:
    """Return what a datum must hold for a loss."""
    if loss == "cross_entropy":
        return ("target_tokens",)
    return ("target_tokens", "advantages", "logprobs")


def loss_inputs(datum: Datum, loss: LossFunction) -> LossInputs:
    """Return the datum's tensors.

    Missing weights mean 1 where the advantage is not 0 (for `cross_entropy`, which has no
    advantages, 1 everywhere). Missing advantages and old logprobs are only allowed there too.

    Raises:
        BadDataError: if the loss needs an input that the datum lacks.
    """
    given = {key: data.to_torch() for key, data in datum.loss_fn_inputs.items()}
    for key in needed_inputs(loss):
        if key not in given:
            raise BadDataError(f"the loss {loss!r} needs {key!r} in every datum")
    targets_T = given.pop("target_tokens")
    given = {key: values_T.float() for key, values_T in given.items()}
    zeros_T = torch.zeros(targets_T.shape, dtype=torch.float32)
    advantages_T = given.get("advantages", zeros_T)
    if "weights" in given:
        weights_T = given["weights"]
    elif loss == "cross_entropy":
        weights_T = torch.ones_like(zeros_T)
    else:
        weights_T = (advantages_T != 0).float()
    return LossInputs(
        targets_T=targets_T,
        weights_T=weights_T,
        advantages_T=advantages_T,
        old_logprobs_T=given.get("logprobs", zeros_T),
        is_trained_T=weights_T != 0,
        is_off_policy_T=given.get("off_policy", zeros_T) != 0,
        reference_logprobs_T=given.get("reference_logprobs"),
    )
