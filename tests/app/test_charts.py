"""The charts' numbers, worked out by hand."""

import base64
import json
import math
import re
from collections.abc import Sequence
from types import SimpleNamespace

import numpy as np
import plotly.graph_objects as go
import pytest

from app.components import palette
from app.components.charts_learning import heat_chart, learning_chart, signals_chart
from app.components.charts_steps import (
    busy_chart,
    grad_norm_chart,
    kl_chart,
    memory_chart,
    speed_chart,
)
from app.components.charts_turns import TurnView, clip_chart, loss_chart, ratio_chart
from app.components.columns import Columns, Points
from app.components.learning import LearningSeries, cells_of
from app.components.turn_series import MEASURES, PositionSeries, of_conversation
from app.metrics import STEP_CURVES
from db.records import StepMetric, TurnMetric
from tests.app.rows import step_row, turn_row


def numbers(values):
    """What stands in a figure's JSON for numbers: a list, or their bytes."""
    if not isinstance(values, dict):
        return values
    flat = np.frombuffer(base64.b64decode(values["bdata"]), values["dtype"])
    shape = [int(size) for size in values.get("shape", str(len(flat))).split(",")]
    return np.round(flat.astype(float), 6).reshape(shape).tolist()


def drawn(chart) -> list[SimpleNamespace]:
    """The traces that a chart hands to the browser, their numbers as lists."""
    traces = json.loads(chart.figure.to_json())["data"]
    arrays = ("x", "y", "z", "customdata")
    return [
        SimpleNamespace(**{k: numbers(v) if k in arrays else v for k, v in one.items()})
        for one in traces
    ]


def trace(chart, name: str) -> SimpleNamespace:
    return next(t for t in drawn(chart) if getattr(t, "name", "") == name)


def by_step(rows: Sequence[TurnMetric]) -> list[list[TurnMetric]]:
    steps = sorted({row.step for row in rows})
    return [[row for row in rows if row.step == step] for step in steps]


def positions(rows: Sequence[TurnMetric]) -> PositionSeries:
    series = PositionSeries()
    for members in by_step(rows):
        series.put(members)
    return series


def learned(rows: Sequence[TurnMetric]) -> LearningSeries:
    series = LearningSeries()
    for members in by_step(rows):
        series.put(members)
    return series


def view(*rows: TurnMetric) -> TurnView:
    series = positions(rows)
    last = max((row.step for row in rows), default=0)
    return TurnView(turns={name: series.points(name) for name in MEASURES}, last_step=last)


def steps(*rows: StepMetric) -> dict[str, Points]:
    columns = Columns(list(StepMetric.__dataclass_fields__))
    for row in rows:
        columns.append({name: getattr(row, name) for name in StepMetric.__dataclass_fields__})
    about = ("step", "epoch", "loss", "lr")
    return {name: columns.points(name, about=about) for name in STEP_CURVES}


def learning(rows: Sequence[TurnMetric]):
    series = learned(rows)
    return learning_chart(series.points(), series.cells())


def test_position_points_are_the_median_and_the_middle_half():
    rows = [turn_row(0, c, 0, loss_mean=value) for c, value in enumerate([5.0, 2.0, 3.0, 4.0, 1.0])]
    ((low, median, high, number),) = (
        positions(rows).points("loss")[0].rows("loss_low", "loss", "loss_high", "conversations")
    )
    assert (low, median, high, number) == (2.0, 3.0, 4.0, 5)


def test_position_points_skip_values_that_are_no_number():
    rows = [
        turn_row(0, 0, 0, loss_mean=math.nan),
        turn_row(0, 1, 0, loss_mean=2.0),
        turn_row(1, 0, 0),
        turn_row(2, 0, 0, loss_mean=math.inf),
    ]
    points = positions(rows).points("loss")[0]
    assert list(points.rows("step", "loss")) == [(0, 2.0), (1, 0.0)]


def test_a_step_that_is_given_again_with_more_rows_replaces_itself():
    series = PositionSeries()
    first, second = turn_row(0, 0, 0, loss_mean=1.0), turn_row(0, 1, 0, loss_mean=3.0)
    series.put([first])
    series.put([first, second])
    assert list(series.points("loss")[0].rows("loss", "conversations")) == [(2.0, 2)]


def test_one_conversation_shows_its_rows_in_order_of_steps():
    rows = [turn_row(1, 3, 0, loss_mean=0.2), turn_row(0, 3, 0, loss_mean=0.1)]
    series = of_conversation(rows, lambda r: r.loss_mean)
    assert [r.loss_mean for r in series[0]] == [0.1, 0.2]


