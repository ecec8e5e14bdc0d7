"""Numbers, times and names in words, and text that Markdown must leave alone."""

import re
from datetime import UTC, datetime

from db.records import Conversation, ConversationRow

_PUNCTUATION = re.compile(r"([!-/:-@\[-`{-~])")
_WORD_JOINER = "\u2060"

_STEPS = ((60.0, "s"), (60.0, "min"), (24.0, "h"), (30.0, "d"), (12.0, "months"))


def plain(text: str) -> str:
    """Return somebody's text so that a Markdown label shows it letter by letter.

    Escaping alone is not enough: shortcodes, arrows and bare links are found again in the
    unescaped text. An invisible word joiner after each sign keeps them apart.
    """
    one_line = " ".join(text.split())
    return _PUNCTUATION.sub(rf"\\\1{_WORD_JOINER}", one_line)


def shortened(text: str, length: int = 60) -> str:
    """Return the text on one line, cut at `length` characters with an ellipsis."""
    one_line = " ".join(text.split())
    return one_line if len(one_line) <= length else f"{one_line[: length - 1].rstrip()}…"


def counted(number: int, singular: str, plural: str | None = None) -> str:
    """Return a number with its noun: "1 turn", "1,204 turns"."""
    noun = singular if number == 1 else plural or f"{singular}s"
    return f"{number:,} {noun}"


def score_text(value: float | None) -> str:
    """Return a score with two decimals and a true minus sign, or "not scored"."""
    return "not scored" if value is None else f"{value:.2f}".replace("-", "−")


def ago(at: datetime, now: datetime | None = None) -> str:
    """Return how long ago something was: "just now", "5 min ago", "3 d ago"."""
    amount = ((now or datetime.now(UTC)) - at).total_seconds()
    if amount < 10:
        return "just now"
    for size, unit in _STEPS:
        if amount < size:
            return f"{int(amount)} {unit} ago"
        amount /= size
    return f"{int(amount)} years ago"


def exact_time(at: datetime) -> str:
    """Return a moment in the machine's own time zone, to the minute."""
    return f"{at.astimezone():%Y-%m-%d %H:%M}"


def title_of(conversation: Conversation) -> str:
    """Return a conversation's title, or the start of its first message where it has none."""
    opening = conversation.messages[0].content if conversation.messages else ""
    return conversation.title or shortened(opening) or f"Conversation {conversation.id}"


def row_title(row: ConversationRow) -> str:
    """Return the title of a table row, or its number where it has none."""
    return row.title or f"Conversation {row.id}"
