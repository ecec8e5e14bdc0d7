from datetime import UTC, datetime, timedelta

import pytest

from app.components.format import ago, counted, plain, score_text, shortened
from app.components.narrowing import in_words
from db.records import ConversationFilter

NOW = datetime(2026, 5, 1, 12, tzinfo=UTC)


def test_zero_is_a_score_and_none_is_not() -> None:
    assert score_text(0.0) == "0.00"
    assert score_text(-0.7) == "−0.70"
    assert score_text(None) == "not scored"


@pytest.mark.parametrize(
    ("seconds", "words"),
    [
        (0, "just now"),
        (-5, "just now"),
        (59, "59 s ago"),
        (61, "1 min ago"),
        (3600 * 5, "5 h ago"),
        (86400 * 3, "3 d ago"),
        (86400 * 61, "2 months ago"),
        (86400 * 800, "2 years ago"),
    ],
)
def test_times_are_told_in_the_largest_fitting_unit(seconds: float, words: str) -> None:
    assert ago(NOW - timedelta(seconds=seconds), NOW) == words


def test_counts_carry_their_noun() -> None:
    assert counted(1, "turn") == "1 turn"
    assert counted(1204, "turn") == "1,204 turns"
    assert counted(2, "reply", "replies") == "2 replies"


def test_long_names_are_cut_with_an_ellipsis() -> None:
    assert shortened("a  b\nc") == "a b c"
    assert shortened("x" * 80, 10) == "x" * 9 + "…"


def test_no_sign_of_markup_stays_unescaped_or_next_to_another() -> None:
    escaped = plain("**a** :smile: <b> [x](y) $1$ -> `c`")
    signs = [i for i, char in enumerate(escaped) if char in "*:<>[]()$-`"]
    assert signs
    assert all(escaped[i - 1] == "\\" and escaped[i + 1] == "\u2060" for i in signs)


def test_a_plain_name_stays_as_it_is() -> None:
    assert plain("Parcel lost 3") == "Parcel lost 3"


def test_filters_are_told_in_words() -> None:
    everything = ConversationFilter(
        tags=("support", "de"),
        sources=("typed", "import:a.jsonl"),
        run_id=7,
        flagged=True,
        rater="ann",
        least_raters=1,
        score_range=(-0.5, 1.0),
    )
    assert in_words(ConversationFilter()) == ""
    assert in_words(everything) == (
        "tagged support and de, from typed or import:a.jsonl, with replies of run 7, flagged, "
        "scored by ann, scored by at least 1 person, with a mean score of −0.50 to 1.00"
    )
