"""Training runs, their figures, and what they left behind."""

from dataclasses import dataclass
from datetime import datetime
from typing import Any

from db.enums import ArtifactKind, ErrorKind, RunStatus, StopStage


@dataclass(frozen=True, slots=True, kw_only=True)
class Run:
    """A training run as the database knows it.

    Attributes:
        config: The frozen training configuration as JSON data (`trainer.config.TrainConfig`).
        device: "cpu" or "cuda": what it computes on; one run at a time has each of them.
        snapshot_sha256: Hash of `data.jsonl` in the run's folder, the frozen copy of its data.
        attempt: 1 for the first process, one more for each resume.
        claimed_by: The process that is about to start it, while it is `starting`.
        machine: The machine, and which start of it, that `pid` means a process on.
        pid: Process id of the run, with `process_started_at` (as the operating system counts it)
            to tell a reused id from the real one.
        heartbeat_at: When the run last said that it lives.
        stop_stage: How far a stop has gone, None if nobody asked for one; since `stop_stage_at`.
        parent_id: The run whose adapter it started from, deleted or not; None: the base model.
        metric_rows: How many rows of turn metrics were written so far: more than a reader knows
            of means that there is something new.
        progress: Share of the work done, 0 to 1.
        message: What it is doing now, in words.
    """

    id: int
    name: str
    status: RunStatus
    config: dict[str, Any]
    base_model: str
    device: str
    conversations: int
    turns: int
    snapshot_sha256: str
    attempt: int
    claimed_by: str
    machine: str
    pid: int | None
    process_started_at: float | None
    heartbeat_at: datetime | None
    stop_requested_at: datetime | None
    stop_stage: StopStage | None
    stop_stage_at: datetime | None
    progress: float
    message: str
    error_kind: ErrorKind | None
    error_text: str
    created_at: datetime
    started_at: datetime | None
    ended_at: datetime | None
    metric_rows: int
    parent_id: int | None = None


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
        grad_norm: L2 norm of the gradient before clipping; None where an endpoint does not tell it.
        lr: Learning rate used.
        kl: Mean over tokens of the KL estimate to the old policy, in nats.
        kl_base: The same to the base model; None where it was not asked.
        tokens_per_s: Tokens sent through the model, forward and backward, per second.
        memory_bytes: Peak resident memory of the process (CPU) or of the device (CUDA) so far.
        seconds: Wall time of the step.
        attempt: Which attempt of the run took it.
        cpu_percent: How busy the process kept all cores of the machine during the step, 0 to 100;
            None where it was not measured.
        gpu_percent: How much of the time the device was busy, 0 to 100; None without a GPU.
    """

    step: int
    epoch: int
    loss: float
    grad_norm: float | None
    lr: float
    kl: float
    kl_base: float | None
    tokens_per_s: float
    memory_bytes: int
    seconds: float
    attempt: int = 1
    cpu_percent: float | None = None
    gpu_percent: float | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class NewTurnMetrics:
    """Rows of turn metrics behind a mark, and the mark to ask behind next time."""

    rows: tuple[TurnMetric, ...]
    mark: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Artifact:
    """A file or folder that a run left behind; `path` is relative to the run's folder."""

    id: int
    run_id: int
    kind: ArtifactKind
    path: str
    sha256: str
    size_bytes: int
