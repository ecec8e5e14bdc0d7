"""Our datums, parameters and answers as the SDK's, and back."""

from collections.abc import Sequence
from typing import Any

from tinker import types as sdk

from trainer.engine.types import (
    AdamParams,
    Datum,
    ForwardBackwardOutput,
    ModelInput,
    SampledSequence,
    SampleResponse,
    SamplingParams,
    TensorData,
)

RL_FIELDS = ("target_tokens", "logprobs", "advantages")


def scored_datum(datum: Datum) -> sdk.Datum:
    """Return a datum for `cross_entropy`: targets and weights."""
    inputs = datum.loss_fn_inputs
    weights = inputs["weights"].data if "weights" in inputs else [1.0] * datum.model_input.length
    return _datum(datum, target_tokens=inputs["target_tokens"].data, weights=weights)


def advantage_datum(datum: Datum) -> sdk.Datum:
    """Return a datum for the losses with advantages.

    Each weight is folded into its advantage: these losses grow with the advantage in proportion,
    and not every endpoint takes weights beside them.
    """
    inputs = datum.loss_fn_inputs
    advantages = inputs["advantages"].data
    if "weights" in inputs:
        pairs = zip(advantages, inputs["weights"].data, strict=True)
        advantages = [advantage * weight for advantage, weight in pairs]
    return _datum(
        datum,
        target_tokens=inputs["target_tokens"].data,
        logprobs=inputs["logprobs"].data,
        advantages=advantages,
    )


def linear_datum(datum: Datum, logprobs: Sequence[float]) -> sdk.Datum:
    """Return a datum for `importance_sampling` with the gradient of its weighted cross-entropy.

    Around the present log-probabilities the ratio is 1, and the advantages stand where the weights
    would. Not every endpoint sums a cross-entropy: SkyRL divides it by the sum of its weights, which
    in a loss of our own may be 0 or less.
    """
    inputs = datum.loss_fn_inputs
    return _datum(
        datum,
        target_tokens=inputs["target_tokens"].data,
        logprobs=logprobs,
        advantages=inputs["weights"].data,
    )


def _datum(datum: Datum, **fields: Sequence[Any]) -> sdk.Datum:
    inputs = {
        name: sdk.TensorData(
            data=list(values),
            dtype="int64" if name == "target_tokens" else "float32",
            shape=[len(values)],
        )
        for name, values in fields.items()
    }
    return sdk.Datum(model_input=prompt(datum.model_input), loss_fn_inputs=inputs)


def prompt(tokens: ModelInput) -> sdk.ModelInput:
    """Return a model input."""
    return sdk.ModelInput.from_ints(tokens.to_ints())


def output(answer: Any) -> ForwardBackwardOutput:
    """Return what a pass gave."""
    return ForwardBackwardOutput(
        loss_fn_output_type=answer.loss_fn_output_type,
        loss_fn_outputs=[
            {"logprobs": TensorData.from_list(one["logprobs"].data, "float32")}
            for one in answer.loss_fn_outputs
        ],
        metrics=dict(answer.metrics),
    )


def adam(params: AdamParams) -> sdk.AdamParams:
    """Return the optimiser's settings."""
    return sdk.AdamParams(
        learning_rate=params.learning_rate,
        beta1=params.beta1,
        beta2=params.beta2,
        eps=params.eps,
        weight_decay=params.weight_decay,
        grad_clip_norm=params.grad_clip_norm,
    )


def sampling(params: SamplingParams) -> sdk.SamplingParams:
    """Return the settings of sampling."""
    return sdk.SamplingParams(
        max_tokens=params.max_tokens,
        seed=params.seed,
        stop=params.stop or None,
        temperature=params.temperature,
        top_k=params.top_k,
        top_p=params.top_p,
    )


def sampled(answer: Any) -> SampleResponse:
    """Return what was sampled."""
    return SampleResponse(
        sequences=[
            SampledSequence(
                tokens=list(one.tokens),
                logprobs=list(one.logprobs or []),
                stop_reason=one.stop_reason,
            )
            for one in answer.sequences
        ],
        prompt_logprobs=list(answer.prompt_logprobs) if answer.prompt_logprobs else None,
    )
