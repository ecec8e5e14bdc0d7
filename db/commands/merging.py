"""Scores of conversations that are there already: each rater keeps the one they have."""

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass

from sqlalchemy import select
from sqlalchemy.orm import Session

from db.commands.bulk import insert_many
from db.commands.preparing import Prepared, PreparedScore
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

Known = dict[tuple[str, int | None, str], float]
"""Scores by content hash, the message's position (None: of the whole), and rater."""


@dataclass(frozen=True, slots=True, kw_only=True)
class MergePlan:
    """Which of the duplicates' scores are new.

    Attributes:
        new: The new ones, with the content hash of their conversation.
        kept: How many are left out, because the rater has given that turn another score already;
            the one in the database stays.
    """

    new: tuple[tuple[str, PreparedScore], ...] = ()
    kept: int = 0


def plan_merge(duplicates: Sequence[Prepared], known: Known) -> MergePlan:
    """Compare duplicates' scores with what is known, which grows by those that are new."""
    new: list[tuple[str, PreparedScore]] = []
    kept = 0
    for conversation in duplicates:
        for score in conversation.scores:
            key = score_key(conversation.digest, score)
            if key not in known:
                known[key] = score.value
                new.append((conversation.digest, score))
            elif known[key] != score.value:
                kept += 1
    return MergePlan(new=tuple(new), kept=kept)


def score_key(digest: str, score: PreparedScore) -> tuple[str, int | None, str]:
    """Return what a second score would have in common with this one."""
    return (digest, score.position, _DECIDED if score.adjudicates else score.rater)


def merge_scores(
    session: Session,
    duplicates: Sequence[Prepared],
    ids: Mapping[str, int],
    *,
    import_id: int | None = None,
) -> MergePlan:
    """Add duplicates' scores to the conversations that are there, where their raters have none.

    Args:
        session: The caller's transaction.
        duplicates: What is said again.
        ids: The conversations that say it already, by content hash.
        import_id: The import that brings them: what it adds to conversations of others is written
            down, so that it can be taken back.
    """
    scored = {c.digest: ids[c.digest] for c in duplicates if c.scores}
    if not scored:
        return MergePlan()
    plan = plan_merge(duplicates, known_scores(session, scored))
    if plan.new:
        places = _message_ids(session, sorted(set(scored.values())))
        targets = [
            Target(id, None if score.position is None else places[id, score.position], score)
            for id, score in ((ids[digest], score) for digest, score in plan.new)
        ]
        raters = store_scores(session, targets)
        if import_id is not None:
            _write_down(session, targets, raters, import_id)
    return plan


def known_scores(session: Session, ids: Mapping[str, int]) -> Known:
    """Return all scores of conversations, given by content hash."""
    digests = {id: digest for digest, id in ids.items()}
    return {
        (digests[id], position, rater): value
        for chunk in in_chunks(sorted(digests))
        for id, position, rater, value in _scores_of(session, chunk)
    }


def _scores_of(
    session: Session, ids: Sequence[int]
) -> Iterator[tuple[int, int | None, str, float]]:
    place = (MessageTable.conversation_id, MessageTable.position)
    of_messages = (
        select(*place, UserTable.name, ScoreTable.value)
        .join(ScoreTable, ScoreTable.message_id == MessageTable.id)
        .join(UserTable, UserTable.id == ScoreTable.user_id)
        .where(MessageTable.conversation_id.in_(ids))
    )
    for id, position, rater, value in session.execute(of_messages):
        yield id, position, rater, value
    decided = (
        select(*place, AdjudicationTable.value)
        .join(AdjudicationTable, AdjudicationTable.message_id == MessageTable.id)
        .where(MessageTable.conversation_id.in_(ids))
    )
    for id, position, value in session.execute(decided):
        yield id, position, _DECIDED, value
    of_wholes = (
        select(OutcomeTable.conversation_id, UserTable.name, OutcomeTable.value)
        .join(UserTable, UserTable.id == OutcomeTable.user_id)
        .where(OutcomeTable.conversation_id.in_(ids))
    )
    for id, rater, value in session.execute(of_wholes):
        yield id, None, rater, value


def _message_ids(session: Session, ids: Sequence[int]) -> dict[tuple[int, int], int]:
    columns = (MessageTable.conversation_id, MessageTable.position, MessageTable.id)
    return {
        (id, position): message_id
        for chunk in in_chunks(ids)
        for id, position, message_id in session.execute(
            select(*columns).where(MessageTable.conversation_id.in_(chunk))
        )
    }


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