def test_learning_weighs_each_change_with_advantage_and_tokens():
    rows = [
        turn_row(0, 0, 0, advantage=0.5, response_tokens=10, logprob_mean=-2.0),
        turn_row(0, 0, 1, advantage=-0.5, response_tokens=30, logprob_mean=-1.0),
        turn_row(1, 0, 0, advantage=0.5, response_tokens=10, logprob_mean=-1.6),
        turn_row(1, 0, 1, advantage=-0.5, response_tokens=30, logprob_mean=-1.2),
    ]
    first, second = learned(rows).points().rows("signal", "favoured", "avoided")
    assert first == (0.0, 0.0, 0.0)
    # (0.5·10·0.4 + 0.5·30·0.2) / (0.5·40)
    assert second == pytest.approx((0.25, 0.4, -0.2))


def test_learning_chart_breaks_no_line_at_a_step_without_praised_replies():
    rows = [turn_row(0, 0, 0, advantage=-0.5), turn_row(1, 0, 0, advantage=-0.5, logprob_mean=-1.5)]
    chart = learning(rows)
    assert not any(math.isfinite(y) for y in trace(chart, "replies to favour").y)
    assert trace(chart, "change × advantage").y == [0.0, 0.5]


def test_learning_chart_gives_way_to_words_until_a_second_epoch_has_begun():
    first = [turn_row(0, 0, 0, epoch=0), turn_row(1, 1, 0, epoch=0)]
    assert "comes with epoch 2" in learning(first).instead
    assert not learning([*first, turn_row(2, 0, 0, epoch=1)]).instead


def test_the_heat_map_tells_turns_and_epochs_and_favour_from_avoid():
    rows = [
        turn_row(0, 0, 0, advantage=1.0, logprob_mean=-1.0),
        turn_row(0, 1, 0, advantage=-1.0, logprob_mean=-1.0),
        turn_row(0, 0, 1, advantage=1.0, logprob_mean=-3.0),
        turn_row(1, 0, 0, advantage=1.0, logprob_mean=-0.5),
        turn_row(1, 1, 0, advantage=-1.0, logprob_mean=-1.25),
        turn_row(1, 0, 1, advantage=1.0, logprob_mean=-3.0),
    ]
    chart = heat_chart(learned(rows).cells())
    favour, avoid = drawn(chart)
    assert (favour.x, favour.y) == ([2], [1, 2])
    assert (favour.z, avoid.z) == ([[0.5], [0.0]], [[-0.25], [None]])
    assert (favour.xaxis, avoid.xaxis) == ("x", "x2")
    scale = chart.figure.layout["coloraxis"]
    assert (scale["cmin"], scale["cmax"]) == (-0.5, 0.5)


def test_the_heat_map_of_one_conversation_is_that_of_its_rows():
    rows = [turn_row(0, 3, 0, advantage=1.0), turn_row(1, 3, 0, advantage=1.0, logprob_mean=-0.5)]
    assert cells_of(rows) == learned(rows).cells()


def test_a_heat_map_of_one_kind_of_replies_has_one_panel():
    rows = [turn_row(0, 0, 0, advantage=-1.0), turn_row(1, 0, 0, advantage=-1.0)]
    chart = heat_chart(learned(rows).cells())
    assert [t.uid for t in drawn(chart)] == ["to-avoid"]
    assert "xaxis2" not in chart.figure.layout


def test_the_heat_map_waits_for_a_second_epoch():
    assert "comes with epoch 2" in heat_chart(learned([turn_row(0, 0, 0)]).cells()).instead


def test_turns_without_a_signal_are_counted_and_shown_by_position():
    first = {
        (0, 0): turn_row(0, 0, 0, advantage=0.5),
        (1, 0): turn_row(0, 1, 0, advantage=0.0),
        (0, 1): turn_row(0, 0, 1, advantage=-0.5),
    }
    chart = signals_chart(first)
    assert "1 of 3 turns have no signal" in chart.reading
    assert trace(chart, "no signal").y == [1, 0]
    assert trace(chart, "to avoid").y == [0, 1]
    everything = signals_chart({(0, 0): turn_row(0, 0, 0, advantage=0.5)})
    assert "Every one of 1 turn" in everything.reading


