"""Collections as rows: begun, followed, filled prompt by prompt, ended, and gone on with."""

from collections.abc import Sequence

from sqlalchemy import select, update
from sqlalchemy.orm import Session

from db.commands.preparing import Prepared, prepare
from db.commands.storing import insert_conversations
from db.engine import Database
from db.enums import CollectionState
from db.errors import ConflictError, NotFoundError
from db.formats import write
from db.models import CollectedPromptTable, CollectionTable, now
from db.records import CollectionPlan, Conversation


def create_collection(
    db: Database,
    plan: CollectionPlan,
    prompts: Sequence[Conversation],
    *,
    device: str,
    start_token: str,
    user_id: int,
) -> tuple[int, bool]:
    """Begin a collection.

    Args:
        db: The database.
        plan: What is asked of which model.
        prompts: What the conversations begin with; each is answered on its own.
        device: "cpu" or "cuda": what it will compute on.
        start_token: Any string; the same token gives the same collection, so two clicks begin one.
        user_id: Who asks.

    Returns:
        Its id, and whether it is new, so that the caller has to start its process.
    """
    with db.session() as session:
        same = select(CollectionTable.id).where(CollectionTable.start_token == start_token)
        known = session.scalar(same)
        if known is not None:
            return known, False
        row = CollectionTable(
            state=CollectionState.COLLECTING,
            user_id=user_id,
            start_token=start_token,
            plan=plan.to_json(),
            prompts=write(prompts, "native"),
            prompt_count=len(prompts),
            device=device,
        )
        session.add(row)
        session.flush()
        return row.id, True


def record_collection_process(db: Database, collection_id: int, process: str) -> bool:
    """Note which process works on a collection.

    Returns:
        Whether it was noted: nothing works on a collection that has ended.
    """
    with db.session() as session:
        row = session.get(CollectionTable, collection_id)
        if row is None or row.state is not CollectionState.COLLECTING:
            return False
        row.process = process
        return True


def report_collection(db: Database, collection_id: int, progress: float, message: str) -> bool:
    """Note how far a collection is; return whether it is still wanted."""
    with db.session() as session:
        found = session.execute(
            update(CollectionTable)
            .where(
                CollectionTable.id == collection_id,
                CollectionTable.state == CollectionState.COLLECTING,
            )
            .values(progress=min(max(progress, 0.0), 1.0), message=message)
            .returning(CollectionTable.id)
        ).all()
        return bool(found)


def store_collected(
    db: Database, collection_id: int, prompt: int, conversations: Sequence[Conversation]
) -> bool:
    """Store all conversations of one prompt, once, in one transaction with the word that it is done.

    Of conversations that say the same, the first is stored: nobody scores the same words twice.
    One that was there before the collection is left alone, and the new one is stored beside it:
    the new one's token ids are this model's own.

    Args:
        db: The database.
        collection_id: Which collection.
        prompt: Number of the prompt, from 0.
        conversations: What was sampled.

    Returns:
        Whether they were stored: not if the prompt is done already, or the collection was
        cancelled meanwhile.

    Raises:
        DataError: if one of them cannot be stored as it is; then none is.
    """
    distinct: dict[str, Prepared] = {}
    for prepared in map(prepare, conversations):
        distinct.setdefault(prepared.digest, prepared)
    with db.session() as session:
        row = session.get(CollectionTable, collection_id)
        if row is None or row.state is not CollectionState.COLLECTING:
            return False
        if session.get(CollectedPromptTable, (collection_id, prompt)) is not None:
            return False
        insert_conversations(session, list(distinct.values()))
        session.add(
            CollectedPromptTable(
                collection_id=collection_id,
                prompt=prompt,
                conversations=len(distinct),
                repeats=len(conversations) - len(distinct),
            )
        )
        return True


def end_collection(
    db: Database, collection_id: int, state: CollectionState, *, error_text: str = ""
) -> bool:
    """End a collection, unless it has ended already; what it has stored stays.

    Returns:
        Whether this call ended it.

    Raises:
        ConflictError: if `state` is no end.
    """
    if state is CollectionState.COLLECTING:
        raise ConflictError(f"{state} is no end", where=f"collection {collection_id}")
    with db.session() as session:
        row = session.get(CollectionTable, collection_id)
        if row is None or row.state is not CollectionState.COLLECTING:
            return False
        row.state, row.error_text = state, error_text
        row.process, row.message, row.changed_at = "", "", now()
        if state is CollectionState.DONE:
            row.progress = 1.0
        return True


def go_on_collecting(db: Database, collection_id: int) -> bool:
    """Let a collection that ended before its time go on with the prompts that are not done.

    Returns:
        Whether the caller has to start its process; False where it is under way: a click may
        arrive twice.

    Raises:
        NotFoundError: if it does not exist (any more).
        ConflictError: if it is done.
    """
    with db.session() as session:
        row = _get(session, collection_id)
        if row.state is CollectionState.COLLECTING:
            return False
        if not row.state.can_go_on:
            raise ConflictError(
                "all replies of this collection are stored",
                where=f"collection {collection_id}",
                remedy="Begin a new one.",
            )
        row.state, row.error_text, row.process = CollectionState.COLLECTING, "", ""
        row.changed_at = now()
        return True


def forget_collection(db: Database, collection_id: int) -> None:
    """Take a collection that has ended off the list; the conversations that it brought stay.

    Raises:
        NotFoundError: if it does not exist (any more).
        ConflictError: if it is under way.
    """
    with db.session() as session:
        row = _get(session, collection_id)
        if row.state is CollectionState.COLLECTING:
            raise ConflictError(
                "the collection is under way",
                where=f"collection {collection_id}",
                remedy="Cancel it first.",
            )
        session.delete(row)


def _get(session: Session, collection_id: int) -> CollectionTable:
    row = session.get(CollectionTable, collection_id)
    if row is None:
        raise NotFoundError(
            f"there is no collection {collection_id}",
            where="collections",
            remedy="It may have been taken off the list.",
        )
    return row
