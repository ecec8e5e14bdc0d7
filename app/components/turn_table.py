"""The table of turns that a run would train on, with each advantage as a shaded number."""

import math
from collections.abc import Mapping, Sequence

import pandas as pd
import streamlit as st
from pandas.io.formats.style import Styler

from app.components.cells import text_cell
from app.components.format import shortened
from app.components.palette import NEGATIVE, POSITIVE, translucent
from trainer.preview import TurnPreview

MOST_OPACITY = 0.6
"""How strongly the largest advantage is shaded; its number stays readable on both themes."""


def turn_table(
    turns: Sequence[TurnPreview],
    *,
    tokens: Mapping[tuple[int, int], tuple[int, int]],
    replies: Mapping[tuple[int, int], str],
    limit: int,
    key: str,
) -> None:
    """Show one line for each turn; `tokens` may be empty while they are still counted."""
    frame = turn_frame(turns, tokens=tokens, replies=replies, limit=limit)
    has_remarks = has_content(frame, "remark")
    st.dataframe(
        styled(frame),
        key=key,
        hide_index=True,
        height=min(36 * (len(frame) + 1) + 4, 460),
        column_order=[name for name in frame.columns if has_content(frame, name)],
        column_config={
            "conversation": st.column_config.TextColumn(width=190),
            "turn": st.column_config.NumberColumn(width=44),
            "reply": st.column_config.TextColumn(width=205 if has_remarks else 370),
            "tokens": st.column_config.NumberColumn(
                width=60,
                help="Length of the turn's model input: everything before the reply, and the reply.",
            ),
            "reward": st.column_config.NumberColumn(
                width=62,
                format="%.2f",
                help="The turn's score; where several people scored it, what the choice of the run "
                "makes of theirs.",
            ),
            "return": st.column_config.NumberColumn(
                width=62,
                format="%.3f",
                help="What the turn is credited with: its own reward and, with return to go, the "
                "discounted rewards after it.",
            ),
            "advantage": st.column_config.NumberColumn(
                width=84,
                format="%+.3f",
                help="The return minus what is usual at this place. Above 0 (blue) training makes "
                "the reply more likely, below 0 (orange) less; the stronger the colour, the more.",
            ),
            "remark": st.column_config.TextColumn(width=173),
        },
        alt="Every assistant turn with its tokens, reward, return and advantage.",
    )


def turn_frame(
    turns: Sequence[TurnPreview],
    *,
    tokens: Mapping[tuple[int, int], tuple[int, int]],
    replies: Mapping[tuple[int, int], str],
    limit: int,
) -> pd.DataFrame:
    """Return the table as data: one row a turn."""
    rows: list[dict[str, object]] = []
    for turn in turns:
        place = (turn.conversation, turn.turn)
        count = tokens.get(place, (None, None))[0]
        rows.append(
            {
                "conversation": text_cell(turn.title),
                "turn": turn.turn + 1,
                "reply": text_cell(shortened(replies.get(place, ""), 90)),
                "tokens": count,
                "reward": turn.reward,
                "return": turn.return_,
                "advantage": turn.advantage,
                "remark": remark(turn, count, limit),
            }
        )
    frame = pd.DataFrame(rows)
    numbers = {"tokens": "Int64", "reward": "Float64", "return": "Float64", "advantage": "Float64"}
    return frame.astype(numbers) if rows else frame


def remark(turn: TurnPreview, tokens: int | None, limit: int) -> str:
    """Return in words why a turn trains nothing, or an empty text if it does."""
    if turn.advantage is None:
        return "no score: context only"
    if tokens is not None and tokens > limit:
        return f"longer than {limit} tokens: left out"
    if turn.held_out:
        return "held out: judges the run"
    if turn.silenced:
        return "low score: guarded, no gradient"
    return "no signal" if turn.advantage == 0 else ""


def shade(advantage: float, largest: float) -> str:
    """Return the CSS of an advantage's cell: blue above 0, orange below, stronger the larger."""
    if not largest or not abs(advantage) > 0:  # also where there is none
        return ""
    colour = POSITIVE if advantage > 0 else NEGATIVE
    opacity = max(abs(advantage) / largest, 0.1) * MOST_OPACITY
    return f"background-color: {translucent(colour, opacity)}"


def styled(frame: pd.DataFrame) -> Styler:
    """Shade the advantages in proportion to the largest of them."""
    style = frame.style
    if "advantage" not in frame:
        return style
    values: list[float] = frame["advantage"].astype("float64").tolist()  # NaN where there is none
    largest = max((abs(value) for value in values if math.isfinite(value)), default=0.0)
    shades = [shade(value, largest) for value in values]
    return style.apply(lambda _: shades, subset=["advantage"])


def has_content(frame: pd.DataFrame, name: str) -> bool:
    """Return whether a column that may be empty has something to show."""
    if name not in frame:
        return False
    if name == "tokens":
        return bool(frame[name].notna().any())
    return name != "remark" or bool((frame[name] != "").any())
