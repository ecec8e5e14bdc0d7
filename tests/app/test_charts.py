"""The charts' numbers, worked out by hand."""

import math
from collections.abc import Sequence

import plotly.io
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


def trace(figure, name: str):
    return next(t for t in figure.data if t.name == name)


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
    figure = learning(rows).figure
    assert not any(math.isfinite(y) for y in trace(figure, "replies to favour").y)
    assert list(trace(figure, "change × advantage").y) == [0.0, 0.5]


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
    figure = heat_chart(learned(rows).cells()).figure
    favour, avoid = figure.data
    assert (list(favour.x), list(favour.y)) == ([2], [1, 2])
    assert [list(row) for row in favour.z] == [[0.5], [0.0]]
    assert [list(row) for row in avoid.z] == [[-0.25], [None]]
    assert (figure.layout.coloraxis.cmin, figure.layout.coloraxis.cmax) == (-0.5, 0.5)


def test_the_heat_map_of_one_conversation_is_that_of_its_rows():
    rows = [turn_row(0, 3, 0, advantage=1.0), turn_row(1, 3, 0, advantage=1.0, logprob_mean=-0.5)]
    assert cells_of(rows) == learned(rows).cells()


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
    assert list(trace(chart.figure, "no signal").y) == [1, 0]
    assert list(trace(chart.figure, "to avoid").y) == [0, 1]
    everything = signals_chart({(0, 0): turn_row(0, 0, 0, advantage=0.5)})
    assert "Every one of 1 turn" in everything.reading


def test_loss_chart_draws_one_line_a_turn_in_the_turns_colour_counted_from_one():
    chart = loss_chart(view(turn_row(0, 0, 0, loss_mean=0.5), turn_row(0, 0, 1, loss_mean=-0.5)))
    second = trace(chart.figure, "2")
    assert (list(second.x), list(second.y)) == ([1], [-0.5])
    assert second.line.color == palette.turn_colour(1)
    assert "turn 2: -0.500" in chart.alt


def test_a_band_is_drawn_only_where_conversations_differ():
    same = loss_chart(view(turn_row(0, 0, 0), turn_row(0, 1, 0))).figure
    spread = loss_chart(view(turn_row(0, 0, 0), turn_row(0, 1, 0, loss_mean=1.0))).figure
    assert len(same.data) == 1
    assert [list(t.y) for t in spread.data] == [[0.25], [0.75], [0.5]]


def test_hover_of_one_conversation_tells_title_turn_reward_and_advantage():
    rows = (turn_row(0, 0, 1, advantage=-0.25),)
    chosen = TurnView(turns={}, last_step=0, conversation=rows, title="<b>parcel</b>")
    line = trace(loss_chart(chosen).figure, "2")
    assert tuple(line.customdata[0]) == (1, "&lt;b>parcel&lt;/b>", "+0.50", "-0.250", 10)
    assert "turn 2" in line.hovertemplate


def test_ratio_chart_draws_the_clip_bounds_of_the_run():
    figure = ratio_chart(view(turn_row(0, 0, 0), turn_row(3, 0, 0)), (0.7, 1.3)).figure
    assert trace(figure, "clip at 0.7").y == (0.7, 0.7)
    assert trace(figure, "clip at 1.3").x == (0.5, 4.5)


def test_ratio_chart_of_an_unclipped_loss_draws_no_bounds():
    assert len(ratio_chart(view(turn_row(0, 0, 0)), None).figure.data) == 1


def test_guides_know_that_the_recipes_ratio_does_not_start_at_one():
    recomputed = ratio_chart(view(), (0.8, 1.2)).guide
    constant = ratio_chart(view(), (0.8, 1.2), constant_old=True).guide
    assert "starts at exactly 1, necessarily" in recomputed
    assert "not at 1" in constant
    assert "only its change" in kl_chart(steps(), 0.0, constant_old=True).guide


def test_clip_chart_shows_both_meanings_side_by_side():
    figure = clip_chart(view(turn_row(0, 0, 0, clipfrac=0.9, clipfrac_binding=0.4))).figure
    left, right = figure.data
    assert (list(left.y), left.xaxis) == ([0.9], "x")
    assert (list(right.y), right.xaxis) == ([0.4], "x2")
    assert (left.showlegend, right.showlegend) == (True, False)


