"""Thinning: a chart of many points keeps its extremes and its ends."""

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from app.components.columns import MOST_POINTS, Columns, thinned


def test_few_points_are_all_kept():
    assert thinned([np.array([3.0, 1.0, 2.0])], 3).tolist() == [0, 1, 2]


def test_a_single_spike_among_many_points_is_kept_whichever_curve_it_is_on():
    flat, spiky, deep = np.zeros(12_500), np.zeros(12_500), np.zeros(12_500)
    spiky[7777] = 9.0
    deep[4321] = -9.0
    kept = thinned([flat, spiky, deep], MOST_POINTS)
    assert {0, 4321, 7777, 12_499} <= set(kept.tolist())


@given(
    values=st.lists(st.floats(-1e6, 1e6), min_size=1, max_size=400),
    most=st.integers(4, 60),
)
def test_the_extremes_and_the_ends_always_stay_and_the_rest_is_bounded(
    values: list[float], most: int
):
    kept = thinned([np.array(values)], most)
    drawn = [values[place] for place in kept]
    assert (min(drawn), max(drawn)) == (min(values), max(values))
    assert (kept[0], kept[-1]) == (0, len(values) - 1)
    assert list(kept) == sorted(set(kept.tolist()))
    assert len(kept) <= most + 2


def test_rows_without_a_finite_value_of_a_drawn_curve_are_left_out():
    columns = Columns(["step", "kl", "reward"])
    for step, kl in enumerate([0.1, math.nan, math.inf, None, 0.2]):
        columns.append({"step": step, "kl": kl, "reward": None})
    points = columns.points("kl", about=("step", "reward"))
    assert list(points.rows("step", "kl")) == [(0, 0.1), (4, 0.2)]
    assert all(math.isnan(reward) for (reward,) in points.rows("reward"))


def test_columns_grow_after_they_were_looked_at_and_what_was_seen_stays():
    columns = Columns(["step"])
    columns.append({"step": 1.0})
    seen = columns.points("step")
    columns.append({"step": 2.0})
    columns.drop_last()
    columns.append({"step": 3.0})
    assert seen["step"].tolist() == [1.0]
    assert columns.points("step")["step"].tolist() == [1.0, 3.0]


@pytest.mark.parametrize("length", [0, 1])
def test_no_point_and_one_point_are_fine(length: int):
    columns = Columns(["step"])
    for _ in range(length):
        columns.append({"step": 1.0})
    assert len(columns.points("step")) == length
