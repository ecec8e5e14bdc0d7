"""Low-rank updates on some rows of a pass: several adapters at once over one copy of the base."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from torch import Tensor, nn
from transformers import PreTrainedModel


@dataclass(frozen=True, slots=True, eq=False)
class Update:
    """The low-rank update of one layer: y += scale · (x Aᵀ) Bᵀ (Hu et al. 2021, arXiv 2106.09685).

    Attributes:
        down_IR: Aᵀ, shape (in, rank).
        up_RO: Bᵀ, shape (rank, out).
        scale: What the update is multiplied with.
    """

    down_IR: Tensor
    up_RO: Tensor
    scale: float

    def add_to(self, output_NO: Tensor, input_NI: Tensor) -> None:
        """Add the update to a layer's output in place."""
        low_NR = input_NI.to(self.down_IR.dtype) @ self.down_IR
        if output_NO.dtype == self.up_RO.dtype:
            output_NO.addmm_(low_NR, self.up_RO, alpha=self.scale)
        else:
            output_NO.add_((low_NR @ self.up_RO * self.scale).to(output_NO.dtype))


Updates = Mapping[str, Update]
"""An adapter's updates by the path of the layer in the base model."""


@dataclass(frozen=True, slots=True)
class AdaptedRows:
    """Neighbouring rows of a pass that one adapter changes; the rows of no such span are the base's."""

    rows: slice
    updates: Updates


class RowAdapters:
    """Lets a base model's linear layers add updates to the rows that ask for them.

    The weights are never touched, so that rows without an adapter are those of the base model.
    """

    def __init__(self, model: PreTrainedModel, layers: Sequence[str]) -> None:
        """Watch these layers of a model; until `active` is set nothing changes."""
        self.active: Sequence[AdaptedRows] = ()
        for path in layers:
            model.get_submodule(path).register_forward_hook(self._hook(path))

    def _hook(self, path: str) -> Any:
        def add_updates(_: nn.Module, inputs: tuple[Tensor, ...], output: Tensor) -> None:
            for span in self.active:
                update = span.updates.get(path)
                if update is not None:
                    rows_NO = output.view(-1, output.shape[-1])[span.rows]
                    update.add_to(rows_NO, inputs[0].reshape(-1, inputs[0].shape[-1])[span.rows])

        return add_updates
