"""The files of an import, read to their end into a staging file; no database is needed for that."""

import tempfile
import time
from collections.abc import Callable, Generator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path

from db.commands.preparing import prepare
from db.errors import DataError, StorageError
from db.formats import IssueLog, ScoreRule, Source, detect, is_zip, read, zip_files
from db.import_report import Reading
from db.records import Conversation, ImportFile, ImportIssue
from db.staging import Staging

Progress = Callable[[float, str], None]
"""Takes the share that is done, from 0 to 1, and what is being done, in words."""

_PROGRESS_EVERY_S = 0.25


@dataclass(frozen=True, slots=True)
class SourceFile:
    """A file of an import, and where its bytes are."""

    file: ImportFile
    source: Source


@dataclass(frozen=True, slots=True)
class StagedImport:
    """Files that have been read to their end.

    Attributes:
        path: What was read, ready to be stored.
        reading: What there is to tell about it.
        repeated: Content hashes of what comes more than once.
    """

    path: Path
    reading: Reading
    repeated: frozenset[str]


@contextmanager
def disk_errors() -> Generator[None]:
    """Tell an error of the disk in words."""
    try:
        yield
    except OSError as error:
        raise StorageError(
            f"what was read cannot be put aside ({error.strerror or error})",
            where=str(error.filename or tempfile.gettempdir()),
            remedy="Make room on that disk, or let TMPDIR name another one.",
        ) from error


def parts(chosen: SourceFile, kept_as: int | None = None) -> list[SourceFile]:
    """Return the files of a zip archive, each read like the archive, or else the file itself.

    Args:
        chosen: The file.
        kept_as: Number under which its bytes lie.

    Raises:
        DataError: if it is an archive that cannot be imported (see `db.formats.zip_files`).
    """
    if not is_zip(chosen.source):
        return [chosen]
    return [
        SourceFile(
            replace(chosen.file, name=source.name, member=source.member, kept_as=kept_as), source
        )
        for source in zip_files(chosen.source)
    ]


@disk_errors()
def stage(
    files: Sequence[SourceFile],
    path: Path,
    *,
    source: str | None = None,
    progress: Progress | None = None,
) -> StagedImport:
    """Read files to their end into a staging file; no database is needed for that.

    Raises:
        DataError: if a file cannot be read at all, naming it if there are several.
    """
    total_bytes = sum(chosen.source.size_bytes for chosen in files) or 1
    done_bytes = 0
    tell = patient(progress)
    formats: dict[str, None] = {}
    issues: list[ImportIssue] = []
    mapped: list[str] = []
    with Staging(path) as staging:
        for chosen in files:
            name = chosen.file.name
            file = name if len(files) > 1 else ""
            with _named(file):
                try:
                    found = detect(chosen.source, chosen.file.format, chosen.file.encoding)
                except DataError as error:
                    if not chosen.file.member:
                        raise
                    issues.append(_left_out(name, error))  # an archive holds all sorts of files
                    continue
                rule = found.rule
                if chosen.file.rule is not None:
                    rule = ScoreRule.from_json(chosen.file.rule)
                formats[found.format] = None
                log = IssueLog()
                for item in read(chosen.source, rule=rule, detection=found):
                    if isinstance(item, ImportIssue):
                        log.add(item)
                        continue
                    conversation = _localised(item.conversation, source or f"import:{name}")
                    _stage_one(conversation, item.row, file, staging, log)
                    tell((done_bytes + item.packed_bytes) / total_bytes, f"Reading {name}")
            done_bytes += chosen.source.size_bytes
            issues += [replace(i, file=file) for i in log.issues()]
            mapped += [
                f"the scores named {scale.name!r} were mapped: {scale.words}"
                for scale in rule.scales
                if scale.used and not scale.is_identity
            ]
    if not formats and issues:
        first = issues[0]
        raise DataError(first.reason, where=first.file, remedy=first.remedy)
    reading = Reading(format=", ".join(formats), issues=tuple(issues), mapped=tuple(mapped))
    return StagedImport(path, reading, frozenset(staging.repeated))


def patient(progress: Progress | None) -> Progress:
    """Return a function that passes progress on now and then, not at every row."""
    last_s = 0.0

    def tell(share: float, message: str) -> None:
        nonlocal last_s
        now_s = time.monotonic()
        if progress is not None and now_s - last_s >= _PROGRESS_EVERY_S:
            last_s = now_s
            progress(min(share, 1.0), message)

    return tell


def _left_out(file: str, error: DataError) -> ImportIssue:
    return ImportIssue(
        row=0,
        field=error.where,
        reason=f"it is left out: {error.what}",
        remedy="If it holds conversations, choose its format or encoding.",
        file=file,
    )


def _stage_one(
    conversation: Conversation, row: int, file: str, staging: Staging, log: IssueLog
) -> None:
    try:
        staging.add(prepare(conversation, row=row, file=file))
    except DataError as error:
        log.add(ImportIssue(row=row, field=error.where, reason=error.what, remedy=error.remedy))


def _localised(conversation: Conversation, source: str) -> Conversation:
    """Set the source, and drop the run that sampled a reply: run ids are one database's own."""
    messages = conversation.messages
    if any(message.run_id is not None for message in messages):
        messages = tuple(replace(message, run_id=None) for message in messages)
    return replace(conversation, source=conversation.source or source, messages=messages)


@contextmanager
def _named(file: str) -> Generator[None]:
    try:
        yield
    except DataError as error:
        where = f"{file}, {error.where}" if file else error.where
        raise DataError(error.what, where=where, remedy=error.remedy) from None
