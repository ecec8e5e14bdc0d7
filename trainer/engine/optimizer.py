"""Adam on the adapter's parameters, with settings that may change from step to step."""

import math
from pathlib import Path

import torch
from safetensors import SafetensorError
from safetensors.torch import load_file, save_file
from torch import Tensor, nn

from trainer.engine.types import AdamParams
from trainer.errors import CheckpointError, NotFiniteError

STATE_KEYS = ("step", "exp_avg", "exp_avg_sq")


class Optimizer:
    """AdamW (Loshchilov & Hutter 2019, arXiv 1711.05101); without weight decay that is Adam."""

    def __init__(self, parameters: dict[str, nn.Parameter]) -> None:
        """Optimise these parameters, known by name."""
        self._parameters = parameters
        self._adam = torch.optim.AdamW(parameters.values())

    def add_gradients(self, gradients: dict[str, Tensor]) -> None:
        """Add to the gradients that the next step will use."""
        for name, gradient in gradients.items():
            parameter = self._parameters[name]
            parameter.grad = gradient if parameter.grad is None else parameter.grad + gradient

    def step(self, params: AdamParams) -> float:
        """Take a step along the accumulated gradients, then forget them.

        Returns:
            The L2 norm of the gradient before clipping.

        Raises:
            NotFiniteError: if gradient or weights are NaN or Inf; on a bad gradient no weight
                has changed.
        """
        gradients = [p.grad for p in self._parameters.values() if p.grad is not None]
        norm = torch.nn.utils.get_total_norm(gradients)
        if not math.isfinite(float(norm)):
            self._adam.zero_grad()
            raise NotFiniteError(
                "the gradient is not a finite number",
                where="optimiser step",
                remedy="Lower the learning rate, or look for scores and old log-probabilities "
                "that are far from all others.",
            )
        if params.grad_clip_norm > 0:
            torch.nn.utils.clip_grads_with_norm_(
                self._parameters.values(), params.grad_clip_norm, norm
            )
        for group in self._adam.param_groups:
            group["lr"] = params.learning_rate
            group["betas"] = (params.beta1, params.beta2)
            group["eps"] = params.eps
            group["weight_decay"] = params.weight_decay
        self._adam.step()
        self._adam.zero_grad()
        if not all(bool(parameter.isfinite().all()) for parameter in self._parameters.values()):
            raise NotFiniteError(
                "the adapter's weights are no longer finite numbers",
                where="optimiser step",
                remedy="Lower the learning rate and go on from the last checkpoint.",
            )
        return float(norm)

    def write(self, file: Path) -> None:
        """Write Adam's moments and step counts as safetensors; gradients are not part of it."""
        tensors: dict[str, Tensor] = {}
        for name, parameter in self._parameters.items():
            state = self._adam.state.get(parameter, {})
            for key in STATE_KEYS & state.keys():
                tensors[f"{name}:{key}"] = state[key].detach().cpu().contiguous()
        save_file(tensors, file)

    def read(self, file: Path) -> None:
        """Take over what `write` wrote, bit by bit, and forget accumulated gradients.

        Raises:
            CheckpointError: if the file cannot be read or belongs to other parameters.
        """
        try:
            tensors = load_file(file)
        except (OSError, SafetensorError) as error:
            raise CheckpointError(
                f"{file.name} cannot be read ({error})", where=str(file.parent)
            ) from error
        known = {f"{name}:{key}" for name in self._parameters for key in STATE_KEYS}
        if tensors.keys() - known:
            raise CheckpointError(
                "the optimiser's state belongs to another adapter",
                where=str(file.parent),
                remedy="Use the base model and rank it was trained with.",
            )
        self._adam.zero_grad()
        self._adam.state.clear()
        for name, parameter in self._parameters.items():
            if f"{name}:step" in tensors:
                self._adam.state[parameter] = {
                    "step": tensors[f"{name}:step"],  # Adam keeps its count on the CPU
                    "exp_avg": tensors[f"{name}:exp_avg"].to(parameter.device),
                    "exp_avg_sq": tensors[f"{name}:exp_avg_sq"].to(parameter.device),
                }
