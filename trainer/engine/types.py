"""The values that travel between data and engine, under the names of the Tinker / MinT API.

Nothing here imports torch at module level, so that `trainer.data` can build datums without it.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Literal, Self

if TYPE_CHECKING:
    import torch

DType = Literal["int64", "float32"]

INPUT_DTYPES: dict[str, DType] = {
    "target_tokens": "int64",
    "weights": "float32",
    "advantages": "float32",
    "logprobs": "float32",
    "off_policy": "float32",
    "reference_logprobs": "float32",
}
"""The loss inputs that a datum may carry, each of the model input's length.

`off_policy` is 1 where no known policy sampled the token (the guard's mask), 0 elsewhere;
`reference_logprobs` are those of the policy that KL is measured to, the base model.
"""


@dataclass(frozen=True, slots=True)
class TensorData:
    """A tensor as plain data.

    Attributes:
        data: The values, flattened in row-major order.
        dtype: "int64" or "float32".
        shape: The shape; None means one dimension.
    """

    data: tuple[int, ...] | tuple[float, ...]
    dtype: DType
    shape: tuple[int, ...] | None = None

    @classmethod
    def from_list(cls, values: Sequence[Any], dtype: DType) -> Self:
        """Build a one-dimensional tensor from numbers."""
        cast: type = int if dtype == "int64" else float
        return cls(data=tuple(cast(v) for v in values), dtype=dtype)

    @classmethod
    def from_torch(cls, tensor: "torch.Tensor") -> Self:
        """Copy a torch tensor (integer kinds to int64, floating kinds to float32)."""
        dtype: DType = "float32" if tensor.is_floating_point() else "int64"
        return cls(data=tuple(tensor.flatten().tolist()), dtype=dtype, shape=tuple(tensor.shape))

    def to_torch(self) -> "torch.Tensor":
        """Return a new torch tensor on the CPU."""
        import torch  # noqa: PLC0415 - only the engine's callers need it

        tensor = torch.tensor(self.data, dtype=getattr(torch, self.dtype))
        return tensor if self.shape is None else tensor.reshape(self.shape)

    def tolist(self) -> list[Any]:
        """Return the flattened values as a list."""
        return list(self.data)

    def __len__(self) -> int:
        """Return the number of values."""
        return len(self.data)


@dataclass(frozen=True, slots=True)
class ModelInput:
    """The token ids that go into the model for one datum."""

    tokens: tuple[int, ...]

    @classmethod
    def from_ints(cls, tokens: Sequence[int]) -> Self:
        """Build an input from token ids."""
        return cls(tokens=tuple(tokens))

    def to_ints(self) -> list[int]:
        """Return the token ids."""
        return list(self.tokens)

    @property
    def length(self) -> int:
        """The number of tokens."""
        return len(self.tokens)


@dataclass(frozen=True, slots=True)
class Datum:
    """One training example: a model input and, for each of its positions, what the loss needs.

    Lists in `loss_fn_inputs` are coerced to `TensorData` of the key's dtype.

    Raises:
        ValueError: if a key is unknown, `target_tokens` is missing, or a length differs from
            the input's.
    """

    model_input: ModelInput
    loss_fn_inputs: dict[str, TensorData] = field(default_factory=dict)

    def __post_init__(self) -> None:
        """Coerce and check the loss inputs."""
        coerced: dict[str, TensorData] = {}
        for key, value in self.loss_fn_inputs.items():
            if key not in INPUT_DTYPES:
                raise ValueError(f"unknown loss input {key!r}; known: {', '.join(INPUT_DTYPES)}")
            if not isinstance(value, TensorData):
                value = TensorData.from_list(value, INPUT_DTYPES[key])
            if len(value) != self.model_input.length:
                raise ValueError(
                    f"{key} has {len(value)} values for {self.model_input.length} input tokens"
                )
            coerced[key] = value
        if "target_tokens" not in coerced:
            raise ValueError("a datum needs target_tokens")
        object.__setattr__(self, "loss_fn_inputs", coerced)


@dataclass(frozen=True, slots=True, kw_only=True)
class AdamParams:
    """Adam's settings for one optimiser step, with Tinker's defaults."""

    learning_rate: float = 1e-4
    beta1: float = 0.9
    beta2: float = 0.95
    eps: float = 1e-12
    weight_decay: float = 0.0
    grad_clip_norm: float = 0.0


@dataclass(frozen=True, slots=True, kw_only=True)
class SamplingParams:
    """How to sample. `top_k` -1 and `top_p` 1 switch those filters off; temperature 0 is greedy."""

    max_tokens: int = 64
    seed: int | None = None
    stop: tuple[str, ...] = ()
    temperature: float = 1.0
    top_k: int = -1
    top_p: float = 1.0


@dataclass(frozen=True, slots=True, kw_only=True)
class SampledSequence:
    """One sampled continuation.

    Attributes:
        tokens: The sampled ids, including the end-of-turn token if it was sampled.
        logprobs: Natural-log probability of each token under the untempered policy.
        stop_reason: "stop" (end-of-turn token or stop string) or "length".
    """

    tokens: tuple[int, ...]
    logprobs: tuple[float, ...]
    stop_reason: Literal["stop", "length"]


@dataclass(frozen=True, slots=True, kw_only=True)
class ForwardBackwardOutput:
    """What a forward (and backward) pass returns.

    Attributes:
        loss_fn_output_type: Name of the kind of the entries of `loss_fn_outputs`.
        loss_fn_outputs: For each datum: "logprobs", the log-probability of each target token
            (shape of the input; 0 where the weight is 0).
        metrics: Keys of the form "name:reduction".
    """

    loss_fn_output_type: str
    loss_fn_outputs: list[dict[str, TensorData]]
    metrics: dict[str, float]


@dataclass(frozen=True, slots=True, kw_only=True)
class OptimStepOutput:
    """What an optimiser step returns; "grad_norm:last" is the L2 norm before clipping."""

    metrics: dict[str, float]


@dataclass(frozen=True, slots=True, kw_only=True)
class SampleResponse:
    """What `SamplingClient.sample` returns.

    Attributes:
        sequences: One a sample.
        prompt_logprobs: If asked for: for each prompt token its log-probability, None for the
            first.
    """

    sequences: tuple[SampledSequence, ...]
    prompt_logprobs: tuple[float | None, ...] | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class SaveResponse:
    """Where a save ended up; `path` is what the load calls accept."""

    path: str


@dataclass(frozen=True, slots=True, kw_only=True)
class LoadResponse:
    """What was loaded."""

    path: str
