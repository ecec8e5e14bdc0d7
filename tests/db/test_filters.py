"""The conversations table finds, counts, orders and pages."""

from dataclasses import replace

import pytest
from sqlalchemy import event

from db import commands, queries
from db.engine import Database
from db.enums import ReviewState, Role
from db.records import Conversation, ConversationFilter, ConversationOrder, Message, ScoredFilter
from tests.db.backends import ON_EVERY_DATABASE
from tests.db.building import queued_run, scored_talk, talk

pytestmark = ON_EVERY_DATABASE


def found(database: Database, user_id: int, filter: ConversationFilter) -> list[int]:
    ids = queries.conversation_ids(database, filter, user_id=user_id)
    assert queries.count_conversations(database, filter, user_id=user_id) == len(ids)
    rows = queries.conversation_rows(database, filter, user_id=user_id, limit=None)
    assert [row.id for row in rows] == ids
    return ids


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("PARCEL", [1]),  # the title
        ("kind", [2]),  # the system prompt
        ("\u00c4RGER", [3]),  # a message, beyond ASCII
        ("50%", [4]),  # no wildcard
        ("5_%", []),
        ("back\\slash", [4]),
        ("/", [4]),
        ("  parcel ", [1]),
        ("", [4, 3, 2, 1]),
        ("a" * 200_000, []),
    ],
)
def test_search_looks_at_title_system_and_messages(
    database: Database, user_id: int, text: str, expected: list[int]
) -> None:
    commands.add_conversations(
        database,
        [
            talk("q1", title="My parcel"),
            talk("q2", system="Be Kind"),
            talk("q3", "so ein \u00e4rger"),
            talk("500 and 50% and back\\slash and a/b"),
        ],
    )
    assert found(database, user_id, ConversationFilter(text=text)) == expected


def test_filters_by_scores(database: Database, user_id: int) -> None:
    none, partly, fully, question = commands.add_conversations(
        database,
        [
            scored_talk(("a", None), ("b", None)),
            scored_talk(("c", 0.0), ("d", None)),
            scored_talk(("e", 0.0), ("f", -1.0)),
            talk("nobody answers"),
        ],
    )[0]
    expected: dict[ScoredFilter, list[int]] = {
        "any": [none, partly, fully, question],
        "none": [none, question],
        "partly": [partly],
        "fully": [fully],
    }
    for scored, ids in expected.items():
        assert found(database, user_id, ConversationFilter(scored=scored, order="oldest")) == ids


def test_orders(database: Database, user_id: int) -> None:
    half, none, full = commands.add_conversations(
        database,
        [
            scored_talk(("a", 0.0), ("b", None)),
            talk("c", "d", title="\u00c4pfel"),
            Conversation(title="\u00e4hre", messages=scored_talk(("e", 1.0)).messages),
        ],
    )[0]
    expected: dict[ConversationOrder, list[int]] = {
        "newest": [full, none, half],
        "oldest": [half, none, full],
        "title": [half, full, none],  # the first has none and goes by "ask for a"
        "least_scored": [none, half, full],
    }
    for order, ids in expected.items():
        assert found(database, user_id, ConversationFilter(order=order)) == ids


def test_filters_by_tag_source_and_review(database: Database, user_id: int) -> None:
    (first,), _ = commands.add_conversations(database, [talk("a", tags=("x", "y"))], source="one")
    (second,), _ = commands.add_conversations(database, [talk("b", tags=("x",))], source="two")
    commands.set_review(database, user_id=user_id, conversation_id=first, state=ReviewState.FLAGGED)
    for filter, ids in [
        (ConversationFilter(tags=("x",)), [second, first]),
        (ConversationFilter(tags=("x", "y")), [first]),
        (ConversationFilter(sources=("two",)), [second]),
        (ConversationFilter(sources=("one", "two")), [second, first]),
        (ConversationFilter(review=ReviewState.FLAGGED), [first]),
        (ConversationFilter(review=ReviewState.OPEN), [second]),
    ]:
        assert found(database, user_id, filter) == ids
    commands.set_review(database, user_id=user_id, conversation_id=first, state=ReviewState.OPEN)
    assert found(database, user_id, ConversationFilter(review=ReviewState.OPEN)) == [second, first]
    assert found(database, user_id + 1, ConversationFilter(review=ReviewState.FLAGGED)) == []


