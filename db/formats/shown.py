"""What a labelling tool showed its annotators: the conversation somewhere in a task's fields."""

from collections.abc import Sequence
from dataclasses import replace
from typing import cast

from db.enums import Role
from db.formats.draft import Piece, RawScore
from db.formats.fields import (
    JsonObject,
    as_object,
    as_text,
    is_object_with,
    join,
    optional_text,
    unfold,
)
from db.formats.messages import make_message, parse_message
from db.formats.prompts import parse_reply, parse_said
from db.formats.result import Notes, RowError

_CHAT_FIELDS = (
    "messages",
    "chat",
    "conversation",
    "conversations",
    "dialogue",
    "dialog",
    "history",
)
_PROMPT_FIELDS = ("prompt", "question", "instruction", "input", "query")
_REPLY_FIELDS = ("response", "answer", "completion", "output", "reply", "generation")
_WHO = ("role", "from", "author", "speaker", "user", "name")
_WHAT = ("content", "value", "text", "message", "utterance")


def find_said(shown: JsonObject, path: str, notes: Notes) -> list[Piece]:
    """Return the messages of the first field that holds a chat, and of a prompt and a reply.

    Raises:
        RowError: if there is neither.
    """
    pieces: list[Piece] = []
    chat = next((key for key in _chat_keys(shown)), None)
    if chat is not None:
        field = join(path, chat)
        entries = cast("list[object]", unfold(shown[chat]))
        pieces += [_entry(e, f"{field}[{i}]", notes) for i, e in enumerate(entries)]
    prompt = next((key for key in _PROMPT_FIELDS if shown.get(key)), None)
    reply = next((key for key in _REPLY_FIELDS if shown.get(key)), None)
    if chat is None and prompt is not None:
        pieces += parse_said(shown[prompt], join(path, prompt), Role.USER, notes)
    if reply is not None and (chat is None or _ends_with_user(pieces)):
        pieces += parse_reply(shown[reply], join(path, reply), notes)
    if not any(piece.message.role is not Role.SYSTEM for piece in pieces):
        raise RowError(
            f"no conversation was found; the fields are {', '.join(map(repr, list(shown)[:6]))}",
            where=path or "row",
            remedy=f"Name one of them {', '.join(_CHAT_FIELDS[:4])}, or prompt and response.",
        )
    return pieces


def system_of(shown: JsonObject, path: str) -> str:
    """Return the system prompt that was shown, empty if there was none."""
    key = "system" if "system" in shown else "system_prompt"
    return optional_text(shown, key, path)


def _chat_keys(shown: JsonObject) -> list[str]:
    """Return the fields that hold lists of messages, those with a usual name first."""
    keys = [key for key in shown if _is_chat(unfold(shown[key]))]
    return sorted(keys, key=lambda key: key.lower() not in _CHAT_FIELDS)


def _is_chat(value: object) -> bool:
    if not isinstance(value, list) or not value:
        return False
    return all(
        any(is_object_with(entry, who) for who in _WHO)
        and any(is_object_with(entry, what) for what in _WHAT)
        for entry in cast("list[object]", value)
    )


def _entry(value: object, path: str, notes: Notes) -> Piece:
    data = as_object(value, path)
    if "role" in data and "content" in data:
        return Piece(parse_message(data, path, notes))
    who = next(key for key in _WHO if key in data)
    what = next(key for key in _WHAT if key in data)
    role = as_text(data[who], join(path, who))
    return Piece(make_message(role, as_text(data[what], join(path, what)), join(path, who), notes))


def _ends_with_user(pieces: Sequence[Piece]) -> bool:
    return bool(pieces) and pieces[-1].message.role is not Role.ASSISTANT


def attach(
    pieces: Sequence[Piece], raws: Sequence[tuple[RawScore, int | None]]
) -> tuple[list[Piece], tuple[RawScore, ...]]:
    """Give each score to what it is about.

    Args:
        pieces: The messages.
        raws: The scores, each with the index of the message that it is about, None if it does
            not say so: then it is about the only reply, or about the whole if there are several.

    Returns:
        The messages with their scores, and the scores of the whole.
    """
    given: dict[int, list[RawScore]] = {}
    outcome: list[RawScore] = []
    replies = [i for i, piece in enumerate(pieces) if piece.message.role is Role.ASSISTANT]
    for raw, index in raws:
        if index in replies:
            given.setdefault(index, []).append(raw)
        elif index is None and len(replies) == 1:
            given.setdefault(replies[0], []).append(raw)
        else:
            outcome.append(raw)
    scored = [replace(p, scores=(*p.scores, *given.get(i, ()))) for i, p in enumerate(pieces)]
    return scored, tuple(outcome)