def test_loss_chart_draws_one_line_a_turn_in_the_turns_colour_counted_from_one():
    chart = loss_chart(view(turn_row(0, 0, 0, loss_mean=0.5), turn_row(0, 0, 1, loss_mean=-0.5)))
    second = trace(chart, "2")
    assert (second.x, second.y) == ([1], [-0.5])
    assert second.line["color"] == palette.turn_colour(1)
    assert "turn 2: -0.500" in chart.alt


def test_a_band_is_drawn_only_where_conversations_differ():
    same = loss_chart(view(turn_row(0, 0, 0), turn_row(0, 1, 0)))
    spread = loss_chart(view(turn_row(0, 0, 0), turn_row(0, 1, 0, loss_mean=1.0)))
    assert len(drawn(same)) == 1
    assert [t.y for t in drawn(spread)] == [[0.25], [0.75], [0.5]]


def test_hover_of_a_median_tells_epoch_spread_number_advantage_and_reward():
    rows = [turn_row(0, 0, 0), turn_row(0, 1, 0, loss_mean=1.0)]
    median = drawn(loss_chart(view(*rows)))[-1]
    assert median.customdata == [[1, 0.25, 0.75, 2, 0.1, 0.5]]
    assert "mean reward" in median.hovertemplate


def test_hover_tells_no_reward_where_a_turn_has_none():
    median = drawn(loss_chart(view(turn_row(0, 0, 0, reward=None))))[-1]
    assert "reward" not in median.hovertemplate


def test_hover_of_one_conversation_tells_title_turn_reward_and_advantage():
    rows = (turn_row(0, 0, 1, advantage=-0.25),)
    chosen = TurnView(turns={}, last_step=0, conversation=rows, title="<b>parcel</b>")
    line = trace(loss_chart(chosen), "2")
    assert tuple(line.customdata[0]) == (1, "&lt;b>parcel&lt;/b>", "+0.50", "-0.250", 10)
    assert "turn 2" in line.hovertemplate


def test_ratio_chart_draws_the_clip_bounds_of_the_run():
    chart = ratio_chart(view(turn_row(0, 0, 0), turn_row(3, 0, 0)), (0.7, 1.3))
    assert trace(chart, "clip at 0.7").y == [0.7, 0.7]
    assert trace(chart, "clip at 1.3").x == [0.5, 4.5]


def test_ratio_chart_of_an_unclipped_loss_draws_no_bounds():
    assert len(drawn(ratio_chart(view(turn_row(0, 0, 0)), None))) == 1


def test_guides_know_that_the_recipes_ratio_does_not_start_at_one():
    recomputed = ratio_chart(view(), (0.8, 1.2)).guide
    constant = ratio_chart(view(), (0.8, 1.2), constant_old=True).guide
    assert "starts at exactly 1, necessarily" in recomputed
    assert "not at 1" in constant
    assert "only its change" in kl_chart(steps(), 0.0, constant_old=True).guide


def test_clip_chart_shows_both_meanings_side_by_side():
    left, right = drawn(clip_chart(view(turn_row(0, 0, 0, clipfrac=0.9, clipfrac_binding=0.4))))
    assert (left.y, left.xaxis) == ([0.9], "x")
    assert (right.y, right.xaxis) == ([0.4], "x2")
    assert (left.showlegend, right.showlegend) == (True, False)


def test_kl_limit_is_drawn_once_it_is_in_sight_and_told_from_the_start():
    near = kl_chart(steps(step_row(0, kl=0.2)), 0.5)
    far = kl_chart(steps(step_row(0, kl=0.001)), 0.5)
    none = kl_chart(steps(step_row(0, kl=0.2)), 0.0)
    assert [len(drawn(chart)) for chart in (near, far, none)] == [2, 1, 1]
    assert drawn(near)[1].y == [0.5, 0.5]
    assert "**0.001 of 0.5**" in far.reading
    assert not none.reading


def test_kl_to_the_base_has_a_line_of_its_own_only_where_it_differs():
    same = kl_chart(steps(step_row(0, kl=0.1, kl_base=0.1), step_row(1, kl=0.2, kl_base=0.2)), 0.0)
    assert len(drawn(same)) == 1
    unknown = kl_chart(steps(step_row(0, kl=0.1)), 0.0)
    assert len(drawn(unknown)) == 1
    other = kl_chart(steps(step_row(0, kl=0.1, kl_base=0.0), step_row(1, kl=0.1, kl_base=0.4)), 0.5)
    assert trace(other, "to the base model").y == [0.0, 0.4]
    assert drawn(other)[-1].y == [0.5, 0.5]  # the limit, which KL to the base is near
    assert "0.400 of 0.5" in other.reading