def test_rows_say_what_the_table_shows(database: Database, user_id: int) -> None:
    id = commands.add_conversation(
        database, scored_talk(("a", 0.0), ("b", 1.0), ("c", None), rater="ann")
    )
    commands.add_conversations(database, [scored_talk(("a", -0.25), ("b", None), ("c", None))])
    (row,) = queries.conversation_rows(database, ConversationFilter(), user_id=user_id)
    assert (row.id, row.title, row.turns, row.scored_turns) == (id, "ask for a", 3, 2)
    assert row.mean_score == pytest.approx(0.25)
    assert row.review is ReviewState.OPEN


def test_a_page_takes_the_same_few_queries_however_long_it_is(
    database: Database, user_id: int
) -> None:
    commands.add_conversations(database, [scored_talk((f"{i}", 0.5)) for i in range(300)])
    statements: list[str] = []
    with database.read_session() as session:
        engine = session.get_bind().engine

    def count(*arguments: object) -> None:
        statements.append(str(arguments[2]))

    event.listen(engine, "before_cursor_execute", count)

    def queries_for(limit: int) -> int:
        statements.clear()
        rows = queries.conversation_rows(
            database, ConversationFilter(), user_id=user_id, limit=limit, offset=10
        )
        assert [row.id for row in rows] == list(range(290, 290 - limit, -1))
        queries.conversations(database, [row.id for row in rows])
        return len([s for s in statements if s.startswith("SELECT")])

    assert queries_for(2) == queries_for(200) <= 10


def test_next_unscored_looks_where_it_is_told(database: Database, user_id: int) -> None:
    ids, _ = commands.add_conversations(
        database,
        [scored_talk(("a", None), ("b", None)), talk("no reply"), scored_talk(("c", 1.0))],
    )
    (a, b), (c,) = (
        [m.id for m in queries.conversation(database, id).assistant_messages]
        for id in (ids[0], ids[2])
    )
    assert a is not None and b is not None and c is not None  # scored by another rater

    def first(among: list[int] | None = None) -> tuple[int, int] | None:
        return queries.next_unscored(database, user_id=user_id, ids=among)

    assert first() == (ids[0], a)
    assert first([ids[2], ids[0]]) == (ids[2], c)
    commands.set_score(database, user_id=user_id, message_id=a, value=0.0)
    assert first() == (ids[0], b)
    commands.set_score(database, user_id=user_id, message_id=b, value=0.0)
    assert first() == (ids[2], c)
    assert first([ids[1], ids[0]]) is None
    commands.set_review(
        database, user_id=user_id, conversation_id=ids[2], state=ReviewState.SKIPPED
    )
    assert first() is None
    commands.undo(database, user_id=user_id)
    commands.set_archived(database, [ids[2]], True)
    assert first() is None


def test_queues_by_run_score_range_raters_and_flag(database: Database, user_id: int) -> None:
    sampled = Message(role=Role.ASSISTANT, content="s", run_id=queued_run(database).id)
    low, high, own, none = commands.add_conversations(
        database,
        [
            scored_talk(("a", -0.5), rater="ann"),
            scored_talk(("b", 0.75), ("c", 0.25), rater="bob"),
            Conversation(messages=(sampled,)),
            talk("d", "e"),
        ],
    )[0]
    commands.set_review(database, user_id=user_id, conversation_id=none, state=ReviewState.FLAGGED)
    (first, _) = queries.conversation(database, high).assistant_messages
    assert first.id is not None
    commands.set_score(database, user_id=user_id, message_id=first.id, value=0.75)
    for filter, ids in [
        (ConversationFilter(run_id=sampled.run_id), [own]),
        (ConversationFilter(run_id=99), []),
        (ConversationFilter(score_range=(0.5, 1.0)), [high]),
        (ConversationFilter(score_range=(-1.0, 0.0)), [low]),
        (ConversationFilter(rater="ann"), [low]),
        (ConversationFilter(rater="nobody"), []),
        (ConversationFilter(least_raters=1), [high, low]),
        (ConversationFilter(least_raters=2), [high]),
        (ConversationFilter(least_raters=3), []),
        (ConversationFilter(flagged=True), [none]),
    ]:
        assert found(database, user_id, filter) == ids