def test_kl_limit_is_drawn_once_it_is_in_sight_and_told_from_the_start():
    near = kl_chart(steps(step_row(0, kl=0.2)), 0.5)
    far = kl_chart(steps(step_row(0, kl=0.001)), 0.5)
    none = kl_chart(steps(step_row(0, kl=0.2)), 0.0)
    assert [len(chart.figure.data) for chart in (near, far, none)] == [2, 1, 1]
    assert near.figure.data[1].y == (0.5, 0.5)
    assert "**0.001 of 0.5**" in far.reading
    assert not none.reading


def test_kl_to_the_base_has_a_line_of_its_own_only_where_it_differs():
    same = kl_chart(steps(step_row(0, kl=0.1, kl_base=0.1), step_row(1, kl=0.2, kl_base=0.2)), 0.0)
    assert len(same.figure.data) == 1
    unknown = kl_chart(steps(step_row(0, kl=0.1)), 0.0)
    assert len(unknown.figure.data) == 1
    other = kl_chart(
        steps(step_row(0, kl=0.1, kl_base=0.0), step_row(1, kl=0.1, kl_base=0.4)), 0.5
    )
    assert list(trace(other.figure, "to the base model").y) == [0.0, 0.4]
    assert other.figure.data[-1].y == (0.5, 0.5)  # the limit, which KL to the base is near
    assert "0.400 of 0.5" in other.reading


def test_step_charts_leave_out_what_is_no_number():
    figure = grad_norm_chart(steps(step_row(0), step_row(1, grad_norm=math.nan)), 0.0).figure
    assert list(figure.data[0].y) == [0.2]
    assert speed_chart(steps(step_row(0, tokens_per_s=math.inf))).alt.endswith("no values yet.")


def test_memory_is_shown_in_gigabytes():
    chart = memory_chart(steps(step_row(0, memory_bytes=2_500_000_000)))
    assert list(chart.figure.data[0].y) == [2.5]


def test_how_busy_the_gpu_was_is_shown_where_it_was_measured_else_the_processor():
    nothing = busy_chart(steps(step_row(0)))
    processor = busy_chart(steps(step_row(0, cpu_percent=40.0)))
    both = busy_chart(steps(step_row(0, cpu_percent=40.0, gpu_percent=90.0)))
    assert nothing is None
    assert processor is not None and "CPU in use" in processor.title
    assert both is not None and "GPU in use" in both.title
    assert [list(t.y) for t in both.figure.data] == [[90.0], [40.0]]


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
        assert "NaN" not in plotly.io.to_json(chart.figure, validate=False)
        assert "nan" not in chart.alt


def test_every_trace_has_a_name_of_its_own_by_which_a_redraw_knows_it_again():
    rows = [turn_row(s, c, t, loss_mean=c + s) for s in (0, 1) for c in (0, 1) for t in (0, 1)]
    for chart in every_chart(view(*rows), steps(step_row(0), step_row(1)), rows):
        names = [t.uid for t in chart.figure.data]
        assert None not in names
        assert len(set(names)) == len(names), chart.key


def luminance(colour: str) -> float:
    channels = [int(colour[i : i + 2], 16) / 255 for i in (1, 3, 5)]
    linear = [c / 12.92 if c <= 0.03928 else ((c + 0.055) / 1.055) ** 2.4 for c in channels]
    return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]


@pytest.mark.parametrize("colour", {*palette.TURN_COLOURS, palette.NEUTRAL})
def test_colours_can_be_told_from_a_white_and_from_a_black_page(colour: str):
    light = 1.05 / (luminance(colour) + 0.05)
    dark = (luminance(colour) + 0.05) / (luminance("#0e1117") + 0.05)
    assert min(light, dark) >= 3


def test_turns_stay_distinct_beyond_the_number_of_colours():
    looks = [(palette.turn_colour(t), palette.turn_marker(t)) for t in range(24)]
    assert len(set(looks)) == 24
