"""What the figures of a run say, in plain words."""

import math

import pytest

from app.components.learning import Movement
from app.components.reading import likelier, read_learning


def moved(favour: float, avoid: float) -> Movement:
    """Ten tokens of each kind with advantage 1 and -1, moved by so many nats each."""
    return Movement(10 * favour - 10 * avoid, 20.0, 10 * favour, 10, 10 * avoid, 10)


@pytest.mark.parametrize(
    ("favour", "avoid", "verdict"),
    [
        (0.2, -0.1, "**Yes, it moves as the scores ask.**"),
        (0.2, 0.0, "**Yes, it moves as the scores ask.**"),
        (0.3, 0.1, "**Partly.** It tells good from bad, but learns to speak like all of the data"),
        (-0.1, -0.4, "**Partly.** It leaves what was scored low, but what was scored high as well"),
        (0.001, 0.001, "**Not yet: hardly anything has moved.**"),
        (-0.2, 0.1, "**No, it moves against the scores.**"),
    ],
)
def test_the_verdict_follows_both_kinds_of_replies(favour: float, avoid: float, verdict: str):
    assert verdict in read_learning(moved(favour, avoid))


def test_the_reading_tells_how_much_likelier_the_replies_have_become():
    text = read_learning(moved(math.log(1.25), math.log(0.9)))
    assert "Replies to favour have become 25.0% likelier per token" in text
    assert "replies to avoid have become 10.0% less likely per token" in text


def test_a_kind_of_reply_that_the_data_lack_is_not_spoken_of():
    text = read_learning(Movement(1.0, 10.0, 1.0, 10, 0.0, 0))
    assert "avoid" not in text
    assert "**Yes" in text


def test_nothing_but_zero_advantages_is_nothing_to_learn():
    assert "**Nothing to learn:**" in read_learning(Movement())


def test_large_changes_are_told_as_a_factor():
    assert likelier(math.log(3)) == "3.0 times as likely per token"
    assert likelier(-math.log(2)) == "50.0% less likely per token"
    assert likelier(0.0) == "neither likelier nor less likely"
