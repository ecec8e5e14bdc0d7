"""All names of the Tinker / MinT API in one place, for scripts written against that API.

    import trainer.engine.api as mint

stands where such a script says `import mint` (or `import tinker`); docs/client.md lists what it
finds. The same calls are then computed in this process.
"""

from trainer.engine import types
from trainer.engine.client import SamplingClient, ServiceClient, TrainingClient
from trainer.engine.futures import APIFuture
from trainer.engine.types import (
    AdamParams,
    Datum,
    EncodedTextChunk,
    ForwardBackwardOutput,
    ModelInput,
    OptimStepResponse,
    SampledSequence,
    SampleResponse,
    SamplingParams,
    StopReason,
    TensorData,
)

__all__ = [
    "APIFuture",
    "AdamParams",
    "Datum",
    "EncodedTextChunk",
    "ForwardBackwardOutput",
    "ModelInput",
    "OptimStepResponse",
    "SampleResponse",
    "SampledSequence",
    "SamplingClient",
    "SamplingParams",
    "ServiceClient",
    "StopReason",
    "TensorData",
    "TrainingClient",
    "types",
]
