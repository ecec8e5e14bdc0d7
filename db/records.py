"""The frozen records that enter and leave the database: plain data, no session behind them.

One `Conversation` type serves typed, imported, stored and snapshotted conversations alike: the
`id` fields are None until the database has given them.
"""

from dataclasses import dataclass
from datetime import datetime
from typing import Any, Literal

from db.enums import ArtifactKind, ErrorKind, ReviewState, Role, RunStatus, UserRole

SCORE_MIN, SCORE_MAX = -1.0, 1.0

IMPORTED_RATER = "imported"
"""The rater of scores that arrive without a name."""


@dataclass(frozen=True, slots=True, kw_only=True)
class User:
    """A person who scores or administers."""

    id: int
    name: str
    role: UserRole


@dataclass(frozen=True, slots=True, kw_only=True)
class Score:
    """What one rater said of one assistant turn, or of a whole conversation.

    Attributes:
        rater: Name of the user who scored.
        value: Finite number in [-1, 1]. 0 is a score; no record at all means "not scored".
        note: Free text, may be empty.
        at: When it was last changed (UTC).
    """

    rater: str
    value: float
    note: str = ""
    at: datetime | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Message:
    """One message of a conversation.

    Attributes:
        tool_calls: The calls an assistant message makes, in OpenAI's JSON form.
        tool_call_id: For a tool message: the call it answers.
        scores: One per rater; only assistant messages carry any.
        model: Name of the model that sampled this reply, None if it was typed or imported.
        run_id: Run whose adapter sampled this reply.
        token_ids: Sampled token ids, exactly as the policy emitted them, without the prompt.
        logprobs: Natural-log probability of each of `token_ids` under the sampling policy.
    """

    role: Role
    content: str
    id: int | None = None
    tool_calls: tuple[dict[str, Any], ...] = ()
    tool_call_id: str | None = None
    scores: tuple[Score, ...] = ()
    model: str | None = None
    run_id: int | None = None
    token_ids: tuple[int, ...] | None = None
    logprobs: tuple[float, ...] | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Conversation:
    """A conversation with everything people said about it.

    Attributes:
        system: System prompt; empty if there is none. It is not repeated in `messages`.
        source: Where it came from ("typed", "example:negotiation", "import:file.jsonl", ...).
        outcomes: Scores of the conversation as a whole, one per rater.
    """

    messages: tuple[Message, ...]
    id: int | None = None
    title: str = ""
    system: str = ""
    source: str = ""
    tags: tuple[str, ...] = ()
    outcomes: tuple[Score, ...] = ()
    created_at: datetime | None = None
    updated_at: datetime | None = None
    archived: bool = False

    @property
    def assistant_messages(self) -> tuple[Message, ...]:
        """The turns that can be scored, in order; turn 0 is the first of them."""
        return tuple(m for m in self.messages if m.role is Role.ASSISTANT)


@dataclass(frozen=True, slots=True, kw_only=True)
class ConversationRow:
    """One line of the conversations table.

    Attributes:
        title: The title, or the beginning of the first user message where there is none.
        turns: Number of assistant turns.
        scored_turns: How many of them have at least one score.
        mean_score: Mean over all scores of its turns, None if there are none.
    """

    id: int
    title: str
    turns: int
    scored_turns: int
    mean_score: float | None
    tags: tuple[str, ...]
    source: str
    updated_at: datetime
    archived: bool
    review: ReviewState


ScoredFilter = Literal["any", "none", "partly", "fully"]
ConversationOrder = Literal["newest", "oldest", "title", "least_scored"]


@dataclass(frozen=True, slots=True, kw_only=True)
class ConversationFilter:
    """Which conversations a table or queue shows, and in which order.

    Attributes:
        text: Words to look for, as typed, in title, system prompt and messages; case does not
            matter, and only the first 1000 characters count.
        tags: Only conversations that carry all of these.
        sources: Only conversations from one of these; all if empty.
        scored: How many of its turns have a score by anybody.
        review: The asking user's review state; None for any.
        archived: Whether to show the archived ones instead of the others.
        order: "least_scored" starts with the smallest share of scored turns.
    """

    text: str = ""
    tags: tuple[str, ...] = ()
    sources: tuple[str, ...] = ()
    scored: ScoredFilter = "any"
    review: ReviewState | None = None
    archived: bool = False
    order: ConversationOrder = "newest"


@dataclass(frozen=True, slots=True, kw_only=True)
class Overview:
    """The numbers of the home page, archived conversations left out.

    Attributes:
        scored_turns: How many of the turns have a score by anybody.
        active_runs: Runs that have a process or wait for one.
        adapters: Adapters that runs left behind.
    """

    conversations: int
    turns: int
    scored_turns: int
    runs: int
    active_runs: int
    adapters: int


@dataclass(frozen=True, slots=True, kw_only=True)
class ScoreEvent:
    """One entry of the append-only log of score changes.

    Attributes:
        message_id: The scored turn; None if the conversation as a whole was scored.
        old_value: Value before the change; None if there was no score.
        new_value: Value after the change; None if the score was cleared.
    """

    id: int
    user_id: int
    conversation_id: int
    message_id: int | None
    old_value: float | None
    new_value: float | None
    old_note: str
    new_note: str
    at: datetime


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


@dataclass(frozen=True, slots=True, kw_only=True)
class ImportIssue:
    """Why a row of an imported file was skipped or repaired."""

    row: int
    field: str
    reason: str
    remedy: str


@dataclass(frozen=True, slots=True, kw_only=True)
class ImportReport:
    """What an import did, or (dry run) would do."""

    format: str
    conversations: int
    messages: int
    scores: int
    duplicates: int
    skipped: tuple[ImportIssue, ...] = ()
    warnings: tuple[str, ...] = ()
