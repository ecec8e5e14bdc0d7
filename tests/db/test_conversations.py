"""Conversations are stored whole, found, changed and deleted."""

from dataclasses import replace

import pytest

from db import commands, queries
from db.engine import Database
from db.enums import ReviewState, Role
from db.errors import DataError, NotFoundError
from db.records import Conversation, ConversationFilter, Message, Score
from tests.db.backends import ON_EVERY_DATABASE
from tests.db.building import queued_run, scored_talk, talk

pytestmark = ON_EVERY_DATABASE

FULL = Conversation(
    title="t",
    system="s",
    source="typed",
    tags=("a", "b"),
    messages=(
        Message(role=Role.USER, content="q"),
        Message(
            role=Role.ASSISTANT,
            content="",
            tool_calls=({"function": {"name": "f", "arguments": {"x": [1, None]}}},),
            scores=(Score(rater="ann", value=0.0, note="n"), Score(rater="bob", value=-1.0)),
            model="m",
            token_ids=(1, 2),
            logprobs=(-0.1, -1e-300),
            sampling={"temperature": 1.0, "seed": 3},
        ),
        Message(role=Role.TOOL, content="r", tool_call_id="c"),
    ),
    outcomes=(Score(rater="bob", value=0.25, note="o"),),
)


def without_facts(conversation: Conversation) -> Conversation:
    """Return the conversation without ids and times that the database gave it."""

    def bare(scores: tuple[Score, ...]) -> tuple[Score, ...]:
        return tuple(replace(score, at=None) for score in scores)

    messages = tuple(replace(m, id=None, scores=bare(m.scores)) for m in conversation.messages)
    return replace(
        conversation,
        id=None,
        created_at=None,
        updated_at=None,
        messages=messages,
        outcomes=bare(conversation.outcomes),
    )


def test_what_goes_in_comes_out(database: Database) -> None:
    stored = queries.conversation(database, commands.add_conversation(database, FULL))
    assert without_facts(stored) == FULL
    assert stored.created_at is not None and stored.created_at.tzinfo is not None
    assert all(message.id is not None for message in stored.messages)


def test_a_message_remembers_the_run_that_sampled_it_until_that_is_deleted(
    database: Database,
) -> None:
    run = queued_run(database)
    reply = Message(role=Role.ASSISTANT, content="x", run_id=run.id)
    id = commands.add_conversation(database, Conversation(messages=(reply,)))
    assert queries.conversation(database, id).messages[0].run_id == run.id
    commands.delete_run(database, run.id)
    assert queries.conversation(database, id).messages[0].run_id is None


def test_conversations_come_in_the_asked_order(database: Database) -> None:
    ids, _ = commands.add_conversations(database, [talk(f"q{i}") for i in range(5)])
    wanted = [ids[3], ids[0], ids[3]]
    assert [c.id for c in queries.conversations(database, wanted)] == wanted


@pytest.mark.parametrize("id", [99, -1, 2**63, 10**30])
def test_a_conversation_that_is_not_there(database: Database, id: int) -> None:
    with pytest.raises(NotFoundError):
        queries.conversation(database, id)
    with pytest.raises(NotFoundError):
        commands.duplicate_conversation(database, id)
    with pytest.raises(NotFoundError):
        commands.update_conversation(database, id, talk("x"))


@pytest.mark.parametrize(
    "bad",
    [
        Conversation(messages=()),
        scored_talk(("a", float("nan"))),
        scored_talk(("a", 1.5)),
        scored_talk(("a", 0.5), rater=" "),
        replace(talk("q"), outcomes=(Score(rater="r", value=-2.0),)),
        Conversation(
            messages=(Message(role=Role.USER, content="q", scores=(Score(rater="r", value=0.0),)),)
        ),
        Conversation(messages=(Message(role=Role.USER, content="q", tool_calls=({},)),)),
        Conversation(messages=(Message(role=Role.ASSISTANT, content="a", logprobs=(-1.0,)),)),
        Conversation(
            messages=(
                Message(role=Role.ASSISTANT, content="a", token_ids=(1,), logprobs=(-1e999,)),
            )
        ),
    ],
)
def test_what_cannot_be_stored_is_refused_and_nothing_of_it_is_kept(
    database: Database, bad: Conversation
) -> None:
    with pytest.raises(DataError):
        commands.add_conversations(database, [talk("good", "one"), bad])
    assert queries.overview(database).conversations == 0


def test_duplicates_are_told_by_what_was_said_not_by_scores(database: Database) -> None:
    first = scored_talk(("a", 0.5))
    (id,), duplicates = commands.add_conversations(
        database, [first, replace(scored_talk(("a", None)), title="another title")]
    )
    assert duplicates == 1
    ids, duplicates = commands.add_conversations(
        database, [first, scored_talk(("b", 0.5)), replace(first, system="s")]
    )
    assert (len(ids), duplicates) == (2, 1)
    assert id not in ids
    assert commands.add_conversation(database, first) not in (id, *ids)  # typed twice is allowed


def test_scores_of_duplicates_are_merged_by_rater(database: Database) -> None:
    mine = scored_talk(("a", 0.5), ("b", None), rater="ann")
    (id,), _ = commands.add_conversations(database, [mine])
    again = scored_talk(("a", -1.0), ("b", 1.0), rater="ann")
    other = replace(
        scored_talk(("a", 0.0), ("b", None), rater="bob"),
        outcomes=(Score(rater="bob", value=0.25),),
    )
    for _ in range(2):  # the second time there is nothing new
        assert commands.add_conversations(database, [again, other]) == ([], 2)
        turns = queries.conversation(database, id).assistant_messages
        assert [[(s.rater, s.value) for s in turn.scores] for turn in turns] == [
            [("ann", 0.5), ("bob", 0.0)],
            [("ann", 1.0)],
        ]
        assert [o.value for o in queries.conversation(database, id).outcomes] == [0.25]


