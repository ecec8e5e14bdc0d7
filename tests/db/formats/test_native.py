"""EveryTurn's own form: scores with their raters, notes and times, outcomes, tags."""

import json

from db.formats import write
from db.records import Score
from tests.db.formats.reading import clean, lines


def test_a_direct_score_stands_beside_those_of_other_raters() -> None:
    row = {"role": "assistant", "content": "b", "score": 1, "scores": [{"rater": "r", "value": 0}]}
    (conversation,) = clean(lines({"messages": [row]}))
    assert conversation.messages[0].scores == (
        Score(rater="imported", value=1.0),
        Score(rater="r", value=0.0),
    )
    assert clean(lines(json.loads(write([conversation], "native")))) == [conversation]


def test_native_reads_scores_notes_and_outcomes() -> None:
    (conversation,) = clean(
        lines(
            {
                "title": "t",
                "system": "s",
                "tags": ["x", "y"],
                "messages": [
                    {"role": "user", "content": "q"},
                    {
                        "role": "assistant",
                        "content": "a",
                        "scores": [
                            {"rater": "ann", "value": 0, "note": "n", "at": "2026-01-31T12:00:00Z"},
                            {"value": 1},
                        ],
                    },
                ],
                "outcomes": [{"rater": "ann", "value": -0.5}],
            }
        )
    )
    ann, nameless = conversation.messages[1].scores
    assert (ann.rater, ann.value, ann.note) == ("ann", 0.0, "n")
    assert ann.at is not None and ann.at.isoformat() == "2026-01-31T12:00:00+00:00"
    assert (nameless.rater, nameless.value) == ("imported", 1.0)
    assert conversation.outcomes == (Score(rater="ann", value=-0.5),)
    assert (conversation.title, conversation.system, conversation.tags) == ("t", "s", ("x", "y"))
