"""A conversation that is being written: plain data that survives reruns until it is saved."""

from dataclasses import dataclass, field, replace
from uuid import uuid4

from db.enums import Role
from db.errors import DataError
from db.records import SCORE_MAX, SCORE_MIN, Conversation, Message


@dataclass(frozen=True, slots=True, kw_only=True)
class DraftMessage:
    """One message of a draft.

    Attributes:
        uid: Names its widgets while it moves up and down.
        stored: The message as the database has it; None for a new one.
        value: The score the writer gave; None if the turn is not scored.
    """

    role: Role
    content: str = ""
    value: float | None = None
    uid: str = field(default_factory=lambda: uuid4().hex[:8])
    stored: Message | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Draft:
    """Everything the editor holds.

    Attributes:
        conversation_id: The conversation that is edited; None for a new one.
        at: Index of the message that was added or moved last: its page is the one to show.
        stored: The conversation as the database has it; None for a new one.
    """

    conversation_id: int | None = None
    title: str = ""
    system: str = ""
    tags: tuple[str, ...] = ()
    messages: tuple[DraftMessage, ...] = ()
    at: int = 0
    stored: Conversation | None = None


def new_draft() -> Draft:
    """Return a draft that begins the way most conversations do."""
    opening = (DraftMessage(role=Role.USER), DraftMessage(role=Role.ASSISTANT))
    return Draft(messages=opening)


def draft_of(conversation: Conversation, rater: str) -> Draft:
    """Return a draft of a stored conversation, with the scores of this rater."""
    return Draft(
        conversation_id=conversation.id,
        title=conversation.title,
        system=conversation.system,
        tags=conversation.tags,
        messages=tuple(
            DraftMessage(
                role=message.role,
                content=message.content,
                value=next((s.value for s in message.scores if s.rater == rater), None),
                stored=message,
            )
            for message in conversation.messages
        ),
        stored=conversation,
    )


def with_message_below(draft: Draft, index: int) -> Draft:
    """Add an empty message after `index` (-1: at the top); its role answers the one above."""
    above = draft.messages[index].role if index >= 0 else None
    role = Role.ASSISTANT if above in (Role.USER, Role.TOOL) else Role.USER
    messages = list(draft.messages)
    messages.insert(index + 1, DraftMessage(role=role))
    return replace(draft, messages=tuple(messages), at=index + 1)


def with_move(draft: Draft, index: int, by: int) -> Draft:
    """Move message `index` up (-1) or down (+1)."""
    messages = list(draft.messages)
    messages.insert(index + by, messages.pop(index))
    return replace(draft, messages=tuple(messages), at=index + by)


def without_message(draft: Draft, index: int) -> Draft:
    """Take message `index` out."""
    messages = draft.messages[:index] + draft.messages[index + 1 :]
    return replace(draft, messages=messages, at=max(0, min(index, len(messages) - 1)))


def conversation_from(draft: Draft) -> Conversation:
    """Return the conversation a draft describes, with the scores the database already has.

    Raises:
        DataError: if there is no message, an empty one, or a score out of range.
    """
    if not draft.messages:
        raise DataError("the conversation has no message", remedy="Add at least one message.")
    for number, message in enumerate(draft.messages, start=1):
        calls = message.stored.tool_calls if message.stored else ()
        if not message.content.strip() and not calls:
            raise DataError(
                f"message {number} ({message.role}) is empty",
                remedy="Write something there, or delete the message.",
            )
        low = lowest_score(message)
        value = message.value if message.role is Role.ASSISTANT else None
        if value is not None and not low <= value <= SCORE_MAX:
            raise DataError(
                f"the score of message {number} is {value:g}",
                remedy=f"Give a number from {low:g} to {SCORE_MAX:g}, or leave it empty.",
            )
    base = draft.stored or Conversation(messages=(), source="typed")
    return replace(
        base,
        title=draft.title.strip(),
        system=draft.system.strip(),
        tags=draft.tags,
        messages=tuple(_message(message) for message in draft.messages),
    )


def lowest_score(message: DraftMessage) -> float:
    """Return the lower end of the scale: 0, or -1 where somebody has scored below 0."""
    scores = message.stored.scores if message.stored else ()
    return SCORE_MIN if any(score.value < 0 for score in scores) else 0.0


def _message(draft: DraftMessage) -> Message:
    if draft.stored is None:
        return Message(role=draft.role, content=draft.content)
    stored = replace(draft.stored, role=draft.role, content=draft.content)
    if stored == draft.stored:
        return stored
    # Another text is no longer what a model sampled, and only assistant turns carry scores.
    if stored.role is not Role.ASSISTANT:
        stored = replace(stored, scores=(), adjudicated=None)
    return replace(stored, model=None, run_id=None, token_ids=None, logprobs=None, sampling=None)
