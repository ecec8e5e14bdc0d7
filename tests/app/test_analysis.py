"""Alpha against published figures, leanings by hand, and what the numbers are said to mean."""

import pytest

from app import analysis, data
from app.analysis import Agreement, krippendorff_alpha
from app.components.agreement_charts import alpha_reading, leanings, spread_chart
from app.components.insight_charts import (
    MOST_RATERS,
    distribution_chart,
    length_chart,
    reading,
)
from app.components.names import chart_names
from db.records.agreement import RaterPair, Rating, SpreadCount
from db.records.insight import LengthBias, ScoreCount

_ = None
PUBLISHED = (  # three raters, fifteen units; interval alpha 0.811 (Wikipedia's worked example)
    (_, _, _, _, _, 3, 4, 1, 2, 1, 1, 3, 3, _, 3),
    (1, _, 2, 1, 3, 3, 4, 3, _, _, _, _, _, _, _),
    (_, _, 2, 1, 3, 4, 4, _, 2, 1, 1, 3, 3, _, 4),
)


def ratings(rows: tuple[tuple[float | None, ...], ...], scale: float = 1.0) -> list[Rating]:
    return [
        Rating(message_id=unit, user_id=rater, value=value * scale)
        for rater, row in enumerate(rows)
        for unit, value in enumerate(row)
        if value is not None
    ]


def test_alpha_is_the_published_one_on_any_scale():
    assert krippendorff_alpha(ratings(PUBLISHED)) == pytest.approx(0.811, abs=5e-4)
    assert krippendorff_alpha(ratings(PUBLISHED, 0.25)) == pytest.approx(0.811, abs=5e-4)


def test_alpha_is_1_in_agreement_and_below_0_in_opposition():
    assert krippendorff_alpha(ratings(((0.1, 0.9), (0.1, 0.9)))) == pytest.approx(1.0)
    against = krippendorff_alpha(ratings(((0.0, 1.0), (1.0, 0.0))))
    assert against is not None and against < 0


@pytest.mark.parametrize(
    "rows", [(), ((0.5, 0.5), (0.5, 0.5)), ((0.1, 0.2, 0.3),), ((0.1, None), (None, 0.9))]
)
def test_without_variety_or_shared_turns_alpha_is_not_defined(rows):
    assert krippendorff_alpha(ratings(rows)) is None


@pytest.mark.parametrize(
    ("alpha", "word"),
    [(0.8, "well"), (0.667, "fairly"), (0.5, "too little"), (-0.2, "chance"), (None, "defined")],
)
def test_alpha_is_said_in_words(alpha: float | None, word: str):
    assert word in alpha_reading(alpha)


def test_the_median_spread_is_that_of_the_middle_turn():
    spreads = (
        SpreadCount(spread=0.0, turns=2),
        SpreadCount(spread=0.4, turns=2),
        SpreadCount(spread=0.9, turns=1),
    )
    found = Agreement(alpha=None, alpha_turns=5, coverage=(), spreads=spreads, pairs=())
    assert (found.shared, found.median_spread) == (5, 0.4)


def test_a_leaning_weighs_each_pair_by_the_turns_of_both():
    pairs = [
        RaterPair(first="anna", second="ben", turns=30, apart=0.2, higher=0.2),
        RaterPair(first="anna", second="cara", turns=10, apart=0.2, higher=-0.2),
    ]
    found = {one.rater: (one.higher, one.comparisons) for one in leanings(pairs)}
    assert found["anna"] == (pytest.approx(0.1), 40)
    assert found["ben"] == (pytest.approx(-0.2), 30)
    assert found["cara"] == (pytest.approx(0.2), 10)


def test_the_spread_chart_says_how_many_lie_close_together():
    chart = spread_chart([SpreadCount(spread=0.1, turns=3), SpreadCount(spread=0.5, turns=1)])
    assert "75% lie at most 0.1 apart" in chart.alt


@pytest.mark.parametrize(
    ("correlation", "replies", "words"),
    [
        (0.05, 500, "No:"),
        (0.2, 500, "A little: longer"),
        (0.4, 500, "Yes, longer replies score clearly better"),
        (-0.7, 500, "Yes, shorter replies score much better"),
        (0.9, 29, "Too few"),
        (None, 500, "Too few"),
    ],
)
def test_length_bias_is_said_in_words(correlation: float | None, replies: int, words: str):
    bias = LengthBias(bands=(), replies=replies, correlation=correlation)
    assert words in reading(bias)
    assert words in length_chart(bias).guide


def test_a_warning_of_length_bias_says_what_the_model_will_learn():
    longer = reading(LengthBias(bands=(), replies=99, correlation=0.6))
    shorter = reading(LengthBias(bands=(), replies=99, correlation=-0.6))
    assert "write more" in longer and "Short replies that are good" in longer
    assert "write less" in shorter and "Long replies that are good" in shorter


def test_more_raters_than_colours_are_added_up():
    counts = [ScoreCount(rater=f"r{n}", step=10, count=n + 1) for n in range(MOST_RATERS + 3)]
    figure = distribution_chart(counts).figure
    names = [trace.name for trace in figure.data]
    assert names[-1] == "others" and len(names) == MOST_RATERS + 1
    assert sum(sum(trace.y) for trace in figure.data) == sum(c.count for c in counts)


def test_names_in_charts_are_short_distinct_and_without_markup():
    names = chart_names(["<b>x</b>", "a" * 90, "a" * 91, "ben"])
    assert not any(sign in "".join(names) for sign in "<>&")
    assert len(set(names)) == 4
    assert max(map(len, names)) < 32
    assert names[-1] == "ben"


def test_what_was_added_up_is_kept_until_something_changes(database, user, monkeypatch):
    calls: list[int] = []
    real = data.insight
    monkeypatch.setattr(data, "insight", lambda: calls.append(1) or real())
    analysis.insight()
    analysis.insight()
    assert len(calls) == 1
