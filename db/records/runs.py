"""Training runs, their figures, and what they left behind."""

from dataclasses import dataclass
from datetime import datetime
from typing import Any

from db.enums import ArtifactKind, ErrorKind, RunStatus


@dataclass(frozen=True, slots=True, kw_only=True)
class Run:
    """A training run as the database knows it.

    Attributes:
        config: The frozen training configuration as JSON data (`trainer.config.TrainConfig`).
        snapshot_sha256: Hash of `data.jsonl` in the run's folder, the frozen copy of its data.
        attempt: 1 for the first process, one more for each resume.
        pid: Process id of the run, with `process_started_at` (seconds since the epoch as the
            operating system counts them) to tell a reused id from the real one.
        heartbeat_at: When the run last said that it lives.
        progress: Share of the work done, 0 to 1.
        message: What it is doing now, in words.
    """

    id: int
    name: str
    status: RunStatus
    config: dict[str, Any]
    base_model: str
    conversations: int
    turns: int
    snapshot_sha256: str
    attempt: int
    pid: int | None
    process_started_at: float | None
    heartbeat_at: datetime | None
    stop_requested_at: datetime | None
    progress: float
    message: str
    error_kind: ErrorKind | None
    error_text: str
    created_at: datetime
    started_at: datetime | None
    ended_at: datetime | None


@dataclass(frozen=True, slots=True, kw_only=True)
class TurnMetric:
    """What one turn's loss looked like in one optimiser step; means are over response tokens.

    Attributes:
        conversation: Position of the conversation in the run's snapshot, from 0.
        turn: Assistant turn within the conversation, from 0.
        tokens: Length of the turn's model input, in tokens.
        response_tokens: How many of them are trained on.
        reward: The turn's score, None if it has none.
        clipfrac: Share of tokens whose ratio lies outside the clip band, whatever the advantage.
        clipfrac_binding: Share of tokens whose gradient the clip really removes.
        kl_mean: Estimate of KL(old || new), mean of (ratio - 1) - log(ratio), in nats.
        logprob_mean: Mean log-probability of the reply's tokens, in nats.
        kl_base: The same estimate of KL(base || new); None where the base model was not asked.
    """

    epoch: int
    step: int
    conversation: int
    turn: int
    tokens: int
    response_tokens: int
    reward: float | None
    advantage: float
    loss_mean: float
    loss_sum: float
    ratio_mean: float
    clipfrac: float
    clipfrac_binding: float
    kl_mean: float
    logprob_mean: float
    kl_base: float | None


@dataclass(frozen=True, slots=True, kw_only=True)
class StepMetric:
    """One optimiser step.

    Attributes:
        loss: Mean token loss over the step's trained tokens.
        grad_norm: L2 norm of the gradient before clipping.
        lr: Learning rate used.
        kl: Mean over tokens of the KL estimate to the old policy, in nats.
        kl_base: The same to the base model; None where it was not asked.
        tokens_per_s: Tokens sent through the model, forward and backward, per second.
        memory_bytes: Peak resident memory of the process (CPU) or of the device (CUDA) so far.
        seconds: Wall time of the step.
    """

    step: int
    epoch: int
    loss: float
    grad_norm: float
    lr: float
    kl: float
    kl_base: float | None
    tokens_per_s: float
    memory_bytes: int
    seconds: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Artifact:
    """A file or folder that a run left behind; `path` is relative to the run's folder."""

    id: int
    run_id: int
    kind: ArtifactKind
    path: str
    sha256: str
    size_bytes: int
