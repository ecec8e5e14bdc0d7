"""Reading collections: where they stand, and what is left to do."""

from typing import Any

from sqlalchemy import Select, func, select
from sqlalchemy.orm import defer

from db.engine import Database
from db.enums import CollectionState, RunStatus
from db.errors import NotFoundError
from db.formats import parse
from db.models import CollectedPromptTable, CollectionTable, RunTable, UserTable
from db.records import Collection, CollectionPlan, Conversation


def collection(db: Database, collection_id: int) -> Collection:
    """Return one collection.

    Raises:
        NotFoundError: if it does not exist (any more).
    """
    with db.read_session() as session:
        statement = _collections().where(CollectionTable.id == collection_id)
        found = session.execute(statement).one_or_none()
    if found is None:
        raise NotFoundError(
            f"there is no collection {collection_id}",
            where="collections",
            remedy="It may have been taken off the list.",
        )
    return _record(*found)


def collections(db: Database, *states: CollectionState, limit: int = 100) -> list[Collection]:
    """Return the latest collections in any of these states (in any state, if none is given)."""
    statement = _collections().order_by(CollectionTable.id.desc()).limit(limit)
    if states:
        statement = statement.where(CollectionTable.state.in_(states))
    with db.read_session() as session:
        return [_record(*found) for found in session.execute(statement)]


def prompts_left(db: Database, collection_id: int) -> dict[int, Conversation]:
    """Return the prompts whose replies are not stored yet, by their numbers from 0."""
    with db.read_session() as session:
        stored = select(CollectionTable.prompts).where(CollectionTable.id == collection_id)
        rows = session.scalar(stored) or ""
        done = set(
            session.scalars(
                select(CollectedPromptTable.prompt).where(
                    CollectedPromptTable.collection_id == collection_id
                )
            )
        )
    prompts = parse(rows.encode(), format="native").conversations if rows else ()
    return {number: prompt for number, prompt in enumerate(prompts) if number not in done}


def run_that_wants(db: Database, device: str) -> int | None:
    """Return a run that has the device or waits for it, if there is one."""
    waiting = (RunTable.status == RunStatus.QUEUED) & (RunTable.snapshot_sha256 != "")
    busy = RunTable.status.in_([status for status in RunStatus if status.has_process])
    statement = (
        select(RunTable.id)
        .where(RunTable.device == device, busy | waiting)
        .order_by(RunTable.queue_place, RunTable.id)
        .limit(1)
    )
    with db.read_session() as session:
        return session.scalar(statement)


def _collections() -> Select[CollectionTable, str, Any, Any, Any]:
    done = (
        select(
            CollectedPromptTable.collection_id.label("id"),
            func.count().label("prompts"),
            func.sum(CollectedPromptTable.conversations).label("conversations"),
            func.sum(CollectedPromptTable.repeats).label("repeats"),
        )
        .group_by(CollectedPromptTable.collection_id)
        .subquery()
    )
    return (
        select(
            CollectionTable,
            func.coalesce(UserTable.name, ""),
            func.coalesce(done.c.prompts, 0),
            func.coalesce(done.c.conversations, 0),
            func.coalesce(done.c.repeats, 0),
        )
        .options(defer(CollectionTable.prompts))
        .outerjoin(UserTable, UserTable.id == CollectionTable.user_id)
        .outerjoin(done, done.c.id == CollectionTable.id)
    )


def _record(
    row: CollectionTable, user: str, done: int, conversations: int, repeats: int
) -> Collection:
    return Collection(
        id=row.id,
        state=row.state,
        user=user,
        plan=CollectionPlan.from_json(row.plan),
        prompts=row.prompt_count,
        done=done,
        conversations=int(conversations),
        repeats=int(repeats),
        device=row.device,
        process=row.process,
        progress=row.progress,
        message=row.message,
        error_text=row.error_text,
        created_at=row.created_at,
        changed_at=row.changed_at,
    )
