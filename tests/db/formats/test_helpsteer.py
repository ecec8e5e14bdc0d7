"""HelpSteer: grades from 0 to 4, and turns embedded in the prompt."""

from db.formats import Scale, ScoreRule
from tests.db.formats.reading import COLOUR, clean, lines, said, taken


def test_helpsteer_grades_and_embedded_turns() -> None:
    data = lines(
        {"prompt": COLOUR, "response": "Blue.", "helpfulness": 0, "correctness": 4, "coherence": 4,
         "complexity": 2, "verbosity": 1},
        {"prompt": "Hi\n<extra_id_1>Assistant\nHello\n<extra_id_1>User\nA colour?"
                   "\n<extra_id_1>Assistant\n",
         "response": "Red.", "helpfulness": 3, "correctness": 1, "coherence": 4,
         "complexity": 2, "verbosity": 1},
    )  # fmt: skip
    first, second = clean(data)
    assert said(first) == [("user", COLOUR), ("assistant", "Blue.", 0.0)]  # zero is a score
    assert said(second) == [
        ("user", "Hi"), ("assistant", "Hello"), ("user", "A colour?"), ("assistant", "Red.", 0.75)
    ]  # fmt: skip
    both = ScoreRule(
        tuple(
            Scale(name=n, low=0.0, high=4.0, to_low=0.0, used=n in ("helpfulness", "correctness"))
            for n in ("helpfulness", "correctness", "coherence", "complexity", "verbosity")
        )
    )
    (first, second), _ = taken(data, rule=both)
    assert (said(first)[-1][2], said(second)[-1][2]) == (0.5, 0.5)  # their mean
