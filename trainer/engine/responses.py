"""What the calls of the training API give back, under the names of the Tinker / MinT API."""

from dataclasses import dataclass, field
from typing import Literal

from trainer.engine.tensor_data import TensorData

StopReason = Literal["stop", "length"]


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
    metrics: dict[str, float] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class OptimStepResponse:
    """What an optimiser step returns; "grad_norm:last" is the L2 norm before clipping."""

    metrics: dict[str, float]


@dataclass(frozen=True, slots=True, kw_only=True)
class SampledSequence:
    """One sampled continuation.

    Attributes:
        tokens: The sampled ids, including the end-of-turn token if it was sampled.
        logprobs: Natural-log probability of each token under the untempered policy.
        stop_reason: "stop" (end-of-turn token, stop token or stop string) or "length".
    """

    tokens: list[int]
    logprobs: list[float]
    stop_reason: StopReason


@dataclass(frozen=True, slots=True, kw_only=True)
class SampleResponse:
    """What `SamplingClient.sample` returns.

    Attributes:
        sequences: One a sample.
        prompt_logprobs: If asked for: for each prompt token its log-probability, None for the
            first.
    """

    sequences: list[SampledSequence]
    prompt_logprobs: list[float | None] | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class SaveWeightsResponse:
    """Where a state was saved; `path` is what the load calls accept."""

    path: str
    type: Literal["save_weights"] = "save_weights"


@dataclass(frozen=True, slots=True, kw_only=True)
class SaveWeightsForSamplerResponse:
    """Where an adapter was saved; `path` is what `create_sampling_client` accepts."""

    path: str
    type: Literal["save_weights_for_sampler"] = "save_weights_for_sampler"


@dataclass(frozen=True, slots=True, kw_only=True)
class LoadWeightsResponse:
    """What was loaded."""

    path: str
    type: Literal["load_weights"] = "load_weights"


@dataclass(frozen=True, slots=True, kw_only=True)
class ModelData:
    """What is known of the base model.

    Attributes:
        arch: The architecture, as its config names it.
        model_name: The name the client was created with.
        tokenizer_id: Where the tokenizer comes from; the same name.
    """

    arch: str
    model_name: str
    tokenizer_id: str


@dataclass(frozen=True, slots=True, kw_only=True)
class GetInfoResponse:
    """What a training client trains.

    Attributes:
        model_data: The base model.
        model_id: Tells this client's adapter from those of others in this process.
        is_lora: Always True.
        lora_rank: The adapter's rank.
        model_name: The base model's name.
        type: What kind of answer this is.
    """

    model_data: ModelData
    model_id: str
    is_lora: bool
    lora_rank: int
    model_name: str
    type: Literal["get_info"] = "get_info"


@dataclass(frozen=True, slots=True, kw_only=True)
class SupportedModel:
    """A base model that can be trained.

    Attributes:
        model_name: Its name.
        max_context_length: Most tokens it can see; None if it is not on this machine yet.
    """

    model_name: str
    max_context_length: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class GetServerCapabilitiesResponse:
    """The base models that can be trained."""

    supported_models: list[SupportedModel]
