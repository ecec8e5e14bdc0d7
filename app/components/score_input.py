"""The controls that give a score: the scale's choices in one click, any other value exactly.

"Not scored" is no value chosen; 0 is a value like any other. A stored value that is not among the
choices (0.85, or −0.7 from an import) is shown as one more and stays as it is.
"""

from collections.abc import Callable

import streamlit as st

from app import state
from app.components.format import score_text
from app.components.key_names import labelled
from app.components.label_scale import STEP, Choice, Scale, short
from db.records import SCORE_MAX, SCORE_MIN

OnScore = Callable[[float | None], None]

_HANDED_ON: state.Slot[dict[str, object]] = state.Slot("score_input.handed_on", dict)
"""The last value of each field that was handed on, until the field is drawn again.

A field that a redraw takes away may report its value once more, as if it had just been changed.
"""


_REFUSED: state.Slot[int] = state.Slot("score_input.refused", int)
"""How many scores were refused: another number draws the fields anew, with what is stored."""


def score_buttons(
    scale: Scale, value: float | None, *, key: str, on_score: OnScore, with_keys: bool = True
) -> None:
    """Offer the choices as buttons, each with its key; the stored value stands out."""
    choices = list(scale.choices)
    if value is not None and scale.choice_of(value) is None:
        choices.append(Choice(value=value, label=short(value), keys=()))
        choices.sort(key=lambda choice: choice.value)
    with st.container(horizontal=True, gap="xxsmall", vertical_alignment="center"):
        for choice in choices:
            shows_key = with_keys and choice.keys and not choice.names_key
            st.button(
                labelled(choice.label, choice.keys[0]) if shows_key else choice.label,
                key=f"{key}.{choice.value}",
                type="primary" if choice.value == value else "secondary",
                on_click=on_score,
                args=(choice.value,),
            )


def exact_score(
    label: str, value: float | None, *, scale: Scale, key: str, on_score: OnScore, width: int
) -> None:
    """Offer any value; an emptied field takes the score away."""
    # A new value from elsewhere (undo, say) is a reset, and so is a score that was not stored.
    widget = _drawn(f"{key}.{value}.{_REFUSED.get()}")
    low = SCORE_MIN if value is not None and value < scale.low else scale.low

    def store(score: float | None) -> None:
        on_score(score)
        if state.FAILURE.get() is not None:
            _REFUSED.set(_REFUSED.get() + 1)

    st.number_input(
        label,
        min_value=low,
        max_value=SCORE_MAX,
        value=value,
        step=STEP,
        format="%.2f",
        placeholder=score_text(None),
        key=widget,
        on_change=_hand_on,
        args=(widget, value, store),
        width=width,
        help=f"{score_text(low)} is the worst, 1.00 the best. Empty means not scored.",
    )


def note_input(
    label: str,
    note: str,
    *,
    key: str,
    on_note: Callable[[str], None],
    hint: str = "Why this score?",
) -> None:
    """Offer a note, stored when the field is left."""
    widget = _drawn(f"{key}.{hash(note)}")
    st.text_input(
        label,
        value=note,
        key=widget,
        on_change=_hand_on,
        args=(widget, note, on_note),
        placeholder=hint,
        help="Kept with your score; it may be written first.",
    )


def _drawn(widget: str) -> str:
    _HANDED_ON.get().pop(widget, None)
    return widget


def _hand_on(widget: str, drawn_with: object, receive: Callable[..., None]) -> None:
    """Hand a field's value on if somebody has changed it."""
    value, handed_on = state.widget_value(widget), _HANDED_ON.get()
    if value != handed_on.get(widget, drawn_with):
        handed_on[widget] = value
        receive(value)