def test_the_least_sure_replies_come_first(database: Database, user_id: int) -> None:
    def sampled(*logprobs: float) -> Conversation:
        text = f"reply {logprobs}"
        ids = tuple(range(len(logprobs)))
        reply = Message(role=Role.ASSISTANT, content=text, token_ids=ids, logprobs=logprobs)
        return Conversation(messages=(reply,))

    sure, unknown, unsure = commands.add_conversations(
        database, [sampled(-0.1, -0.2), talk("a", "b"), sampled(-2.0)]
    )[0]
    filter = ConversationFilter(order="uncertain")
    assert found(database, user_id, filter) == [unsure, sure, unknown]
    before = queries.conversation(database, unsure)
    edited = replace(before, messages=(replace(before.messages[0], content="typed"),))
    commands.update_conversation(database, unsure, edited)
    assert found(database, user_id, filter) == [sure, unknown, unsure]


def test_a_random_order_stays_and_differs_between_people(database: Database, user_id: int) -> None:
    ids, _ = commands.add_conversations(database, [talk(f"q{i}", "a") for i in range(40)])
    filter = ConversationFilter(order="random")
    first = queries.conversation_ids(database, filter, user_id=user_id)
    assert sorted(first) == ids != first
    assert queries.conversation_ids(database, filter, user_id=user_id) == first
    assert queries.conversation_ids(database, filter, user_id=user_id + 1) != first


def test_a_queue_offers_what_is_assigned_or_still_needs_raters(
    database: Database, user_id: int
) -> None:
    finished, begun, free, mine, theirs, silent = commands.add_conversations(
        database,
        [
            scored_talk(("a", 0.5), rater="ann"),
            scored_talk(("b", 0.5), ("c", None), rater="ann"),
            talk("d", "e"),
            talk("f", "g"),
            talk("h", "i"),
            talk("nobody answers"),
        ],
    )[0]
    ann = queries.score_events(database)[0].user_id
    commands.assign(database, [mine], [user_id])
    commands.assign(database, [theirs], [ann])

    def offered(user: int, wanted: int) -> list[int]:
        filter = ConversationFilter(raters_wanted=wanted, order="oldest")
        return found(database, user, filter)

    assert offered(user_id, 1) == [begun, free, mine]
    assert offered(user_id, 2) == [finished, begun, free, mine]
    assert offered(ann, 1) == [finished, begun, free, theirs]
    reply = queries.conversation(database, finished).assistant_messages[0]
    assert reply.id is not None
    commands.set_score(database, user_id=user_id, message_id=reply.id, value=1.0)
    assert offered(user_id, 1) == [finished, begun, free, mine]
    assert silent not in offered(user_id, 5)


def test_queue_counts_tell_every_state_and_what_is_left(database: Database, user_id: int) -> None:
    ids, _ = commands.add_conversations(
        database, [scored_talk(("a", None), ("b", None)), talk("c", "d"), talk("e", "f")]
    )
    reply = queries.conversation(database, ids[0]).assistant_messages[0].id
    assert reply is not None
    commands.set_score(database, user_id=user_id, message_id=reply, value=0.0)
    commands.set_review(database, user_id=user_id, conversation_id=ids[1], state=ReviewState.DONE)
    counts = queries.queue_counts(database, ConversationFilter(), user_id=user_id)
    assert {state.value: count for state, count in counts.conversations.items()} == {
        "open": 2,
        "done": 1,
        "skipped": 0,
        "flagged": 0,
    }
    assert (counts.turns, counts.scored_turns, counts.left) == (4, 1, 2)
    assert queries.last_place(database, user_id=user_id) == ids[1]


def test_a_conversation_needs_no_user_message_to_be_listed(
    database: Database, user_id: int
) -> None:
    commands.add_conversation(
        database, Conversation(messages=(Message(role=Role.ASSISTANT, content="hello"),))
    )
    (row,) = queries.conversation_rows(database, ConversationFilter(), user_id=user_id)
    assert (row.title, row.mean_score) == ("", None)
