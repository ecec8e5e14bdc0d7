"""A conversation with everything people said about it."""

from dataclasses import dataclass
from datetime import datetime
from typing import Any

from db.enums import Role

SCORE_MIN, SCORE_MAX = -1.0, 1.0

IMPORTED_RATER = "imported"
"""The rater of scores that arrive without a name."""


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
        adjudicated: The score that was decided where raters disagreed; its rater is who decided.
        model: Name of the model that sampled this reply, None if it was typed or imported.
        run_id: Run whose adapter sampled this reply.
        token_ids: Sampled token ids, exactly as the policy emitted them, without the prompt.
        logprobs: Natural-log probability of each of `token_ids` under the sampling policy.
        sampling: How it was sampled, such as {"temperature": 1.0, "top_p": 1.0, "seed": 7}.
    """

    role: Role
    content: str
    id: int | None = None
    tool_calls: tuple[dict[str, Any], ...] = ()
    tool_call_id: str | None = None
    scores: tuple[Score, ...] = ()
    adjudicated: Score | None = None
    model: str | None = None
    run_id: int | None = None
    token_ids: tuple[int, ...] | None = None
    logprobs: tuple[float, ...] | None = None
    sampling: dict[str, Any] | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Conversation:
    """A conversation with everything people said about it.

    Attributes:
        system: System prompt; empty if there is none. It is not repeated in `messages`.
        tools: The functions that the assistant may call, in OpenAI's JSON form.
        source: Where it came from ("typed", "example:negotiation", "import:file.jsonl", ...).
        group: Key of the prompt that it answers together with other conversations (branches of a
            tree, the two sides of a preference pair); empty if it stands alone.
        outcomes: Scores of the conversation as a whole, one per rater.
    """

    messages: tuple[Message, ...]
    id: int | None = None
    title: str = ""
    system: str = ""
    tools: tuple[dict[str, Any], ...] = ()
    source: str = ""
    group: str = ""
    tags: tuple[str, ...] = ()
    outcomes: tuple[Score, ...] = ()
    created_at: datetime | None = None
    updated_at: datetime | None = None
    archived: bool = False

    @property
    def assistant_messages(self) -> tuple[Message, ...]:
        """The turns that can be scored, in order; turn 0 is the first of them."""
        return tuple(m for m in self.messages if m.role is Role.ASSISTANT)
