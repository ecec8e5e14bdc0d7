"""How foreign scores become the product's, by a rule that can be edited and stored."""

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from db.errors import DataError
from db.formats import Scale, ScaleKind, ScoreRule, ScoreTarget
from db.formats.guessing import guess_scale
from db.formats.values import UntrustedError
from db.records import IssueOutcome
from tests.db.formats.reading import found, lines, said, taken

STARS = Scale(name="s", low=1.0, high=5.0, to_low=0.0)
REVERSED = Scale(name="s", low=5.0, high=1.0, to_low=-1.0)
THUMB = Scale(name="s", kind=ScaleKind.YES_NO, to_low=0.0)
RANK = Scale(name="s", kind=ScaleKind.RANK, high=0.0, to_low=0.0)
FROM_ONE = Scale(name="s", kind=ScaleKind.RANK, high=1.0, to_low=-1.0)


@pytest.mark.parametrize(
    ("scale", "raw", "value"),
    [
        (STARS, 1, 0.0), (STARS, 2, 0.25), (STARS, 5, 1.0), (STARS, "4", 0.75), (STARS, "4,5", 0.875),
        (STARS, " 2.0 ", 0.25), (STARS, "★★★☆☆", 0.5), (STARS, "⭐⭐", 0.25),
        (STARS, None, None), (STARS, "", None), (STARS, "N/A", None), (STARS, "none", None),
        (REVERSED, 1, 1.0), (REVERSED, 3, 0.0), (REVERSED, 5, -1.0),
        (THUMB, True, 1.0), (THUMB, False, 0.0), (THUMB, "Chosen", 1.0), (THUMB, "rejected", 0.0),
        (THUMB, "thumbs down", 0.0), (THUMB, "👍", 1.0), (THUMB, 1, 1.0), (THUMB, 0, 0.0), (THUMB, None, None),
        (Scale(name="s"), 0, 0.0), (Scale(name="s"), -1, -1.0), (Scale(name="s"), 0.1, 0.1),
        (Scale(name="s", low=0.0, high=100.0, to_low=0.0), "75 %", 0.75),
    ],
)  # fmt: skip
def test_values_are_mapped(scale: Scale, raw: object, value: float | None) -> None:
    assert scale.value(raw) == value


@pytest.mark.parametrize(
    ("scale", "raw", "siblings", "value"),
    [(RANK, 0, 3, 1.0), (RANK, 1, 3, 0.5), (RANK, 2, 3, 0.0), (FROM_ONE, 1, 2, 1.0),
     (FROM_ONE, 2, 2, -1.0), (RANK, 0, 1, None)],
)  # fmt: skip
def test_ranks_are_mapped(scale: Scale, raw: object, siblings: int, value: float | None) -> None:
    assert scale.value(raw, siblings) == value


@pytest.mark.parametrize(
    ("scale", "raw", "words"),
    [
        (STARS, 6, "6 is outside the scale from 1 to 5"),
        (STARS, 0, "0 is outside"),
        (STARS, True, "True is not a number"),
        (STARS, "good", "'good' is not a number"),
        (STARS, "4/5", "is not a number"),
        (STARS, "4%", "is a percentage, and the scale goes from 1 to 5"),
        (RANK, "0%", "is a percentage"),
        (STARS, [4], "is not a number"),
        (STARS, float("nan"), "not a finite number"),
        (STARS, 10**400, "not a finite number"),
        (THUMB, "maybe", "neither yes nor no"),
        (THUMB, 2, "neither yes nor no"),
        (RANK, 3, "rank 3 is no place among 1 replies"),
        (RANK, 0.5, "is no place"),
        (RANK, "first", "is not a number"),
    ],
)
def test_values_off_the_scale_are_not_trusted(scale: Scale, raw: object, words: str) -> None:
    with pytest.raises(UntrustedError, match=words):
        scale.value(raw)


@given(
    low=st.integers(-100, 100), span=st.integers(1, 200), share=st.floats(0, 1), up=st.booleans()
)
def test_a_line_keeps_order_and_ends(low: int, span: int, share: float, up: bool) -> None:
    scale = Scale(name="s", low=float(low), high=float(low + span), to_low=0.0)
    if not up:
        scale = Scale(name="s", low=float(low + span), high=float(low), to_low=0.0)
    assert (scale.value(scale.low), scale.value(scale.high)) == (0.0, 1.0)
    between = scale.value(min(max(low + share * span, low), low + span))
    assert between is not None and 0 <= between <= 1


