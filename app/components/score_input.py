"""The control that gives a score: quick values in one click or key, any other value exactly.

"Not scored" is no value chosen; 0 is a value like any other. A stored value that is not among the
quick ones (0.85, or −0.7 from an import) is shown as one more choice and stays as it is.
"""

from collections.abc import Callable

import streamlit as st

from app import state
from app.components.format import score_text
from db.records import SCORE_MAX, SCORE_MIN

QUICK_VALUES = tuple(tenths / 10 for tenths in range(11))
QUICK_KEYS = tuple("0123456789a")
"""The key of each quick value: the digit is the first decimal; "a" stands for "all of it"."""

STEP = 0.05

OnScore = Callable[[float | None], None]


def choices(value: float | None) -> list[float]:
    """Return the quick values, and the stored one where it is another."""
    return sorted({*QUICK_VALUES, value} - {None}) if value is not None else list(QUICK_VALUES)


def short_score(value: float) -> str:
    """Return a score as briefly as it can be told: "0", "0.3", "−0.75", "1"."""
    return f"{value:.2f}".rstrip("0").rstrip(".").replace("-", "−")


def score_picker(label: str, value: float | None, *, key: str, on_score: OnScore) -> None:
    """Offer the quick values; choosing the chosen one again takes the score away."""
    widget = f"{key}.{value}"  # a new value from elsewhere (undo, another rater's tab) is a reset
    st.segmented_control(
        label,
        choices(value),
        default=value,
        # The theme's colour for a chosen segment is too faint on dark; this one is made for text.
        format_func=lambda choice: (
            f":blue[{short_score(choice)}]" if choice == value else short_score(choice)
        ),
        key=widget,
        on_change=_pass_on,
        args=(widget, on_score),
        label_visibility="collapsed",
    )


def score_keys(value: float | None, *, key: str, on_score: OnScore) -> None:
    """Offer the quick values as buttons that also listen to their keys."""
    shortcuts = dict(zip(QUICK_VALUES, QUICK_KEYS, strict=True))
    with st.container(horizontal=True, gap="xxsmall", vertical_alignment="center"):
        for choice in choices(value):
            st.button(
                short_score(choice),
                key=f"{key}.{choice}",
                shortcut=shortcuts.get(choice),
                type="primary" if choice == value else "secondary",
                on_click=on_score,
                args=(choice,),
            )


def exact_score(label: str, value: float | None, *, key: str, on_score: OnScore) -> None:
    """Offer any value; an emptied field takes the score away."""
    widget = f"{key}.{value}"
    low = SCORE_MIN if value is not None and value < 0 else 0.0
    st.number_input(
        label,
        min_value=low,
        max_value=SCORE_MAX,
        value=value,
        step=STEP,
        format="%.2f",
        placeholder=score_text(None),
        key=widget,
        on_change=_pass_on,
        args=(widget, on_score),
        help="0 is the worst, 1 the best. Empty means not scored.",
    )


def note_input(label: str, note: str, *, key: str, on_note: Callable[[str], None]) -> None:
    """Offer a note, stored when the field is left."""
    widget = f"{key}.{hash(note)}"
    st.text_area(
        label,
        value=note,
        key=widget,
        on_change=_pass_on,
        args=(widget, on_note),
        placeholder="Why this score?",
        height=90,
    )


def _pass_on(widget: str, receive: Callable[..., None]) -> None:
    receive(state.widget_value(widget))
