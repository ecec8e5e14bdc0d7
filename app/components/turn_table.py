"""The table of turns that a run would train on, with each advantage as a bar and a number."""

from collections.abc import Mapping, Sequence

import pandas as pd
import streamlit as st
from pandas.io.formats.style import Styler

from app.components.format import shortened
from app.components.palette import NEGATIVE, POSITIVE
from trainer.preview import TurnPreview

BAR_BLOCKS = 8
"""Length of the longest bar, in block characters."""

_EIGHTHS = " ▏▎▍▌▋▊▉█"


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
    st.dataframe(
        styled(frame),
        key=key,
        hide_index=True,
        height=min(36 * (len(frame) + 1) + 4, 460),
        column_order=[name for name in frame.columns if name != "tokens" or tokens],
        column_config={
            "conversation": st.column_config.TextColumn(width=150),
            "turn": st.column_config.NumberColumn(width=44),
            "reply": st.column_config.TextColumn(width=170),
            "tokens": st.column_config.NumberColumn(
                width=60,
                help="Length of the turn's model input: everything before the reply, and the reply.",
            ),
            "reward": st.column_config.NumberColumn(
                width=62,
                format="%.2f",
                help="The turn's score; the mean where several people scored it.",
            ),
            "return": st.column_config.NumberColumn(
                width=62,
                format="%.3f",
                help="What the turn is credited with: its own reward and, with return to go, the "
                "discounted rewards after it.",
            ),
            "less likely": st.column_config.TextColumn(
                alignment="right",
                width=84,
                help="Training makes these replies less likely; a longer bar pushes harder.",
            ),
            "advantage": st.column_config.NumberColumn(
                width=84,
                format="%+.3f",
                help="The return minus what is usual at this place. This number decides what the "
                "run does with the turn.",
            ),
            "more likely": st.column_config.TextColumn(
                width=84,
                help="Training makes these replies more likely; a longer bar pushes harder.",
            ),
            "remark": st.column_config.TextColumn(width=150),
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
    """Return the table as data: one row a turn, bars as block characters."""
    largest = max((abs(turn.advantage) for turn in turns if turn.advantage is not None), default=0)
    rows: list[dict[str, object]] = []
    for turn in turns:
        place = (turn.conversation, turn.turn)
        count = tokens.get(place, (None, None))[0]
        share = (turn.advantage or 0.0) / largest if largest else 0.0
        rows.append(
            {
                "conversation": turn.title,
                "turn": turn.turn + 1,
                "reply": shortened(replies.get(place, ""), 90),
                "tokens": count,
                "reward": turn.reward,
                "return": turn.return_,
                "advantage": turn.advantage,
                "less likely": bar(-share),
                "more likely": bar(share),
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
    return "no signal" if turn.advantage == 0 else ""


def bar(share: float) -> str:
    """Return a bar for a share of the largest advantage; nothing for a share of 0 or less."""
    eighths = round(min(share, 1.0) * BAR_BLOCKS * 8)
    if eighths <= 0:
        return "" if share <= 0 else _EIGHTHS[1]
    full, rest = divmod(eighths, 8)
    return "█" * full + (_EIGHTHS[rest] if rest else "")


def styled(frame: pd.DataFrame) -> Styler:
    """Colour the bars: blue for what becomes more likely, orange for what becomes less likely."""
    style = frame.style
    for column, colour in (("more likely", POSITIVE), ("less likely", NEGATIVE)):
        if column in frame:
            style = style.set_properties(subset=[column], color=colour)
    return style
