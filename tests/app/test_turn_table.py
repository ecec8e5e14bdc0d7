"""The table of turns: advantages, tokens, and why a turn trains nothing."""

from app.components import palette, turn_table
from trainer.preview import TurnPreview


def line(
    turn: int, advantage: float | None, *, held_out: bool = False, silenced: bool = False
) -> TurnPreview:
    return TurnPreview(
        conversation=0, turn=turn, title="t", tokens=None, response_tokens=None,
        reward=0.5, return_=0.5, advantage=advantage, held_out=held_out, silenced=silenced,
    )  # fmt: skip


def test_the_table_tells_tokens_and_why_a_turn_trains_nothing():
    turns = [
        line(0, 0.5), line(1, -0.25), line(2, 0.0), line(3, None),
        line(4, -0.5, silenced=True), line(5, -0.5, held_out=True, silenced=True),
    ]  # fmt: skip
    frame = turn_table.turn_frame(turns, tokens={(0, 0): (33, 14)}, replies={}, limit=20)
    assert list(frame["remark"]) == [
        "longer than 20 tokens: left out", "", "no signal", "no score: context only",
        "low score: guarded, no gradient", "held out: judges the run",
    ]  # fmt: skip
    assert frame["tokens"].isna().tolist() == [False, True, True, True, True, True]


def test_advantages_are_shaded_by_sign_and_to_the_scale_of_the_largest():
    turns = [line(0, 0.5), line(1, -0.25), line(2, 0.0), line(3, None)]
    frame = turn_table.turn_frame(turns, tokens={}, replies={}, limit=20)
    column = list(frame.columns).index("advantage")
    styles = turn_table.styled(frame)._compute().ctx
    assert [dict(styles.get((row, column), [])).get("background-color") for row in range(4)] == [
        palette.translucent(palette.POSITIVE, turn_table.MOST_OPACITY),
        palette.translucent(palette.NEGATIVE, turn_table.MOST_OPACITY / 2),
        None,
        None,
    ]


def test_columns_without_content_are_left_out():
    frame = turn_table.turn_frame([line(0, 0.5)], tokens={}, replies={}, limit=20)
    shown = [name for name in frame.columns if turn_table.has_content(frame, name)]
    assert shown == ["conversation", "turn", "reply", "reward", "return", "advantage"]
