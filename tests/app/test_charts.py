"""The charts' numbers, worked out by hand."""

import math

import pytest

from app.components import palette
from app.components.charts_steps import grad_norm_chart, kl_chart, learning_chart, speed_chart
from app.components.charts_turns import TurnView, clip_chart, loss_chart, ratio_chart
from app.components.turn_series import (
    by_position,
    learning_curve,
    learning_signal,
    of_conversation,
)
from tests.app.rows import step_row, turn_row


def trace(figure, name: str):
    return next(t for t in figure.data if t.name == name)


ALL = TurnView(conversation=None, titles={})


def test_position_points_are_the_median_and_the_middle_half():
    rows = [turn_row(0, c, 0, loss_mean=value) for c, value in enumerate([1.0, 2.0, 3.0, 4.0, 5.0])]
    (point,) = by_position(rows, lambda r: r.loss_mean)[0]
    assert (point.low, point.median, point.high, point.conversations) == (2.0, 3.0, 4.0, 5)


def test_position_points_skip_values_that_are_no_number():
    rows = [
        turn_row(0, 0, 0, loss_mean=math.nan),
        turn_row(0, 1, 0, loss_mean=2.0),
        turn_row(1, 0, 0),
    ]
    points = by_position(rows, lambda r: r.loss_mean)[0]
    assert [(p.step, p.median, p.conversations) for p in points] == [(0, 2.0, 1), (1, 0.0, 1)]


def test_position_points_without_any_reward_say_so():
    (point,) = by_position([turn_row(0, 0, 0, reward=None)], lambda r: r.loss_mean)[0]
    assert point.reward is None


def test_one_conversation_shows_only_its_own_rows_in_order_of_steps():
    rows = [turn_row(1, 3, 0, loss_mean=0.2), turn_row(0, 3, 0, loss_mean=0.1), turn_row(0, 4, 0)]
    series = of_conversation(rows, 3, lambda r: r.loss_mean)
    assert [r.loss_mean for r in series[0]] == [0.1, 0.2]


def test_learning_weighs_each_change_with_advantage_and_tokens():
    rows = [
        turn_row(0, 0, 0, advantage=0.5, response_tokens=10, logprob_mean=-2.0),
        turn_row(0, 0, 1, advantage=-0.5, response_tokens=30, logprob_mean=-1.0),
        turn_row(1, 0, 0, advantage=0.5, response_tokens=10, logprob_mean=-1.6),
        turn_row(1, 0, 1, advantage=-0.5, response_tokens=30, logprob_mean=-1.2),
    ]
    first, second = learning_curve(rows)
    assert (first.signal, first.praised, first.criticised) == (0.0, 0.0, 0.0)
    # (0.5·10·0.4 + 0.5·30·0.2) / (0.5·40)
    assert second.signal == pytest.approx(0.25)
    assert second.praised == pytest.approx(0.4)
    assert second.criticised == pytest.approx(-0.2)
    assert learning_signal(rows) == pytest.approx(0.25)


def test_learning_is_unknown_in_the_first_epoch_and_zero_without_advantages():
    assert learning_signal([turn_row(0, 0, 0)]) is None
    assert learning_signal([]) is None
    assert (
        learning_signal([turn_row(0, 0, 0, advantage=0.0), turn_row(1, 0, 0, advantage=0.0)]) == 0.0
    )


def test_learning_pools_the_last_epoch_over_its_steps():
    rows = [
        turn_row(0, 0, 0, epoch=0, advantage=1.0, logprob_mean=-1.0),
        turn_row(1, 1, 0, epoch=0, advantage=1.0, logprob_mean=-1.0),
        turn_row(2, 0, 0, epoch=1, advantage=1.0, logprob_mean=-0.9),
        turn_row(3, 1, 0, epoch=1, advantage=1.0, logprob_mean=-0.7),
    ]
    assert learning_signal(rows) == pytest.approx(0.2)


def test_learning_chart_breaks_no_line_at_a_step_without_praised_replies():
    rows = [turn_row(0, 0, 0, advantage=-0.5), turn_row(1, 0, 0, advantage=-0.5, logprob_mean=-1.5)]
    figure = learning_chart(rows).figure
    assert trace(figure, "replies to favour").y == (None, None)
    assert trace(figure, "change × advantage").y == (0.0, 0.5)


def test_learning_chart_gives_way_to_words_until_a_second_epoch_has_begun():
    first = [turn_row(0, 0, 0, epoch=0), turn_row(1, 1, 0, epoch=0)]
    assert "comes with epoch 2" in learning_chart(first).instead
    assert not learning_chart([*first, turn_row(2, 0, 0, epoch=1)]).instead


