"""Adam on the adapter's parameters, with settings that may change from step to step."""

import math
from collections.abc import Mapping
from dataclasses import asdict
from pathlib import Path

import torch
from safetensors import SafetensorError
from safetensors.torch import load_file, save_file
from torch import Tensor, nn

from trainer.engine.types import AdamParams
from trainer.errors import CheckpointError, ConfigError, NotFiniteError, shortened

STATE_KEYS = ("step", "exp_avg", "exp_avg_sq")

Moments = Mapping[str, Mapping[str, Tensor]]
"""For each parameter that has been trained: its step count and the averages of its gradient and of
that squared, by `STATE_KEYS`."""


class Optimizer:
    """AdamW (Loshchilov & Hutter 2019, arXiv 1711.05101); without weight decay that is Adam."""

    def __init__(self, parameters: dict[str, nn.Parameter]) -> None:
        """Optimise these parameters, known by name; no gradient is accumulated yet."""
        self._parameters = parameters
        self._adam = torch.optim.AdamW(parameters.values())
        self._adam.zero_grad()

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
            ConfigError: if a setting is no number, or outside its range; nothing has changed.
            NotFiniteError: if gradient or weights are NaN or Inf; on a bad gradient no weight
                has changed.
        """
        check_adam_params(params)
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

    def read(self, file: Path) -> Moments:
        """Return what `write` wrote, found to be of these parameters; nothing changes yet.

        Raises:
            CheckpointError: if the file cannot be read, is damaged, or belongs to others.
        """
        try:
            tensors = load_file(file)
        except (OSError, SafetensorError) as error:
            raise CheckpointError(
                f"{file.name} cannot be read ({error})",
                where=str(file.parent),
                remedy="Take a state that was written whole, or load it without the optimiser.",
            ) from error
        trained = {name for name in self._parameters if f"{name}:step" in tensors}
        shapes = {
            f"{name}:{key}": torch.Size() if key == "step" else self._parameters[name].shape
            for name in trained
            for key in STATE_KEYS
        }
        are_good = {key: tensor.shape for key, tensor in tensors.items()} == shapes and all(
            tensor.is_floating_point() and bool(tensor.isfinite().all())
            for tensor in tensors.values()
        )
        if not are_good:
            raise CheckpointError(
                "the optimiser's state is damaged or belongs to another adapter",
                where=str(file.parent),
                remedy="Use the base model and rank it was trained with, or load it without the "
                "optimiser.",
            )
        return {
            name: {key: tensors[f"{name}:{key}"] for key in STATE_KEYS} for name in sorted(trained)
        }

    def set_moments(self, moments: Moments) -> None:
        """Take over what `read` gave, bit by bit, and forget accumulated gradients."""
        self._adam.zero_grad()
        self._adam.state.clear()
        for name, kept in moments.items():
            parameter = self._parameters[name]
            self._adam.state[parameter] = {
                "step": kept["step"],  # Adam keeps its count on the CPU
                "exp_avg": kept["exp_avg"].to(parameter.device),
                "exp_avg_sq": kept["exp_avg_sq"].to(parameter.device),
            }


def check_adam_params(params: AdamParams) -> None:
    """Check what an optimiser step is told.

    Raises:
        ConfigError: naming the first setting that is no number, or outside its range.
    """
    if not isinstance(params, AdamParams):
        raise ConfigError(
            f"it is a {type(params).__name__}",
            where="adam_params",
            remedy="Build it with `AdamParams(learning_rate=...)`.",
        )
    for name, value in asdict(params).items():
        is_number = isinstance(value, int | float) and math.isfinite(value)
        if is_number and value >= 0 and (name not in ("beta1", "beta2") or value < 1):
            continue
        below = " and below 1" if name.startswith("beta") else ""
        raise ConfigError(
            f"{name} is {shortened(repr(value))}",
            where="adam_params",
            remedy=f"Give a finite number, 0 or more{below}.",
        )
