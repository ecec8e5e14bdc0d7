"""Short ways to read a file's bytes and to say what was read."""

import json
from typing import Any

from db.enums import Role
from db.formats import AUTO, Detection, Parsed, ScoreRule, Source, detect, read
from db.formats.draft import group_key
from db.records import Conversation, ImportIssue, IssueOutcome, Message

COLOUR = "Name a colour."


def lines(*rows: object) -> bytes:
    """Return rows as JSON lines."""
    return "".join(json.dumps(row) + "\n" for row in rows).encode()


def found(data: bytes, format: str = AUTO) -> Detection:
    """Return what a look at the file tells."""
    return detect(Source.of_bytes(data), format)


def taken(
    data: bytes, *, format: str = AUTO, rule: ScoreRule | None = None
) -> tuple[list[Conversation], list[ImportIssue]]:
    """Return the conversations of a file, and its issues."""
    items = list(read(Source.of_bytes(data), format=format, rule=rule))
    conversations = [item.conversation for item in items if isinstance(item, Parsed)]
    return conversations, [item for item in items if isinstance(item, ImportIssue)]


def clean(data: bytes, *, format: str = AUTO) -> list[Conversation]:
    """Return the conversations of a file that has no issues."""
    conversations, issues = taken(data, format=format)
    assert issues == []
    return conversations


def said(conversation: Conversation) -> list[Any]:
    """Return (role, text), with a third part for the only score of a message."""
    parts: list[Any] = []
    for message in conversation.messages:
        part: tuple[Any, ...] = (message.role.value, message.content)
        if message.scores:
            (score,) = message.scores
            part = (*part, score.value)
        parts.append(part)
    return parts


def outcomes_of(issues: list[ImportIssue]) -> list[tuple[int, IssueOutcome]]:
    """Return row and outcome of each issue."""
    return [(issue.row, issue.outcome) for issue in issues]


def prompt_group(*texts: str) -> str:
    """Return the group of all that begins with these words by user and assistant."""
    roles = (Role.USER, Role.ASSISTANT)
    return group_key([Message(role=roles[i % 2], content=t) for i, t in enumerate(texts)])
