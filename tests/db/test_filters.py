"""The conversations table finds, counts, orders and pages."""

import pytest
from sqlalchemy import event

from db import commands, queries
from db.engine import Database
from db.enums import ReviewState, Role
from db.records import Conversation, ConversationFilter, ConversationOrder, Message, ScoredFilter
from tests.db.building import scored_talk, talk


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


def test_next_unscored_walks_through_and_wraps_around(database: Database, user_id: int) -> None:
    ids, _ = commands.add_conversations(
        database,
        [scored_talk(("a", None), ("b", None)), talk("no reply"), scored_talk(("c", 1.0))],
    )
    (a, b), (c,) = (
        [m.id for m in queries.conversation(database, id).assistant_messages]
        for id in (ids[0], ids[2])
    )
    assert a is not None and b is not None and c is not None  # scored by another rater

    def following(after: tuple[int, int] | None) -> tuple[int, int] | None:
        return queries.next_unscored(database, user_id=user_id, after=after)

    assert following(None) == (ids[0], a)
    assert following((ids[0], a)) == (ids[0], b)
    assert following((ids[0], b)) == (ids[2], c)
    assert following((ids[2], c)) == (ids[0], a)
    commands.set_score(database, user_id=user_id, message_id=a, value=0)
    assert following((ids[2], c)) == (ids[0], b)
    commands.set_review(
        database, user_id=user_id, conversation_id=ids[0], state=ReviewState.SKIPPED
    )
    assert following(None) == (ids[2], c)
    commands.set_archived(database, [ids[2]], True)
    assert following((ids[2], c)) is None


def test_a_conversation_needs_no_user_message_to_be_listed(
    database: Database, user_id: int
) -> None:
    commands.add_conversation(
        database, Conversation(messages=(Message(role=Role.ASSISTANT, content="hello"),))
    )
    (row,) = queries.conversation_rows(database, ConversationFilter(), user_id=user_id)
    assert (row.title, row.mean_score) == ("", None)