def test_step_charts_leave_out_what_is_no_number():
    chart = grad_norm_chart(steps(step_row(0), step_row(1, grad_norm=math.nan)), 0.0)
    assert drawn(chart)[0].y == [0.2]
    assert speed_chart(steps(step_row(0, tokens_per_s=math.inf))).alt.endswith("no values yet.")


def test_memory_is_shown_in_gigabytes():
    chart = memory_chart(steps(step_row(0, memory_bytes=2_500_000_000)))
    assert drawn(chart)[0].y == [2.5]


def test_how_busy_the_gpu_was_is_shown_where_it_was_measured_else_the_processor():
    nothing = busy_chart(steps(step_row(0)))
    processor = busy_chart(steps(step_row(0, cpu_percent=40.0)))
    both = busy_chart(steps(step_row(0, cpu_percent=40.0, gpu_percent=90.0)))
    assert nothing is None
    assert processor is not None and "CPU in use" in processor.title
    assert both is not None and "GPU in use" in both.title
    assert [t.y for t in drawn(both)] == [[90.0], [40.0]]


def every_chart(turns: TurnView, curves, rows):
    series = learned(rows)
    return [
        learning_chart(series.points(), series.cells()),
        heat_chart(series.cells()),
        signals_chart(series.first),
        loss_chart(turns),
        ratio_chart(turns, (0.8, 1.2)),
        clip_chart(turns),
        kl_chart(curves, 0.5),
        grad_norm_chart(curves, 1.0),
        speed_chart(curves),
        memory_chart(curves),
    ]


def test_every_chart_is_drawn_without_any_rows():
    charts = every_chart(view(), steps(), [])
    assert len({chart.key for chart in charts}) == len(charts)
    assert all("no values yet" in chart.alt for chart in charts)


def test_no_chart_hands_nan_to_the_browser_whatever_was_measured():
    bad = {"loss_mean": math.nan, "ratio_mean": math.inf, "clipfrac": math.nan}
    bad |= {"logprob_mean": -math.inf, "clipfrac_binding": math.nan}
    rows = [turn_row(0, 0, 0), turn_row(1, 0, 0, **bad), turn_row(2, 0, 0)]
    curves = steps(step_row(0), step_row(1, kl=math.nan, grad_norm=math.inf), step_row(2))
    for chart in every_chart(view(*rows), curves, rows):
        assert "NaN" not in chart.figure.to_json()
        assert "nan" not in chart.alt
        lines = [t for t in drawn(chart) if t.type == "scatter" and t.uid != "favoured"]
        assert all(math.isfinite(y) for t in lines for y in t.y if t.uid != "avoided")


def test_every_trace_has_a_name_of_its_own_by_which_a_redraw_knows_it_again():
    rows = [turn_row(s, c, t, loss_mean=c + s) for s in (0, 1) for c in (0, 1) for t in (0, 1)]
    for chart in every_chart(view(*rows), steps(step_row(0), step_row(1)), rows):
        names = [t.uid for t in drawn(chart)]
        assert len(set(names)) == len(names), chart.key
        # Plotly looks for CSS classes made of them when it saves a picture.
        assert all(re.fullmatch(r"[\w-]+", name) for name in names), chart.key


def test_plotlys_own_classes_find_nothing_wrong_with_the_figures():
    rows = [turn_row(s, c, t, loss_mean=c + s) for s in (0, 1) for c in (0, 1) for t in (0, 1)]
    one = TurnView(turns={}, last_step=1, conversation=rows[:2], title="x")
    for turns in (view(*rows), one):
        for chart in every_chart(turns, steps(step_row(0), step_row(1, kl=0.4)), rows):
            go.Figure(json.loads(chart.figure.to_json()))


def luminance(colour: str) -> float:
    channels = [int(colour[i : i + 2], 16) / 255 for i in (1, 3, 5)]
    linear = [c / 12.92 if c <= 0.03928 else ((c + 0.055) / 1.055) ** 2.4 for c in channels]
    return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]


@pytest.mark.parametrize("colour", [*palette.TURN_COLOURS, palette.NEUTRAL])
def test_colours_can_be_told_from_a_white_and_from_a_black_page(colour: str):
    light = 1.05 / (luminance(colour) + 0.05)
    dark = (luminance(colour) + 0.05) / (luminance("#0e1117") + 0.05)
    assert min(light, dark) >= 3


def test_turns_stay_distinct_beyond_the_number_of_colours():
    looks = [(palette.turn_colour(t), palette.turn_marker(t)) for t in range(24)]
    assert len(set(looks)) == 24