@pytest.mark.parametrize(
    ("name", "values", "words"),
    [
        ("reward", [0, 0.5, -1], "as it is"),
        ("reward", [0, 7, 1], "as it is"),  # one slip says nothing of the scale
        ("reward", [1, 2, 3, 4, 5], "1 to 5 becomes 0 to 1"),
        ("rating", [4, 5, None, "3"], "1 to 5 becomes 0 to 1"),
        ("grade", [0, 3, 4], "0 to 4 becomes 0 to 1"),
        ("rating", [1, 10, 7], "1 to 10 becomes 0 to 1"),
        ("rating", [55, 100, 0], "0 to 100 becomes 0 to 1"),
        ("rating", [-200, 300], "-200 to 300 becomes 0 to 1"),
        ("rating", [True, False], "no is 0, yes is 1"),
        ("rating", ["good", "bad", "good"], "no is 0, yes is 1"),
        ("remark", ["well", "so so"], "not used"),
        ("rating", [], "as it is"),
        ("rating", [7], "1 to 7 becomes 0 to 1"),
        ("rating", [9000], "as it is"),
        ("rating", [1, 1, 1], "1 to 5 becomes 0 to 1"),
        ("rating", [*[1] * 19, 2], "1 to 5 becomes 0 to 1"),
        ("score", [1, 1, 1], "as it is"),
        ("score", ["85%", "40 %"], "0 to 100 becomes 0 to 1"),
    ],
)
def test_the_suggested_scale(name: str, values: list[object], words: str) -> None:
    scale = guess_scale(name, values)
    assert scale.words == words
    scale.check()


def test_a_rule_survives_being_stored() -> None:
    rule = ScoreRule((STARS, Scale(name="t", kind=ScaleKind.RANK, target=ScoreTarget.CONVERSATION)))
    assert ScoreRule.from_json(json.loads(json.dumps(rule.to_json()))) == rule


@pytest.mark.parametrize(
    "data",
    [
        {},
        {"scales": 3},
        {"scales": [1]},
        {"scales": [{}]},
        {"scales": [{"name": "a", "other": 1}]},
        {"scales": [{"name": "a", "kind": "stars"}]},
        {"scales": [{"name": "a", "target": "moon"}]},
        {"scales": [{"name": "a", "low": "1"}]},
        {"scales": [{"name": "a", "low": 1, "high": 1}]},
        {"scales": [{"name": "a", "low": 10**400}]},
        {"scales": [{"name": "a", "to_high": 2}]},
        {"scales": [{"name": "a", "low": float("nan")}]},
        {"scales": [{"name": "a", "used": 1}]},
        {"scales": [{"name": "a"}, {"name": "a"}]},
        {"scales": [], "more": 1},
    ],
)
def test_a_malformed_rule_is_refused_in_words(data: dict[str, Any]) -> None:
    with pytest.raises(DataError) as caught:
        ScoreRule.from_json(data)
    assert caught.value.remedy


def rated(*values: object) -> bytes:
    return lines(
        *({"prompt": "q", "completion": str(i), "rating": v} for i, v in enumerate(values))
    )


def test_a_suspicious_value_is_left_out_and_reported_while_the_conversation_stays() -> None:
    conversations, issues = taken(rated(5, 4, 3, 5, 1, 2, *[4] * 60, 77))
    assert len(conversations) == 67
    assert said(conversations[-1]) == [("user", "q"), ("assistant", "66")]
    (issue,) = issues
    assert (issue.row, issue.field, issue.outcome) == (67, "rating", IssueOutcome.FLAGGED)
    assert "77 is outside the scale from 1 to 5" in issue.reason
    assert "1 to 5 becomes 0 to 1" in issue.remedy


def test_the_rule_is_the_persons_to_change() -> None:
    data = rated(0, 5, 10)
    assert [scale.words for scale in found(data).rule.scales] == ["0 to 10 becomes 0 to 1"]
    rule = ScoreRule((Scale(name="rating", low=0.0, high=10.0),))
    conversations, _ = taken(data, rule=rule)
    assert [said(c)[1][2] for c in conversations] == [-1.0, 0.0, 1.0]
    unused = ScoreRule((Scale(name="rating", used=False),))
    conversations, issues = taken(data, rule=unused)
    assert [len(c.messages[1].scores) for c in conversations] == [0, 0, 0]
    assert issues == []


def test_what_is_seen_of_scores_helps_to_check_the_rule() -> None:
    (seen,) = found(rated(5, 4, None, "n/a", 4, *[3] * 60, 77)).scores
    assert (seen.count, seen.missing, seen.untrusted) == (64, 2, 1)
    assert seen.examples == ("5", "4", "3", "77")
