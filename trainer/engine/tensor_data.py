"""A tensor as plain data, under the name of the Tinker / MinT API.

Nothing here imports torch at module level, so that `trainer.data` can build datums without it.
"""

import sys
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from operator import index
from typing import TYPE_CHECKING, Any, Literal, Self

import numpy as np

if TYPE_CHECKING:
    import torch

DType = Literal["int64", "float32"]


@dataclass(frozen=True, slots=True)
class TensorData:
    """A tensor as plain data.

    Attributes:
        data: The values, flattened in row-major order.
        dtype: "int64" or "float32".
        shape: The shape; None means one dimension.
    """

    data: Sequence[int] | Sequence[float]
    dtype: DType
    shape: Sequence[int] | None = None

    def __post_init__(self) -> None:
        """Freeze lists."""
        object.__setattr__(self, "data", tuple(self.data))
        if self.shape is not None:
            object.__setattr__(self, "shape", tuple(self.shape))

    @classmethod
    def from_list(cls, values: Iterable[Any], dtype: DType) -> Self:
        """Build a one-dimensional tensor from numbers.

        Raises:
            TypeError, ValueError: if a value is no number, or no whole one for int64.
        """
        cast = index if dtype == "int64" else float
        return cls(data=tuple(map(cast, values)), dtype=dtype)

    @classmethod
    def from_numpy(cls, array: "np.ndarray[Any, Any]") -> Self:
        """Copy an array (integer kinds to int64, floating kinds to float32).

        Raises:
            TypeError: if it holds anything else.
        """
        if array.dtype.kind not in "iubf":
            raise TypeError(f"an array of numbers is wanted, not of {array.dtype}")
        dtype: DType = "float32" if array.dtype.kind == "f" else "int64"
        # What is whole stays as it is: an id that int64 cannot hold is refused by its number.
        exact = array.astype(dtype) if dtype == "float32" else array
        return cls(tuple(exact.ravel().tolist()), dtype, array.shape)

    @classmethod
    def from_torch(cls, tensor: "torch.Tensor") -> Self:
        """Copy a torch tensor (integer kinds to int64, floating kinds to float32).

        Raises:
            TypeError: if it holds complex numbers.
        """
        if tensor.is_complex():
            raise TypeError(f"a tensor of numbers is wanted, not of {tensor.dtype}")
        dtype: DType = "float32" if tensor.is_floating_point() else "int64"
        return cls(data=tuple(tensor.flatten().tolist()), dtype=dtype, shape=tuple(tensor.shape))

    def to_torch(self) -> "torch.Tensor":
        """Return a new torch tensor on the CPU."""
        import torch  # noqa: PLC0415 - only the engine's callers need it

        dtype = torch.int64 if self.dtype == "int64" else torch.float32
        tensor = torch.tensor(self.data, dtype=dtype)
        return tensor if self.shape is None else tensor.reshape(self.shape)

    def to_numpy(self) -> "np.ndarray[Any, Any]":
        """Return a new array."""
        array = np.array(self.data, dtype=self.dtype)
        return array if self.shape is None else array.reshape(self.shape)

    def tolist(self) -> list[Any]:
        """Return the values as a list, nested as the shape says."""
        if self.shape is None or len(self.shape) == 1:
            return list(self.data)
        return self.to_numpy().tolist()

    def __len__(self) -> int:
        """Return the number of values."""
        return len(self.data)


def as_tensor_data(value: Any, dtype: DType | None) -> TensorData:
    """Return `TensorData`, an array, a torch tensor or numbers as `TensorData`.

    Args:
        value: What a user put into a datum.
        dtype: The type that a list becomes; None: int64 if all its numbers are whole.

    Raises:
        TypeError, ValueError: if it is none of these.
    """
    if isinstance(value, TensorData):
        return value
    if isinstance(value, np.ndarray):
        return TensorData.from_numpy(value)
    # Who has not imported torch cannot hold a tensor of it.
    torch = sys.modules.get("torch")
    if torch is not None and isinstance(value, torch.Tensor):
        return TensorData.from_torch(value)
    if not isinstance(value, Sequence) or isinstance(value, str | bytes | bytearray):
        raise TypeError(f"a list, array or tensor of numbers is wanted, not {type(value).__name__}")
    if dtype is None:
        dtype = "int64" if all(isinstance(number, int) for number in value) else "float32"
    return TensorData.from_list(value, dtype)
