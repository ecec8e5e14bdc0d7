"""Taking an import back: what it brought goes, what people did elsewhere stays."""

from dataclasses import replace

import pytest
from sqlalchemy import text

from db import commands, queries
from db.engine import Database
from db.enums import ImportState
from db.errors import ConflictError
from db.formats import write
from db.importing import import_bytes
from db.records import Conversation, ConversationFilter, Score, UndoEffects
from tests.db.backends import ON_EVERY_DATABASE
from tests.db.building import scored_talk, talk

pytestmark = ON_EVERY_DATABASE


def everything(database: Database) -> list[Conversation]:
    ids = queries.conversation_ids(database, ConversationFilter(order="oldest"), user_id=1)
    return queries.conversations(database, ids)


def bring(database: Database, *conversations: Conversation) -> int:
    """Import conversations; return the import's id."""
    import_bytes(database, write(conversations, "native").encode(), source="import:a.jsonl")
    return queries.imports(database)[0].id


def reply_id(database: Database, number: int = 0) -> int:
    id = everything(database)[number].assistant_messages[0].id
    assert id is not None
    return id


def test_an_undone_import_leaves_what_was_there_before_and_can_come_again(
    database: Database,
) -> None:
    commands.add_conversation(database, talk("kept", "reply"))
    before = everything(database)
    new = (scored_talk(("a", 0.5), rater="ann"), talk("b", "c", tags=("x",)))
    import_id = bring(database, *new)
    assert commands.undo_import(database, import_id) == 2
    assert everything(database) == before
    assert queries.import_(database, import_id).state is ImportState.UNDONE
    with pytest.raises(ConflictError, match="undone"):
        commands.undo_import(database, import_id)
    bring(database, *new)
    assert len(everything(database)) == 3


def test_scores_that_an_import_added_elsewhere_are_taken_back_unless_they_were_changed(
    database: Database,
) -> None:
    commands.add_conversation(database, scored_talk(("a", None), ("b", None), rater="x"))
    import_id = bring(
        database,
        scored_talk(("a", 0.5), ("b", -0.5), rater="ann"),
        talk("new", "reply"),
    )
    ann = everything(database)[0].assistant_messages[0].scores[0]
    assert (ann.rater, ann.value) == ("ann", 0.5)
    with database.read_session() as session:
        ann_id = session.scalar(text("SELECT id FROM users WHERE name = 'ann'"))
    commands.set_score(database, user_id=ann_id, message_id=reply_id(database), value=0.9)
    assert queries.undo_effects(database, import_id) == UndoEffects(
        conversations=1, edited=0, scores_since=(), merged_scores=1, changed_scores=1
    )
    commands.undo_import(database, import_id)
    (left,) = everything(database)
    assert [[s.value for s in m.scores] for m in left.assistant_messages] == [[0.9], []]
    row = queries.conversation_rows(database, ConversationFilter(), user_id=1)[0]
    assert (row.scored_turns, row.mean_score) == (1, 0.9)
    gone = queries.score_events(database, conversation_id=left.id)[0]
    assert (gone.old_value, gone.new_value) == (-0.5, None)


def test_outcomes_and_decided_scores_are_merged_and_taken_back(database: Database) -> None:
    plain = talk("a", "b")
    commands.add_conversation(database, plain)
    decided = Score(rater="judge", value=0.25)
    question, reply = plain.messages
    scored = replace(
        plain,
        messages=(question, replace(reply, adjudicated=decided)),
        outcomes=(Score(rater="ann", value=1.0),),
    )
    import_id = bring(database, scored)
    (merged,) = everything(database)
    assert merged.messages[1].adjudicated is not None
    assert merged.messages[1].adjudicated.value == 0.25
    assert [outcome.value for outcome in merged.outcomes] == [1.0]
    commands.undo_import(database, import_id)
    (left,) = everything(database)
    assert left.messages[1].adjudicated is None
    assert left.outcomes == ()


def test_what_people_scored_since_is_named(database: Database, user_id: int) -> None:
    import_id = bring(database, scored_talk(("a", 0.5), ("b", None), rater="ann"))
    message_id = reply_id(database)
    for value in (0.1, 0.2):
        commands.set_score(database, user_id=user_id, message_id=message_id, value=value)
    conversation_id = everything(database)[0].id
    assert conversation_id is not None
    commands.set_outcome(database, user_id=user_id, conversation_id=conversation_id, value=0.5)
    assert queries.undo_effects(database, import_id).scores_since == (("local", 2),)
