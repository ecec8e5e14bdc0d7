"""UltraFeedback: several graded replies to one instruction, and its binarised form."""

from db.formats import Scale, ScoreRule
from db.records import IssueOutcome
from tests.db.formats.reading import (
    COLOUR,
    clean,
    found,
    lines,
    outcomes_of,
    prompt_group,
    said,
    taken,
)


def test_ultrafeedback_overall_scores_ratings_and_contradictions() -> None:
    def completion(text: str, overall: object, *ratings: str) -> dict[str, object]:
        names = ("helpfulness", "honesty")
        aspects = {n: {"Rating": r, "Rationale": "."} for n, r in zip(names, ratings, strict=False)}
        return {"model": "m", "response": text, "overall_score": overall, "annotations": aspects}

    data = lines(
        {
            "instruction": COLOUR,
            "completions": [
                completion("Blue.", 10.0, "5", "N/A"),
                completion("Well.", 5.5, "3", "3"),
                completion("No.", 10.0, "1", "1"),
            ],
        }
    )
    conversations, issues = taken(data)
    assert [said(c) for c in conversations] == [
        [("user", COLOUR), ("assistant", "Blue.", 1.0)],
        [("user", COLOUR), ("assistant", "Well.", 0.5)],
        [("user", COLOUR), ("assistant", "No.")],
    ]
    assert {c.group for c in conversations} == {prompt_group(COLOUR)}
    assert conversations[0].messages[1].model == "m"
    (issue,) = issues
    assert (issue.row, issue.field) == (1, "completions[2].overall_score")
    assert issue.outcome is IssueOutcome.FLAGGED
    assert "contradicts the ratings 1, 1 of 5" in issue.reason
    by_aspect = ScoreRule((Scale(name="overall_score", used=False),
                           Scale(name="helpfulness", low=1.0, high=5.0, to_low=0.0)))  # fmt: skip
    conversations, _ = taken(data, rule=by_aspect)
    assert [said(c)[1][2] for c in conversations] == [1.0, 0.5, 0.0]


def test_ultrafeedback_binarised() -> None:
    ask = {"role": "user", "content": COLOUR}
    row = {
        "prompt": COLOUR,
        "chosen": [ask, {"role": "assistant", "content": "Blue."}],
        "rejected": [ask, {"role": "assistant", "content": "No."}],
        "score_chosen": 10.0,
        "score_rejected": 5.5,
    }
    assert found(lines(row)).format == "ultrafeedback"
    chosen, rejected = clean(lines(row))
    assert said(chosen) == [("user", COLOUR), ("assistant", "Blue.", 1.0)]
    assert said(rejected) == [("user", COLOUR), ("assistant", "No.", 0.5)]
    swapped = {**row, "score_chosen": 2.0, "score_rejected": 9.0}
    conversations, issues = taken(lines(swapped))
    assert [len(c.messages[1].scores) for c in conversations] == [0, 0]
    assert outcomes_of(issues) == [(1, IssueOutcome.FLAGGED)] * 2
