"""An export is loaded again, as whoever takes it would, and must say what the trained model says."""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import cast

import torch
from torch import Tensor, nn
from transformers import PreTrainedModel

from db.settings import Settings
from trainer.choices import Rendering
from trainer.config import TrainConfig
from trainer.data.rendering import render_prompt
from trainer.engine.adapter import read_adapter_shape, read_adapter_tensors
from trainer.engine.policy import Policy
from trainer.engine.sharing import plain_logprobs, probe_sequences
from trainer.errors import CheckpointError, NotFiniteError
from trainer.models import load_tokenizer

EXACT_NATS = 1e-3
"""Largest difference of one token's log-probability where numbers are only computed in another order."""

PROBE = (
    {"role": "user", "content": "How do I make tea?"},
    {"role": "assistant", "content": "Boil some water, pour it over the leaves, and wait."},
    {"role": "user", "content": "And how long must I wait before I can drink it?"},
)


@dataclass(frozen=True, slots=True)
class Reference:
    """What the trained model says of some sequences.

    Attributes:
        sequences: Token ids.
        logprobs: For each the log-probabilities of its tokens after the first.
    """

    sequences: Sequence[Sequence[int]]
    logprobs: Sequence[Tensor]


@dataclass(frozen=True, slots=True)
class Check:
    """How an export compares with the trained model, over the probe's tokens.

    Attributes:
        mean_nats: Mean absolute difference of log-probabilities.
        largest_nats: The largest.
    """

    mean_nats: float
    largest_nats: float

    def __str__(self) -> str:
        """Say it in a sentence."""
        return (
            "Loaded again and compared with the trained model: log-probabilities differ by "
            f"{self.mean_nats:.1e} nats on average, by {self.largest_nats:.1e} at most."
        )


def reference_of(config: TrainConfig, adapter: Path, settings: Settings) -> Reference:
    """Ask the trained model itself, computed by the engine that trained it.

    Raises:
        NotFiniteError: if it says NaN or Inf.
        CheckpointError: if the adapter cannot be read.
    """
    policy = Policy.load(
        settings,
        config.base_model,
        device=torch.device("cpu"),
        shape=read_adapter_shape(adapter),
    )
    policy.set_tensors(read_adapter_tensors(adapter), origin=str(adapter))
    tokenizer = load_tokenizer(settings, config.base_model)
    rendering = Rendering.TEMPLATE if tokenizer.chat_template else Rendering.PLAIN
    text = render_prompt([dict(message) for message in PROBE], tokenizer, rendering)
    vocabulary = cast(nn.Embedding, policy.model.get_input_embeddings()).num_embeddings
    sequences = [text, *probe_sequences(vocabulary)[:1]]
    logprobs = plain_logprobs(policy.model, sequences)
    if not all(bool(each.isfinite().all()) for each in logprobs):
        raise NotFiniteError(
            "the trained model says NaN or Inf, so there is nothing to export",
            where=str(adapter),
            remedy="Lower the learning rate and train again.",
        )
    return Reference(sequences, logprobs)


def compare(
    reference: Reference, load: Callable[[], PreTrainedModel], *, mean_nats: float, where: Path
) -> Check:
    """Load an export and hold it against the trained model.

    Args:
        reference: What the trained model says.
        load: Loads what was written.
        mean_nats: Largest mean difference that the form's precision explains.
        where: What was written, for the message.

    Raises:
        CheckpointError: if it cannot be loaded, or says something else, or NaN.
    """
    try:
        model = load().eval()
        answers = plain_logprobs(model, reference.sequences)
    except (MemoryError, torch.OutOfMemoryError):
        raise
    except Exception as error:  # other libraries read their own formats: any error can come of it
        raise CheckpointError(
            f"what was written cannot be loaded again ({str(error).partition(chr(10))[0]})",
            where=str(where),
            remedy="Nothing was kept. Try another form, and report this.",
        ) from error
    difference = (torch.cat(list(answers)) - torch.cat(list(reference.logprobs))).abs()
    check = Check(float(difference.mean()), float(difference.max()))
    if not math.isfinite(check.mean_nats) or check.mean_nats > mean_nats:
        raise CheckpointError(
            f"loaded again it does not say what the trained model says: log-probabilities differ "
            f"by {check.mean_nats:.3g} nats on average, and {mean_nats:g} would be rounding",
            where=str(where),
            remedy="Nothing was kept. Try another form, and report this.",
        )
    return check
