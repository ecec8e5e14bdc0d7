"""Imports as rows: begun, followed, settled with what they store, and taken back."""

from collections.abc import Sequence
from dataclasses import asdict
from typing import Any

from sqlalchemy import delete, select, update
from sqlalchemy.orm import Session

from db.commands.changing import take_away
from db.commands.counting import recount
from db.engine import Database
from db.enums import ImportState
from db.errors import ConflictError, NotFoundError
from db.models import (
    AdjudicationTable,
    ConversationTable,
    ImportedScoreTable,
    ImportTable,
    OutcomeTable,
    ScoreTable,
    now,
)
from db.queries.imports import changed_since
from db.records import ImportFile

_OPEN = (ImportState.CHECKED, ImportState.FAILED, ImportState.CANCELLED)
_BEYOND = (ImportState.CHECKING, ImportState.IMPORTING, ImportState.DONE)


def create_import(db: Database, files: Sequence[ImportFile], *, user_id: int) -> int:
    """Begin an import whose files are about to be checked; return its id."""
    with db.session() as session:
        row = ImportTable(
            state=ImportState.CHECKING, user_id=user_id, files=[asdict(file) for file in files]
        )
        session.add(row)
        session.flush()
        return row.id


def check_import(db: Database, import_id: int, files: Sequence[ImportFile]) -> bool:
    """Let files that are here be checked (again), read as `files` says.

    Returns:
        Whether it is for the caller to start that; False where the same is under way, or what it
        found is stored already: a click may arrive twice, and late.

    Raises:
        NotFoundError: if the import does not exist (any more).
        ConflictError: if it is under way or done with the files read otherwise.
    """
    read_as = [asdict(file) for file in files]
    with db.session() as session:
        row = _get(session, import_id, *_OPEN, *_BEYOND)
        if row.state in _BEYOND:
            if row.files == read_as:
                return False
            raise _conflict(row)
        row.files = read_as
        row.report = None
        _begin(row, ImportState.CHECKING)
        return True


def name_import_files(db: Database, import_id: int, files: Sequence[ImportFile]) -> None:
    """Keep which files a check found: an archive among those chosen stands for several."""
    with db.session() as session:
        row = _get(session, import_id, ImportState.CHECKING)
        row.files = [asdict(file) for file in files]


def start_import(db: Database, import_id: int) -> bool:
    """Let what was checked be stored.

    Returns:
        Whether it is for the caller to start that; False where it is under way or done.

    Raises:
        NotFoundError, ConflictError: as `check_import`.
    """
    ready = (ImportState.CHECKED, ImportState.IMPORTING, ImportState.DONE)
    with db.session() as session:
        row = _get(session, import_id, *ready)
        if row.state is not ImportState.CHECKED:
            return False
        _begin(row, ImportState.IMPORTING)
        return True


def record_import_process(db: Database, import_id: int, process: str) -> None:
    """Note which process works on an import, unless it has ended already."""
    with db.session() as session:
        row = session.get(ImportTable, import_id)
        if row is not None and row.state.has_process:
            row.process = process


def report_import_progress(db: Database, import_id: int, progress: float, message: str) -> None:
    """Note how far an import is."""
    with db.session() as session:
        session.execute(
            update(ImportTable)
            .where(ImportTable.id == import_id)
            .values(progress=progress, message=message)
        )


def settle_check(db: Database, import_id: int, report: dict[str, Any]) -> None:
    """Keep what a check has found.

    Raises:
        ConflictError: if it has been cancelled meanwhile.
    """
    with db.session() as session:
        row = _get(session, import_id, ImportState.CHECKING)
        row.report = report
        _end(row, ImportState.CHECKED)


def insert_done_import(
    session: Session, files: Sequence[ImportFile], *, user_id: int | None
) -> int:
    """Insert an import that is under way in the caller's own transaction; return its id."""
    row = ImportTable(
        state=ImportState.IMPORTING, user_id=user_id, files=[asdict(file) for file in files]
    )
    session.add(row)
    session.flush()
    return row.id


