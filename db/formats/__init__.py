"""Conversation formats: bytes to conversations and back; no database in it.

`detect` looks at the beginning of a file, `read` streams its conversations, `write_to` writes
some. `parse` and `write` do the same with everything in memory.
"""

import io
from collections.abc import Iterable, Iterator
from typing import BinaryIO

from db.errors import DataError
from db.formats.alpaca import ALPACA
from db.formats.argilla import ARGILLA
from db.formats.chatgpt import CHATGPT
from db.formats.completions import COMPLETIONS
from db.formats.csv_rows import guard
from db.formats.detecting import Detection, SeenScores, detect_among
from db.formats.encoding_names import ENCODINGS, encoding_name, encoding_title
from db.formats.format import Format
from db.formats.helpsteer import HELPSTEER
from db.formats.hh import HH
from db.formats.kto import KTO
from db.formats.label_studio import LABEL_STUDIO
from db.formats.native import NATIVE
from db.formats.oasst import OASST
from db.formats.openai import OPENAI
from db.formats.preference import PREFERENCE_PAIRS
from db.formats.reading import conversations_of
from db.formats.recipe import RECIPE
from db.formats.result import IssueLog, Parsed, ParsedFile, issue_words
from db.formats.rows import FileKind
from db.formats.scales import Scale, ScaleKind, ScoreRule, ScoreTarget
from db.formats.sharegpt import SHAREGPT
from db.formats.source import Source
from db.formats.tables import CSV
from db.formats.ultrafeedback import ULTRAFEEDBACK
from db.formats.writing import WRITERS, Writer
from db.formats.zip_archive import is_zip, zip_files
from db.records import Conversation, ImportIssue, IssueOutcome

__all__ = [
    "AUTO",
    "ENCODINGS",
    "FORMATS",
    "READABLE",
    "WRITABLE",
    "WRITERS",
    "Detection",
    "FileKind",
    "Format",
    "IssueLog",
    "Parsed",
    "ParsedFile",
    "Scale",
    "ScaleKind",
    "ScoreRule",
    "ScoreTarget",
    "SeenScores",
    "Source",
    "Writer",
    "detect",
    "encoding_name",
    "encoding_title",
    "guard",
    "is_zip",
    "issue_words",
    "parse",
    "read",
    "write",
    "write_to",
    "zip_files",
]

AUTO = "auto"

FORMATS = {
    format.name: format
    for format in (
        NATIVE,
        RECIPE,
        OPENAI,
        SHAREGPT,
        ALPACA,
        ULTRAFEEDBACK,
        HH,
        PREFERENCE_PAIRS,
        KTO,
        COMPLETIONS,
        OASST,
        HELPSTEER,
        CSV,
        CHATGPT,
        LABEL_STUDIO,
        ARGILLA,
    )
}
"""Every format that is read, by name; where two fit a file equally, the first is taken."""

READABLE = tuple(FORMATS)
"""Names of the formats that `read` and `parse` read."""

WRITABLE = tuple(WRITERS)
"""Names of the formats that `write_to` writes."""


def detect(source: Source, format: str = AUTO, encoding: str = AUTO) -> Detection:
    """Recognise a file's format from its content, and suggest how its scores are to be read.

    Args:
        source: The file.
        format: One of `READABLE` if the person chose it, or "auto".
        encoding: A name of one of `ENCODINGS` if the person chose it, or "auto".

    Raises:
        DataError: if the file is empty, malformed, of no known kind or of none of the formats.
    """
    if format != AUTO:
        _known(format, READABLE)
    return detect_among(
        source,
        FORMATS,
        None if format == AUTO else format,
        None if encoding == AUTO else encoding_name(encoding),
    )


def read(
    source: Source,
    *,
    format: str = AUTO,
    rule: ScoreRule | None = None,
    detection: Detection | None = None,
) -> Iterator[Parsed | ImportIssue]:
    """Yield a file's conversations one after another, and what is remarkable about its rows.

    A row that cannot be read gives an issue and does not keep the others out. Text is kept as it
    is, except for NUL characters and lone surrogates, which become U+FFFD. Memory stays bounded
    whatever the file's size.

    Args:
        source: The file.
        format: One of `READABLE`, or "auto".
        rule: How scores are read; None takes the suggested rule.
        detection: What `detect` said of this file and format, to spare a second look.

    Raises:
        DataError: if the file cannot be read as a whole (see `detect`), also while it is being
            read; then nothing of it should be kept.
    """
    found = detection or detect(source, format)
    chosen = FORMATS[found.format]
    yield from conversations_of(source, found, chosen, found.rule if rule is None else rule)


def parse(data: bytes, *, format: str = AUTO) -> ParsedFile:
    """Read the conversations of a file that is in memory, with the suggested rule for scores.

    Args:
        data: The file's bytes.
        format: One of `READABLE`, or "auto" to recognise it from the content.

    Raises:
        DataError: if the file cannot be read as a whole (see `read`).
    """
    source = Source.of_bytes(data)
    found = detect(source, format)
    log = IssueLog()
    conversations: list[Conversation] = []
    rows: list[int] = []
    for item in read(source, detection=found):
        if isinstance(item, Parsed):
            conversations.append(item.conversation)
            rows.append(item.row)
        else:
            log.add(item)
    issues = log.issues()
    mapped = [s for s in found.rule.scales if s.used and not s.is_identity]
    return ParsedFile(
        format=found.format,
        conversations=tuple(conversations),
        rows=tuple(rows),
        skipped=tuple(i for i in issues if i.outcome is IssueOutcome.SKIPPED),
        warnings=(
            *(issue_words(i) for i in issues if i.outcome is not IssueOutcome.SKIPPED),
            *(f"the scores named {s.name!r} were mapped: {s.words}" for s in mapped),
        ),
    )


def write_to(conversations: Iterable[Conversation], format: str, stream: BinaryIO) -> None:
    """Write conversations in a format, one after another.

    Raises:
        DataError: if there is no such format, or a number in a conversation is not finite.
    """
    _known(format, WRITABLE)
    try:
        WRITERS[format].write(conversations, stream)
    except ValueError as error:
        raise DataError(
            f"a conversation cannot be written ({error})",
            where="export",
            remedy="Look for numbers that are not finite in its tool calls.",
        ) from None


def write(conversations: Iterable[Conversation], format: str) -> str:
    """Return conversations as text in a format (see `write_to`); not for "datasets".

    Raises:
        DataError: if there is no such format, or a number in a conversation is not finite.
    """
    _known(format, tuple(name for name in WRITABLE if WRITERS[name].suffix != ".zip"))
    stream = io.BytesIO()
    write_to(conversations, format, stream)
    return stream.getvalue().decode()


def _known(name: str, names: tuple[str, ...]) -> None:
    if name not in names:
        raise DataError(
            f"there is no format named {name!r} here",
            where="format",
            remedy=f"The formats are: {', '.join(names)}.",
        )
