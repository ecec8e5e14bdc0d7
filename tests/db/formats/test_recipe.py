"""The seed recipe's turns with rewards: zero is a score, null and a missing reward are none."""

import json

from tests.db.formats.reading import clean, found, said


def test_rewards_are_read_and_zero_is_told_from_missing() -> None:
    turns = [
        {"user": "a", "assistant": "b", "reward": 0},
        {"user": "c", "assistant": "d", "reward": None},
        {"user": "e", "assistant": "f"},
        {"user": "g", "assistant": "h", "reward": -1},
    ]
    data = json.dumps([{"turns": turns}], indent=2).encode()
    assert found(data).format == "recipe"
    (conversation,) = clean(data)
    assert said(conversation) == [
        ("user", "a"), ("assistant", "b", 0.0), ("user", "c"), ("assistant", "d"),
        ("user", "e"), ("assistant", "f"), ("user", "g"), ("assistant", "h", -1.0),
    ]  # fmt: skip
    assert {score.rater for m in conversation.messages for score in m.scores} == {"imported"}
