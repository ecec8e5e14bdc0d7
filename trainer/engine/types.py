"""The values that travel between data and engine, under the names of the Tinker / MinT API.

Nothing here imports torch at module level, so that `trainer.data` can build datums without it.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from operator import index
from typing import Literal, Self

from trainer.engine.responses import (
    ForwardBackwardOutput,
    GetInfoResponse,
    GetServerCapabilitiesResponse,
    LoadWeightsResponse,
    ModelData,
    OptimStepResponse,
    SampledSequence,
    SampleResponse,
    SaveWeightsForSamplerResponse,
    SaveWeightsResponse,
    StopReason,
    SupportedModel,
)
from trainer.engine.tensor_data import DType, TensorData, as_tensor_data
from trainer.errors import BadDataError

__all__ = [
    "AdamParams",
    "Datum",
    "EncodedTextChunk",
    "ForwardBackwardOutput",
    "GetInfoResponse",
    "GetServerCapabilitiesResponse",
    "LoadWeightsResponse",
    "LossFnType",
    "ModelData",
    "ModelInput",
    "OptimStepResponse",
    "SampleResponse",
    "SampledSequence",
    "SamplingParams",
    "SaveWeightsForSamplerResponse",
    "SaveWeightsResponse",
    "StopReason",
    "SupportedModel",
    "TensorData",
]

LossFnType = Literal["cross_entropy", "importance_sampling", "ppo", "cispo", "dro"]

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
class EncodedTextChunk:
    """A piece of a model input."""

    tokens: Sequence[int]
    type: Literal["encoded_text"] = "encoded_text"

    @property
    def length(self) -> int:
        """The number of tokens."""
        return len(self.tokens)


@dataclass(frozen=True, slots=True, init=False)
class ModelInput:
    """The token ids that go into the model for one datum or prompt."""

    tokens: tuple[int, ...]

    def __init__(
        self, tokens: Iterable[int] = (), *, chunks: Iterable[EncodedTextChunk] = ()
    ) -> None:
        """Join token ids, or chunks of them.

        Raises:
            TypeError: if an id is no whole number.
        """
        ids = [*map(index, tokens), *(index(token) for chunk in chunks for token in chunk.tokens)]
        object.__setattr__(self, "tokens", tuple(ids))

    @classmethod
    def from_ints(cls, tokens: Iterable[int]) -> Self:
        """Build an input from token ids."""
        return cls(tokens)

    @classmethod
    def empty(cls) -> Self:
        """Return an input without tokens, to append to."""
        return cls()

    @property
    def chunks(self) -> list[EncodedTextChunk]:
        """The tokens as one chunk; none if there are no tokens."""
        return [EncodedTextChunk(self.tokens)] if self.tokens else []

    def append(self, chunk: EncodedTextChunk) -> Self:
        """Return a new input with a chunk behind this one's tokens."""
        return type(self)((*self.tokens, *chunk.tokens))

    def append_int(self, token: int) -> Self:
        """Return a new input with one more token."""
        return type(self)((*self.tokens, token))

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

    Lists, arrays and torch tensors in `loss_fn_inputs` become `TensorData`, lists of the key's
    dtype. Whether a loss can do with them is checked by the pass that uses them.

    Raises:
        BadDataError: if a value holds something that is no number.
    """

    model_input: ModelInput
    loss_fn_inputs: dict[str, TensorData] = field(default_factory=dict)

    def __post_init__(self) -> None:
        """Coerce the loss inputs."""
        coerced: dict[str, TensorData] = {}
        for key, value in self.loss_fn_inputs.items():
            try:
                coerced[key] = as_tensor_data(value, INPUT_DTYPES.get(key))
            except (TypeError, ValueError) as error:
                raise BadDataError(
                    f"what it holds are not the numbers that it takes ({error})",
                    where=f"a datum's field {key!r}",
                    remedy="Give one number for each token of the model input.",
                ) from error
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
    """How to sample.

    Attributes:
        max_tokens: Most tokens of a reply; None: as many as the model's context has room for.
        seed: Fixes what is sampled; None draws anew.
        stop: A string, strings or token ids that end a reply beside the end-of-turn tokens.
        temperature: 0, or next to it, takes the likeliest token each time.
        top_k: So many of the likeliest tokens are drawn from; -1: all.
        top_p: The fewest likeliest tokens that reach this probability are drawn from; 1: all.
    """

    max_tokens: int | None = None
    seed: int | None = None
    stop: str | Sequence[str] | Sequence[int] | None = ()
    temperature: float = 1.0
    top_k: int = -1
    top_p: float = 1.0

    @property
    def is_greedy(self) -> bool:
        """Whether each token is the likeliest one: fp32 logits can't be divided by much less."""
        return self.temperature < 1e-5

    @property
    def stop_strings(self) -> tuple[str, ...]:
        """The strings among `stop`."""
        given = (self.stop,) if isinstance(self.stop, str) else self.stop or ()
        return tuple(one for one in given if isinstance(one, str))

    @property
    def stop_tokens(self) -> tuple[int, ...]:
        """The token ids among `stop`."""
        return tuple(one for one in self.stop or () if not isinstance(one, str))
