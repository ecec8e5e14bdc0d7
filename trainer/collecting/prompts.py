"""What conversations to collect begin with: typed lines, files, and conversations that are there."""

from collections.abc import Sequence
from dataclasses import replace
from enum import StrEnum
from pathlib import PurePath

from db.enums import Role
from db.errors import DataError
from db.formats import parse
from db.hashing import content_hash
from db.records import Conversation, Message


class UserTurns(StrEnum):
    """After which user turns of a conversation replies are sampled."""

    FIRST = "first"
    LAST = "last"
    EACH = "each"


def from_lines(text: str, *, system: str = "") -> list[Conversation]:
    """Return one prompt a line; empty lines and repetitions are left out.

    Args:
        text: What the user says first, one opening a line.
        system: The system prompt of them all, empty for none.
    """
    lines = dict.fromkeys(line.strip() for line in text.splitlines())
    return [
        Conversation(messages=(Message(role=Role.USER, content=line),), system=system)
        for line in lines
        if line
    ]


def from_file(name: str, content: bytes, *, system: str = "") -> list[Conversation]:
    """Return the openings of a file: its lines if it is text, else those of its conversations.

    Raises:
        DataError: if it cannot be read, or holds no opening.
    """
    if PurePath(name).suffix.lower() in ("", ".txt", ".md"):
        try:
            found = from_lines(content.decode("utf-8-sig"), system=system)
        except UnicodeDecodeError as error:
            raise DataError(
                "the text is not in UTF-8", where=name, remedy="Save it as UTF-8."
            ) from error
    else:
        found = from_conversations(parse(content).conversations, UserTurns.FIRST)
        found = [prompt if prompt.system else replace(prompt, system=system) for prompt in found]
    if not found:
        raise DataError(
            "there is no opening in it",
            where=name,
            remedy="Write one opening a line, or give conversations that hold a user turn.",
        )
    return found


def from_conversations(
    conversations: Sequence[Conversation], turns: UserTurns
) -> list[Conversation]:
    """Return what precedes the chosen user turns, the turn included; the same words only once.

    What people said of earlier replies does not come along: it is said there already.
    """
    found: dict[str, Conversation] = {}
    for conversation in conversations:
        places = [i for i, m in enumerate(conversation.messages) if m.role is Role.USER]
        match turns:
            case UserTurns.FIRST:
                places = places[:1]
            case UserTurns.LAST:
                places = places[-1:]
            case UserTurns.EACH:
                pass
        for place in places:
            said = tuple(
                replace(message, id=None, scores=(), adjudicated=None)
                for message in conversation.messages[: place + 1]
            )
            prompt = Conversation(
                messages=said, system=conversation.system, tools=conversation.tools
            )
            found.setdefault(content_hash(prompt), prompt)
    return list(found.values())
