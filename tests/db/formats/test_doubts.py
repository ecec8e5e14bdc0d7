"""Scores that are suspicious as a whole are flagged, and not used where nobody can tell their scale."""

import pytest

from db.formats import Scale, ScoreRule
from db.records import IssueOutcome
from tests.db.formats.reading import clean, found, lines, said, taken


def rated(*values: object, name: str = "rating") -> bytes:
    return lines(*({"prompt": "q", "completion": str(i), name: v} for i, v in enumerate(values)))


@pytest.mark.parametrize(
    ("values", "label"),
    [
        ([1, 1, 1], "all the same"),
        ([5, 5, 5, 5], "all the same"),
        ([0, None, 0, 0], "all the same"),
        (["4", 4, "4,0", "★★★★"], "all the same"),
        (["85%", 0.3], "some in percent"),
        ([0.3, 0.4, "85 %"], "some in percent"),
        (["4/5", "3/5"], "no plain numbers"),
        (["3 stars", "1 star", 4], "no plain numbers"),
        (["9 out of 10"], "no plain numbers"),
    ],
)
@pytest.mark.parametrize("name", ["rating", "stars"])
def test_scores_whose_scale_nobody_can_tell_are_left_out_until_a_person_says_so(
    values: list[object], label: str, name: str
) -> None:
    data = rated(*values, name=name)
    (seen,) = found(data).scores
    assert seen.doubt is not None
    assert (seen.doubt.label, seen.scale.used) == (label, False)
    conversations, issues = taken(data)
    assert [len(c.messages[1].scores) for c in conversations] == [0] * len(values)
    (issue,) = issues
    assert (issue.row, issue.field, issue.outcome) == (0, name, IssueOutcome.FLAGGED)
    assert issue.reason.startswith(f"of the scores named {name!r} ")
    assert issue.reason.endswith("; they are left out")
    assert issue.remedy


def test_a_person_who_knows_the_scale_can_use_them_and_is_still_told() -> None:
    stars = Scale(name="rating", low=1.0, high=5.0, to_low=0.0)
    conversations, (issue,) = taken(rated(1, 1, 1), rule=ScoreRule((stars,)))
    assert [said(c)[1][2] for c in conversations] == [0.0] * 3
    assert issue.reason.endswith("all 3 in the rows looked at are 1, and no other value tells whether that is much; they are read so: 1 to 5 becomes 0 to 1")  # fmt: skip


@pytest.mark.parametrize(
    ("values", "name", "words", "score"),
    [
        ([True, True, True], "label", "no is 0, yes is 1", 1.0),
        ([True, True, True], "rating", "no is 0, yes is 1", 1.0),
        (["Good", "good", "good"], "rating", "no is 0, yes is 1", 1.0),
        ([1, 1.0, "1"], "score", "as it is", 1.0),
        ([0, 0, 0], "reward", "as it is", 0.0),
    ],
)
def test_scores_that_are_clear_but_set_no_reply_apart_are_used_and_flagged(
    values: list[object], name: str, words: str, score: float
) -> None:
    conversations, (issue,) = taken(rated(*values, name=name))
    assert [said(c)[1][2] for c in conversations] == [score] * 3
    assert (issue.field, issue.outcome) == (name, IssueOutcome.FLAGGED)
    assert issue.reason.endswith(f"and set no reply apart; they are read so: {words}")
    unused = ScoreRule((Scale(name=name, used=False),))
    _, issues = taken(rated(*values, name=name), rule=unused)
    assert issues == []


def test_grades_that_a_format_defines_are_used_and_flagged() -> None:
    row = {"prompt": "q", "helpfulness": 0, "correctness": 4, "coherence": 4, "verbosity": 1}
    conversations, issues = taken(lines(*({**row, "response": str(i)} for i in range(3))))
    assert [said(c)[1][2] for c in conversations] == [0.0] * 3
    assert [issue.field for issue in issues] == ["helpfulness"]  # the others are not used anyway


def test_two_alike_prove_nothing() -> None:
    assert [said(c)[1][2] for c in clean(rated(5, 5))] == [1.0, 1.0]


def test_percentages_are_read_as_such() -> None:
    data = rated("85%", "40 %", "100%", "0,5%")
    assert found(data).rule.scales[0].words == "0 to 100 becomes 0 to 1"
    assert [said(c)[1][2] for c in clean(data)] == pytest.approx([0.85, 0.4, 1.0, 0.005])
    conversations, (issue,) = taken(rated("85%", "40%", "140%"))
    assert (len(conversations), issue.row, issue.outcome) == (3, 3, IssueOutcome.FLAGGED)
    assert "140 is outside the scale from 0 to 100" in issue.reason