def settle_import(session: Session, import_id: int, report: dict[str, Any]) -> None:
    """Mark an import as done, in the transaction that stores what it brings.

    Raises:
        ConflictError: if it has been cancelled meanwhile.
    """
    row = _get(session, import_id, ImportState.IMPORTING)
    row.report = report
    row.progress = 1.0
    _end(row, ImportState.DONE)


def fail_import(db: Database, import_id: int, text: str) -> None:
    """Note why a check or an import came to nothing; does nothing if it has ended already."""
    _give_up(db, import_id, ImportState.FAILED, text)


def cancel_import(db: Database, import_id: int) -> None:
    """Mark a check or an import as cancelled; does nothing if it has ended already."""
    _give_up(db, import_id, ImportState.CANCELLED, "")


def discard_import(db: Database, import_id: int) -> None:
    """Forget an import of which nothing was stored.

    Raises:
        NotFoundError, ConflictError: as `check_import`.
    """
    with db.session() as session:
        session.delete(_get(session, import_id, *_OPEN))


def undo_import(db: Database, import_id: int) -> int:
    """Take an import back: delete what it brought, and the scores it added to other conversations.

    Scores of that kind which their raters have changed since stay. So do the names of raters.

    Returns:
        How many conversations were deleted.

    Raises:
        NotFoundError, ConflictError: as `check_import`.
    """
    with db.session() as session:
        row = _get(session, import_id, ImportState.DONE)
        _take_scores_back(session, import_id)
        deleted = session.execute(
            delete(ConversationTable)
            .where(ConversationTable.import_id == import_id)
            .returning(ConversationTable.id)
        ).all()
        session.execute(delete(ImportedScoreTable).where(ImportedScoreTable.import_id == import_id))
        _end(row, ImportState.UNDONE)
        return len(deleted)


def _take_scores_back(session: Session, import_id: int) -> None:
    added = session.scalars(
        select(ImportedScoreTable).where(
            ImportedScoreTable.import_id == import_id, ~changed_since()
        )
    ).all()
    for score in added:
        if score.message_id is None:
            key = (score.conversation_id, score.user_id)
            row = session.get(OutcomeTable, key)
        elif score.adjudicates:
            row = session.get(AdjudicationTable, score.message_id)
        else:
            row = session.get(ScoreTable, (score.message_id, score.user_id))
        if row is not None:
            take_away(session, row, score.conversation_id)
    session.flush()
    recount(session, {score.conversation_id for score in added})


def _begin(row: ImportTable, state: ImportState) -> None:
    row.process = ""
    row.progress, row.message, row.error_text = 0.0, "", ""
    row.state, row.changed_at = state, now()


def _end(row: ImportTable, state: ImportState) -> None:
    row.process = ""
    row.message = ""
    row.state, row.changed_at = state, now()


def _give_up(db: Database, import_id: int, state: ImportState, text: str) -> None:
    with db.session() as session:
        row = session.get(ImportTable, import_id)
        if row is not None and row.state.has_process:
            row.error_text = text
            _end(row, state)


def _get(session: Session, import_id: int, *states: ImportState) -> ImportTable:
    """Return an import that is in one of these states.

    Raises:
        NotFoundError: if it does not exist (any more).
        ConflictError: if it is in another one.
    """
    row = session.get(ImportTable, import_id)
    if row is None:
        raise NotFoundError(
            f"there is no import {import_id}",
            where="imports",
            remedy="It may have been discarded; choose the files again.",
        )
    if row.state not in states:
        raise _conflict(row)
    return row


def _conflict(row: ImportTable) -> ConflictError:
    return ConflictError(
        f"the import is {row.state}, so this cannot be done",
        where=f"import {row.id}",
        remedy="Load the page again to see what has become of it.",
    )
