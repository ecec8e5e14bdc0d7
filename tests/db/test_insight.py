"""What all scores together say, with numbers worked by hand."""

import pytest

from db import commands, queries
from db.engine import Database
from db.queries import insight
from db.records import Conversation
from tests.db.backends import ON_EVERY_DATABASE
from tests.db.building import rated_talk, talk

pytestmark = ON_EVERY_DATABASE

TALKS = (
    rated_talk({"anna": 0.2, "ben": 0.4}, {"anna": 1.0}, title="one", tags=("support", "hard")),
    rated_talk({"anna": 0.2}, {}, title="two", tags=("support",)),
    rated_talk({}, title="three"),
)


def add(database: Database, *talks: Conversation) -> list[int]:
    return [commands.add_conversation(database, talk) for talk in talks]


def test_scores_are_counted_by_rater_and_twentieth(database: Database) -> None:
    add(database, *TALKS)
    counts = [(c.rater, c.value, c.count) for c in insight.score_counts(database)]
    assert counts == [("anna", 0.2, 2), ("anna", 1.0, 1), ("ben", 0.4, 1)]


def test_raters_have_number_mean_and_deviation(database: Database) -> None:
    add(database, *TALKS)
    anna, ben = insight.rater_summaries(database)
    assert (anna.rater, anna.scores) == ("anna", 3)
    assert anna.mean == pytest.approx(1.4 / 3)
    assert anna.deviation == pytest.approx(0.46188, abs=1e-5)
    assert (ben.rater, ben.mean, ben.deviation) == ("ben", pytest.approx(0.4), None)


def test_tags_mean_over_turns_each_as_the_mean_of_its_raters(database: Database) -> None:
    add(database, *TALKS)
    tags = {t.tag: t for t in insight.tag_summaries(database)}
    assert set(tags) == {"support", "hard", ""}
    support = tags["support"]
    assert (support.conversations, support.turns, support.scored_turns) == (2, 4, 3)
    assert support.mean == pytest.approx((0.3 + 1.0 + 0.2) / 3)
    assert (tags[""].turns, tags[""].scored_turns, tags[""].mean) == (1, 0, None)


def test_positions_tell_mean_and_what_is_not_scored(database: Database) -> None:
    add(database, *TALKS)
    first, second = insight.position_summaries(database)
    assert (first.turn, first.turns, first.scored_turns) == (0, 3, 2)
    assert first.mean == pytest.approx(0.25)
    assert (second.turn, second.turns, second.scored_turns, second.mean) == (1, 2, 1, 1.0)


def test_conversations_are_scored_in_full_in_part_or_not_at_all(database: Database) -> None:
    add(database, *TALKS, talk("only a question"))
    counts = insight.scored_counts(database)
    assert (counts.none, counts.partly, counts.fully) == (1, 1, 1)


def replies(*pairs: tuple[int, float]) -> list[Conversation]:
    return [rated_talk({"anna": score}, replies=("x" * chars,)) for chars, score in pairs]


def test_longer_and_better_go_together_whatever_the_shape(database: Database) -> None:
    add(database, *replies((10, 0.0), (20, 0.1), (30, 0.2), (9000, 1.0)))
    bias = insight.length_bias(database)
    assert bias.replies == 4
    assert bias.correlation == pytest.approx(1.0)
    assert [(b.shortest, b.mean) for b in bias.bands] == [
        (10, 0.0), (20, 0.1), (30, 0.2), (9000, 1.0),
    ]  # fmt: skip


def test_equal_lengths_share_their_rank(database: Database) -> None:
    add(database, *replies((10, 0.0), (10, 1.0), (20, 0.5)))
    # ranks of length 1.5, 1.5, 3 and of score 1, 3, 2: their covariance is 0
    assert insight.length_bias(database).correlation == pytest.approx(0.0)
    add(database, *replies((30, 1.0)))
    # lengths 1.5, 1.5, 3, 4 and scores 1, 3.5, 2, 3.5: covariance 1.75 of 4.5, 4.5
    assert insight.length_bias(database).correlation == pytest.approx(1.75 / 4.5)


def test_where_nothing_varies_there_is_no_correlation(database: Database) -> None:
    assert insight.length_bias(database).correlation is None
    add(database, *replies((10, 0.5), (20, 0.5)))
    assert insight.length_bias(database).correlation is None


def test_the_archive_takes_no_part(database: Database) -> None:
    ids = add(database, *TALKS)
    commands.set_archived(database, ids, True)
    assert insight.score_counts(database) == []
    assert insight.rater_summaries(database) == []
    assert insight.tag_summaries(database) == []
    assert insight.position_summaries(database) == []
    assert insight.scored_counts(database).none == 0
    assert insight.length_bias(database).replies == 0


def test_whatever_changes_the_pictures_changes_the_version(
    database: Database, user_id: int
) -> None:
    versions = {queries.data_version(database)}

    def changed() -> bool:
        before = len(versions)
        versions.add(queries.data_version(database))
        return len(versions) > before

    (id,) = add(database, TALKS[0])
    assert changed()
    message_id = queries.conversation(database, id).messages[1].id
    assert message_id is not None
    commands.set_score(database, user_id=user_id, message_id=message_id, value=0.0)
    assert changed()
    commands.set_tags(database, [id], ("support", "hard", "new"))
    assert changed()
    commands.set_archived(database, [id], True)
    assert changed()
    commands.delete_conversations(database, [id])
    assert changed()


def test_texts_are_what_was_said_in_order(database: Database) -> None:
    ids = add(database, talk("a", "b"), talk("c", "d"))
    assert insight.texts(database, ids[::-1]) == {ids[0]: "a\nb", ids[1]: "c\nd"}
