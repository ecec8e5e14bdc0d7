"""Prompts and replies in the shapes that data sets have: text, one message, or a list of them."""

import re
from collections.abc import Sequence
from typing import cast

from db.enums import Role
from db.formats.draft import Piece
from db.formats.fields import JsonObject, as_text, is_object_with, unfold
from db.formats.openai import parse_pieces
from db.formats.result import Notes, RowError
from db.records import Message

PROMPT_KEYS = ("messages", "prompt", "conversation", "question", "instruction", "input")
_SPEAKER = re.compile(r"(?:^|\n\n)(Human|Assistant):")


def prompt_key(data: JsonObject) -> str | None:
    """Return the name of the field that holds a row's prompt."""
    return next((key for key in PROMPT_KEYS if data.get(key) is not None), None)


def has_prompt(data: JsonObject) -> bool:
    """Return whether a row has a field that holds a prompt."""
    return prompt_key(data) is not None


def parse_prompt(data: JsonObject, notes: Notes) -> list[Piece]:
    """Read a row's prompt; none is an empty list. A `system` text beside it comes first.

    Raises:
        RowError: naming the field.
    """
    key = prompt_key(data)
    pieces = [] if key is None else parse_said(data[key], key, Role.USER, notes)
    system = data.get("system")
    if system is None or system == "":
        return pieces
    message = Message(role=Role.SYSTEM, content=as_text(system, "system"))
    if pieces and pieces[0].message == message:
        return pieces
    return [Piece(message), *pieces]


def parse_said(value: object, path: str, role: Role, notes: Notes) -> list[Piece]:
    """Read what somebody said: text (by `role`, or a transcript), a message, or messages.

    Raises:
        RowError: naming the field.
    """
    value = unfold(value)
    if isinstance(value, list):
        return parse_pieces(cast(object, value), path, notes)
    if is_object_with(value, "role"):
        return parse_pieces([value], path, notes)
    text = as_text(value, path)
    if is_transcript(text):
        return parse_transcript(text, path)
    return [Piece(Message(role=role, content=text))]


def parse_reply(value: object, path: str, notes: Notes) -> list[Piece]:
    """Read a reply; the last message of it is the assistant's.

    Raises:
        RowError: naming the field.
    """
    pieces = parse_said(value, path, Role.ASSISTANT, notes)
    if not pieces or pieces[-1].message.role is not Role.ASSISTANT:
        raise RowError(
            "it does not end with a reply of the assistant",
            where=path,
            remedy="Put the assistant's reply last.",
        )
    return pieces


def is_transcript(value: object) -> bool:
    """Return whether a text has turns that begin with "Human:" or "Assistant:"."""
    return isinstance(value, str) and value.lstrip().startswith(("Human:", "Assistant:"))


def parse_transcript(text: str, path: str) -> list[Piece]:
    r"""Split a text at "\n\nHuman:" and "\n\nAssistant:".

    A last "Assistant:" with nothing behind it only asks for a reply and is no turn.

    Raises:
        RowError: if there is no such mark.
    """
    marks = list(_SPEAKER.finditer(text))
    if not marks:
        raise RowError(
            'there is no "Human:" or "Assistant:" in it',
            where=path,
            remedy="Begin each turn with one of them, after an empty line.",
        )
    ends = [mark.start() for mark in marks[1:]] + [len(text)]
    pieces: list[Piece] = []
    for mark, end in zip(marks, ends, strict=True):
        role = Role.USER if mark[1] == "Human" else Role.ASSISTANT
        content = text[mark.end() : end].removeprefix(" ")
        pieces.append(Piece(Message(role=role, content=content)))
    if len(pieces) > 1 and pieces[-1].message == Message(role=Role.ASSISTANT, content=""):
        pieces.pop()
    return pieces


def common_length(first: Sequence[Piece], second: Sequence[Piece]) -> int:
    """Return with how many equal messages both begin."""
    length = 0
    for one, other in zip(first, second, strict=False):
        if one.message != other.message:
            break
        length += 1
    return length
