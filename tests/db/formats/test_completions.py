"""A prompt, a completion and a number: how good it is."""

import pytest

from tests.db.formats.reading import COLOUR, clean, found, lines, said


@pytest.mark.parametrize(
    "row",
    [
        {"prompt": COLOUR, "completion": "Blue."},
        {"prompt": [{"role": "user", "content": COLOUR}], "completion": "Blue."},
        {"messages": [{"role": "user", "content": COLOUR}],
         "completion": [{"role": "assistant", "content": "Blue."}]},
    ],
)  # fmt: skip
@pytest.mark.parametrize(
    ("name", "values", "scores"),
    [
        ("score", [0.25, 0], [0.25, 0.0]),
        ("reward", [-1, "0.5"], [-1.0, 0.5]),
        ("rating", [5, 2], [1.0, 0.25]),
        ("stars", ["★★★☆☆", "★"], [0.5, 0.0]),
    ],
)
def test_the_number_becomes_the_score_of_the_last_turn(
    row: dict[str, object], name: str, values: list[object], scores: list[float]
) -> None:
    data = lines(*({**row, name: value} for value in [*values, None]))
    assert found(data).format == "completions"
    assert [said(conversation) for conversation in clean(data)] == [
        *([("user", COLOUR), ("assistant", "Blue.", score)] for score in scores),
        [("user", COLOUR), ("assistant", "Blue.")],
    ]


def test_several_numbers_become_their_mean() -> None:
    (conversation,) = clean(lines({"prompt": "q", "completion": "a", "score": 1, "reward": 0}))
    assert said(conversation) == [("user", "q"), ("assistant", "a", 0.5)]
