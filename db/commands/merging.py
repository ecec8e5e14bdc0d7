"""Scores of conversations that are there already: each rater keeps the one they have."""

from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass

from sqlalchemy import select
from sqlalchemy.orm import Session

from db.commands.bulk import insert_many
from db.commands.preparing import Prepared
from db.commands.storing import Target, store_scores
from db.models import (
    AdjudicationTable,
    ConversationTable,
    ImportedScoreTable,
    MessageTable,
    OutcomeTable,
    ScoreTable,
    UserTable,
)
from db.queries.loading import in_chunks

_DECIDED = ""
"""Stands for the rater where a message can have one score only: the decided one."""

_Key = tuple[int, int | None, str]


@dataclass(frozen=True, slots=True, kw_only=True)
class Merged:
    """What became of duplicates' scores.

    Attributes:
        added: How many went to conversations that were there.
        kept: How many were left out, because the rater has given that turn another score already;
            the one in the database stays.
    """

    added: int = 0
    kept: int = 0


def merge_scores(
    session: Session, duplicates: Sequence[tuple[int, Prepared]], *, import_id: int | None = None
) -> Merged:
    """Add duplicates' scores to the conversations of these ids where their raters have none.

    Args:
        session: The caller's transaction.
        duplicates: Conversation ids and what is said of them again.
        import_id: The import that brings them: what it adds to conversations of others is written
            down, so that it can be taken back.
    """
    scored = [(id, c) for id, c in duplicates if c.scores]
    if not scored:
        return Merged()
    ids = sorted({id for id, _ in scored})
    places = _message_ids(session, ids)
    known = _known_scores(session, ids)
    targets: list[Target] = []
    kept = 0
    for id, conversation in scored:
        for score in conversation.scores:
            place = None if score.position is None else places[id, score.position]
            key = (id, place, _DECIDED if score.adjudicates else score.rater)
            if key not in known:
                known[key] = score.value
                targets.append(Target(id, place, score))
            elif known[key] != score.value:
                kept += 1
    if targets:
        raters = store_scores(session, targets)
        if import_id is not None:
            _write_down(session, targets, raters, import_id)
    return Merged(added=len(targets), kept=kept)


def _message_ids(session: Session, ids: Sequence[int]) -> dict[tuple[int, int], int]:
    columns = (MessageTable.conversation_id, MessageTable.position, MessageTable.id)
    return {
        (id, position): message_id
        for chunk in in_chunks(ids)
        for id, position, message_id in session.execute(
            select(*columns).where(MessageTable.conversation_id.in_(chunk))
        )
    }


def _known_scores(session: Session, ids: Sequence[int]) -> dict[_Key, float]:
    return {key: value for chunk in in_chunks(ids) for key, value in _scores_of(session, chunk)}


def _scores_of(session: Session, ids: Sequence[int]) -> Iterator[tuple[_Key, float]]:
    of_messages = (
        select(MessageTable.conversation_id, MessageTable.id, UserTable.name, ScoreTable.value)
        .join(ScoreTable, ScoreTable.message_id == MessageTable.id)
        .join(UserTable, UserTable.id == ScoreTable.user_id)
        .where(MessageTable.conversation_id.in_(ids))
    )
    for id, message_id, rater, value in session.execute(of_messages):
        yield (id, message_id, rater), value
    decided = (
        select(MessageTable.conversation_id, MessageTable.id, AdjudicationTable.value)
        .join(AdjudicationTable, AdjudicationTable.message_id == MessageTable.id)
        .where(MessageTable.conversation_id.in_(ids))
    )
    for id, message_id, value in session.execute(decided):
        yield (id, message_id, _DECIDED), value
    of_wholes = (
        select(OutcomeTable.conversation_id, UserTable.name, OutcomeTable.value)
        .join(UserTable, UserTable.id == OutcomeTable.user_id)
        .where(OutcomeTable.conversation_id.in_(ids))
    )
    for id, rater, value in session.execute(of_wholes):
        yield (id, None, rater), value


def _write_down(
    session: Session, targets: Collection[Target], raters: dict[str, int], import_id: int
) -> None:
    """Remember what the import added to conversations that it did not bring itself."""
    ids = sorted({target.conversation_id for target in targets})
    own = {
        id
        for chunk in in_chunks(ids)
        for id in session.scalars(
            select(ConversationTable.id).where(
                ConversationTable.id.in_(chunk), ConversationTable.import_id == import_id
            )
        )
    }
    columns = ("import_id", "conversation_id", "message_id", "user_id", "adjudicates", "value")
    rows = [
        (
            import_id,
            target.conversation_id,
            target.message_id,
            raters[target.score.rater],
            target.score.adjudicates,
            target.score.value,
        )
        for target in targets
        if target.conversation_id not in own
    ]
    insert_many(session, ImportedScoreTable, columns, rows)