def test_loss_chart_draws_one_line_a_turn_in_the_turns_colour_counted_from_one():
    chart = loss_chart([turn_row(0, 0, 0, loss_mean=0.5), turn_row(0, 0, 1, loss_mean=-0.5)], ALL)
    second = trace(chart.figure, "2")
    assert second.y == (-0.5,)
    assert second.x == (1,)
    assert second.line.color == palette.turn_colour(1)
    assert "turn 2: -0.500" in chart.alt


def test_a_band_is_drawn_only_where_conversations_differ():
    same = loss_chart([turn_row(0, 0, 0), turn_row(0, 1, 0)], ALL).figure
    spread = loss_chart([turn_row(0, 0, 0), turn_row(0, 1, 0, loss_mean=1.0)], ALL).figure
    assert len(same.data) == 1
    assert [t.y for t in spread.data] == [(0.25,), (0.75,), (0.5,)]


def test_hover_of_one_conversation_tells_title_turn_reward_and_advantage():
    view = TurnView(conversation=0, titles={0: "<b>parcel</b>"})
    line = trace(loss_chart([turn_row(0, 0, 1, advantage=-0.25)], view).figure, "2")
    assert tuple(line.customdata[0]) == (1, "&lt;b>parcel&lt;/b>", "+0.50", "-0.250", 10)
    assert "turn 2" in line.hovertemplate


def test_ratio_chart_draws_the_clip_bounds_of_the_run():
    figure = ratio_chart([turn_row(0, 0, 0), turn_row(3, 0, 0)], ALL, (0.7, 1.3)).figure
    assert trace(figure, "clip at 0.7").y == (0.7, 0.7)
    assert trace(figure, "clip at 1.3").x == (0.5, 4.5)


def test_ratio_chart_of_an_unclipped_loss_draws_no_bounds():
    assert len(ratio_chart([turn_row(0, 0, 0)], ALL, None).figure.data) == 1


def test_guides_know_that_the_recipes_ratio_does_not_start_at_one():
    recomputed = ratio_chart([], ALL, (0.8, 1.2)).guide
    constant = ratio_chart([], ALL, (0.8, 1.2), constant_old=True).guide
    assert "starts at exactly 1, necessarily" in recomputed
    assert "not at 1" in constant
    assert "only its change" in kl_chart([], 0.0, constant_old=True).guide


def test_clip_chart_shows_both_meanings_side_by_side():
    figure = clip_chart([turn_row(0, 0, 0, clipfrac=0.9, clipfrac_binding=0.4)], ALL).figure
    left, right = figure.data
    assert (left.y, left.xaxis, right.y, right.xaxis) == ((0.9,), "x", (0.4,), "x2")
    assert (left.showlegend, right.showlegend) == (True, False)


def test_kl_limit_is_drawn_once_it_is_in_sight():
    near = kl_chart([step_row(0, kl=0.2)], 0.5).figure
    far = kl_chart([step_row(0, kl=0.001)], 0.5).figure
    none = kl_chart([step_row(0, kl=0.2)], 0.0).figure
    assert [len(f.data) for f in (near, far, none)] == [2, 1, 1]
    assert near.data[1].y == (0.5, 0.5)


def test_step_charts_leave_a_gap_where_a_value_is_no_number():
    figure = grad_norm_chart([step_row(0), step_row(1, grad_norm=math.nan)], 0.0).figure
    assert figure.data[0].y == (0.2, None)
    assert speed_chart([step_row(0, tokens_per_s=math.inf)]).alt.endswith("no values yet.")


def test_every_chart_is_drawn_without_any_rows():
    charts = [
        learning_chart([]),
        loss_chart([], ALL),
        ratio_chart([], ALL, (0.8, 1.2)),
        clip_chart([], ALL),
        kl_chart([], 0.5),
        grad_norm_chart([], 1.0),
        speed_chart([]),
    ]
    assert len({chart.key for chart in charts}) == len(charts)
    assert all("no values yet" in chart.alt for chart in charts)


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


def test_kl_to_the_base_has_a_line_of_its_own_only_where_it_differs():
    same = kl_chart([step_row(0, kl=0.1, kl_base=0.1), step_row(1, kl=0.2, kl_base=0.2)], 0.0)
    assert len(same.figure.data) == 1
    unknown = kl_chart([step_row(0, kl=0.1)], 0.0)
    assert len(unknown.figure.data) == 1
    other = kl_chart([step_row(0, kl=0.1, kl_base=0.0), step_row(1, kl=0.1, kl_base=0.4)], 0.5)
    assert list(trace(other.figure, "to the base model").y) == [0.0, 0.4]
    assert other.figure.data[-1].y == (0.5, 0.5)  # the limit, which KL to the base is near
