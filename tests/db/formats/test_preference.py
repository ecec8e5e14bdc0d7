"""A prompt with a chosen and a rejected reply."""

import pytest

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


@pytest.mark.parametrize(
    "row",
    [
        {"prompt": COLOUR, "chosen": "Blue.", "rejected": "No."},
        {"messages": [{"role": "user", "content": COLOUR}], "chosen": "Blue.", "rejected": "No."},
        {"prompt": [{"role": "user", "content": COLOUR}],
         "chosen": [{"role": "assistant", "content": "Blue."}],
         "rejected": [{"role": "assistant", "content": "No."}]},
        {"messages": [{"role": "user", "content": COLOUR}],
         "chosen": {"role": "assistant", "content": "Blue."},
         "rejected": {"role": "assistant", "content": "No."}},
    ],
)  # fmt: skip
def test_preference_pairs_in_their_variants(row: object) -> None:
    assert found(lines(row)).format == "preference"
    chosen, rejected = clean(lines(row))
    assert said(chosen) == [("user", COLOUR), ("assistant", "Blue.", 1.0)]
    assert said(rejected) == [("user", COLOUR), ("assistant", "No.", 0.0)]
    assert chosen.group == rejected.group == prompt_group(COLOUR)


def test_a_pair_of_equal_replies_is_one_unscored_conversation() -> None:
    (conversation,), issues = taken(lines({"prompt": "q", "chosen": "a", "rejected": "a"}))
    assert said(conversation) == [("user", "q"), ("assistant", "a")]
    assert conversation.group == ""
    assert outcomes_of(issues) == [(1, IssueOutcome.FLAGGED)]