def test_updating_keeps_rows_and_scores_of_messages_with_an_id(database: Database) -> None:
    before = queries.conversation(
        database, commands.add_conversation(database, scored_talk(("a", 0.5), ("b", 1.0)))
    )
    ask, a, ask_b, b = before.messages
    assert before.id is not None
    new = Message(role=Role.ASSISTANT, content="new", scores=(Score(rater="imported", value=-0.5),))
    moved = (ask, replace(b, content="b, edited", scores=()), replace(ask_b, content="and"), new)
    commands.update_conversation(
        database, before.id, replace(before, title="T", tags=("x",), messages=moved)
    )
    after = queries.conversation(database, before.id)
    assert [m.content for m in after.messages] == [ask.content, "b, edited", "and", "new"]
    assert [m.id for m in after.messages[:3]] == [ask.id, b.id, ask_b.id]
    assert [m.scores[0].value for m in after.assistant_messages] == [1.0, -0.5]
    assert (after.title, after.tags) == ("T", ("x",))
    assert after.updated_at is not None and before.updated_at is not None
    assert after.updated_at > before.updated_at
    assert all(event.message_id != a.id for event in queries.score_events(database))


def test_editing_a_sampled_reply_drops_what_was_sampled(database: Database) -> None:
    id = commands.add_conversation(database, FULL)
    before = queries.conversation(database, id)
    commands.update_conversation(database, id, replace(before, title="only the title"))
    assert queries.conversation(database, id).messages == before.messages
    reply = replace(before.messages[1], content="edited")
    commands.update_conversation(
        database, id, replace(before, messages=(before.messages[0], reply))
    )
    edited = queries.conversation(database, id).messages[1]
    assert (edited.model, edited.token_ids, edited.logprobs) == (None, None, None)
    assert edited.scores == before.messages[1].scores


def test_a_reply_that_becomes_a_question_loses_its_scores(database: Database) -> None:
    id = commands.add_conversation(database, scored_talk(("a", 0.5)))
    ask, a = queries.conversation(database, id).messages
    turned = replace(a, role=Role.USER, scores=())
    commands.update_conversation(database, id, Conversation(messages=(ask, turned)))
    assert [m.scores for m in queries.conversation(database, id).messages] == [(), ()]


def test_updating_refuses_messages_of_another_conversation(database: Database) -> None:
    ids, _ = commands.add_conversations(database, [talk("a", "b"), talk("c", "d")])
    foreign = queries.conversation(database, ids[1])
    with pytest.raises(DataError, match="meanwhile"):
        commands.update_conversation(database, ids[0], foreign)
    assert [m.content for m in queries.conversation(database, ids[0]).messages] == ["a", "b"]


def test_an_updated_conversation_is_a_duplicate_of_its_new_words(database: Database) -> None:
    id = commands.add_conversation(database, talk("a", "b"))
    commands.update_conversation(database, id, talk("c", "d"))
    assert commands.add_conversations(database, [talk("c", "d")]) == ([], 1)


def test_duplicating_leaves_scores_behind(database: Database) -> None:
    copy = queries.conversation(
        database,
        commands.duplicate_conversation(database, commands.add_conversation(database, FULL)),
    )
    assert copy.title == "t (copy)"
    assert [m.content for m in copy.messages] == [m.content for m in FULL.messages]
    assert copy.messages[1].scores == copy.outcomes == ()


def test_deleting_takes_everything_along(database: Database, user_id: int) -> None:
    ids, _ = commands.add_conversations(database, [FULL, talk("q", "a")])
    commands.set_review(database, user_id=user_id, conversation_id=ids[0], state=ReviewState.DONE)
    assert commands.delete_conversations(database, [ids[0], 12345]) == 1
    assert queries.conversation_ids(database, ConversationFilter(), user_id=user_id) == [ids[1]]
    assert queries.score_events(database) == []
    assert queries.all_tags(database) == []
    new = commands.add_conversation(database, talk("new"))
    assert new > max(ids)  # an address never leads to another conversation


def test_tags_and_archive(database: Database, user_id: int) -> None:
    ids, _ = commands.add_conversations(database, [talk("a"), talk("b")], source="typed")
    commands.set_tags(database, [*ids, 999], [" x ", "y", "x", ""])
    assert queries.all_tags(database) == ["x", "y"]
    assert queries.all_sources(database) == ["typed"]
    commands.set_archived(database, [ids[0]], True)

    def shown(archived: bool) -> list[int]:
        return queries.conversation_ids(
            database, ConversationFilter(archived=archived, tags=("x", "y")), user_id=user_id
        )

    assert (shown(False), shown(True)) == ([ids[1]], [ids[0]])
    assert queries.overview(database).conversations == 1


def test_unstorable_characters_never_crash(database: Database, user_id: int) -> None:
    bad = "a\x00b\ud800"
    id = commands.add_conversation(database, talk(bad, bad, title=bad, system=bad, tags=(bad,)))
    stored = queries.conversation(database, id)
    assert {stored.title, stored.system, *stored.tags, *(m.content for m in stored.messages)} == {
        "a\ufffdb\ufffd"
    }
    found = queries.conversation_ids(database, ConversationFilter(text=bad), user_id=user_id)
    assert found == [id]
    assert commands.add_conversations(database, [talk(bad, bad, system=bad)]) == ([], 1)
