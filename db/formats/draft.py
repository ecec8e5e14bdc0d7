"""A conversation on its way in: what was said, and scores that no rule has been applied to yet."""

import hashlib
import json
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from datetime import datetime

from db.enums import Role
from db.formats.fields import JsonObject, join
from db.formats.guessing import guess_scale
from db.formats.messages import lift_system, parse_message, require_messages
from db.formats.result import Notes, RowError
from db.formats.scales import Scale, ScoreRule, ScoreTarget
from db.formats.values import UntrustedError
from db.records import IMPORTED_RATER, Conversation, Message, Score
from db.scoring import REMEDY
from db.text import clean, clean_json


@dataclass(frozen=True, slots=True, kw_only=True)
class RawScore:
    """A score as the file has it.

    Attributes:
        name: Its kind, which a rule speaks of ("helpfulness").
        value: The value, of whatever type.
        field: Where it stands in the row.
        siblings: For ranks: how many replies were ranked.
        doubt: Why it should not be trusted, whatever its scale; empty if there is no reason.
    """

    name: str
    value: object
    field: str
    rater: str = IMPORTED_RATER
    note: str = ""
    at: datetime | None = None
    siblings: int = 1
    doubt: str = ""


@dataclass(frozen=True, slots=True)
class Piece:
    """A message with its raw scores."""

    message: Message
    scores: tuple[RawScore, ...] = ()


@dataclass(frozen=True, slots=True)
class Draft:
    """A conversation whose raw scores wait for a rule.

    Attributes:
        scores: Raw scores of each message that has any, by its index; None is the whole.
    """

    conversation: Conversation
    scores: tuple[tuple[int | None, tuple[RawScore, ...]], ...] = ()


def draft(
    pieces: Sequence[Piece],
    *,
    path: str,
    system: str = "",
    tools: tuple[JsonObject, ...] = (),
    title: str = "",
    group: str = "",
    tags: tuple[str, ...] = (),
    outcome: tuple[RawScore, ...] = (),
) -> Draft:
    """Make a draft of messages; a leading system message becomes the system prompt.

    Args:
        pieces: The messages in order.
        path: The field they come from, for the error.
        system: The system prompt, if it stands apart.
        tools: The functions that the assistant may call.
        title: The conversation's title.
        group: Key of the prompt that it shares with others.
        tags: The conversation's tags.
        outcome: Raw scores of the conversation as a whole.

    Raises:
        RowError: if there is no message.
    """
    system, messages = lift_system([piece.message for piece in pieces], system)
    lifted = len(pieces) - len(messages)
    conversation = Conversation(
        messages=require_messages(messages, path or "row"),
        system=system,
        tools=tools,
        title=title,
        group=group,
        tags=tags,
    )
    scores: list[tuple[int | None, tuple[RawScore, ...]]] = [
        (index, piece.scores) for index, piece in enumerate(pieces[lifted:]) if piece.scores
    ]
    if outcome:
        scores.append((None, outcome))
    return Draft(conversation, tuple(scores))


def parse_piece(data: JsonObject, path: str, notes: Notes) -> Piece:
    """Read a message in OpenAI's shape, and `"score": 0.5` beside it; null is no score.

    Raises:
        RowError: naming the field.
    """
    message = parse_message(data, path, notes)
    return Piece(message, short_score(data, message.role, path))


def short_score(data: JsonObject, role: Role, path: str) -> tuple[RawScore, ...]:
    """Read the short form of one score, by whoever scored the file.

    Raises:
        RowError: if the message is no reply.
    """
    if data.get("score") is None:
        return ()
    field = join(path, "score")
    if role is not Role.ASSISTANT:
        raise RowError(
            f"a {role} message carries a score",
            where=field,
            remedy="Only replies of the assistant are scored.",
        )
    return (RawScore(name="score", value=data["score"], field=field),)


def group_key(messages: Iterable[Message], tools: tuple[JsonObject, ...] = ()) -> str:
    """Return the key of the group of all conversations that begin like this.

    It depends on the words and the tools alone, so that the same prompt has the same key in every
    file.
    """
    said: list[object] = [""]
    said += [[m.role.value, clean(m.content), clean_json(m.tool_calls)] for m in messages]
    if tools:
        said.append({"tools": clean_json(tools)})
    text = json.dumps(said, sort_keys=True, separators=(",", ":"))
    return hashlib.sha256(text.encode()).hexdigest()[:16]


def scored(item: Draft, rule: ScoreRule, notes: Notes) -> Conversation:
    """Apply the rule: return the conversation with its scores; what is not trusted is left out.

    Raises:
        RowError: if a value that is read as it is lies outside the product's scale.
    """
    if not item.scores:
        return item.conversation
    conversation = item.conversation
    last_reply = max(
        (i for i, m in enumerate(conversation.messages) if m.role is Role.ASSISTANT), default=None
    )
    values: dict[tuple[int | None, str], list[tuple[float, RawScore]]] = {}
    for index, raws in item.scores:
        for raw in raws:
            scale = rule.scale(raw.name) or guess_scale(raw.name, ())
            value = _value(raw, scale, notes) if scale.used else None
            if value is None:
                continue
            place = _place(index, scale.target, last_reply)
            if place is not None and conversation.messages[place].role is not Role.ASSISTANT:
                notes.flag(raw.field, "only replies of the assistant are scored", "Leave it out.")
                continue
            values.setdefault((place, clean(raw.rater)), []).append((value, raw))
    return _with_scores(conversation, values)


def _value(raw: RawScore, scale: Scale, notes: Notes) -> float | None:
    try:
        value = scale.value(raw.value, raw.siblings)
    except UntrustedError as error:
        if scale.is_identity:  # the product's own scale: the file is wrong, not the rule
            raise RowError(
                str(error), where=raw.field, remedy=f"{REMEDY} Or map another scale to it."
            ) from None
        notes.flag(
            raw.field,
            f"{error}: the score was left out",
            f"Correct it, or the scale of {raw.name!r} (now: {scale.words}).",
        )
        return None
    if value is not None and raw.doubt:
        notes.flag(raw.field, f"{raw.doubt}: the score was left out", "Score the reply yourself.")
        return None
    return value


def _place(index: int | None, target: ScoreTarget, last_reply: int | None) -> int | None:
    match target:
        case ScoreTarget.AS_FILE:
            return index
        case ScoreTarget.CONVERSATION:
            return None
        case ScoreTarget.LAST_REPLY:
            return last_reply


def _with_scores(
    conversation: Conversation,
    values: dict[tuple[int | None, str], list[tuple[float, RawScore]]],
) -> Conversation:
    scores: dict[int | None, list[Score]] = {}
    for (place, rater), entries in values.items():
        mean = sum(value for value, _ in entries) / len(entries)
        scores.setdefault(place, []).append(
            Score(
                rater=rater if rater.strip() else IMPORTED_RATER,
                value=entries[0][0] if len(entries) == 1 else mean,
                note="; ".join(dict.fromkeys(raw.note for _, raw in entries if raw.note)),
                at=next((raw.at for _, raw in entries if raw.at is not None), None),
            )
        )
    return replace(
        conversation,
        messages=tuple(
            replace(message, scores=tuple(scores[index])) if index in scores else message
            for index, message in enumerate(conversation.messages)
        ),
        outcomes=tuple(scores.get(None, ())),
    )
