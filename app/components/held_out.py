"""The run page's line on the conversations that were held out to judge the epochs."""

from collections.abc import Sequence

import streamlit as st

from app.components.charts import signed
from app.components.format import counted
from trainer.runs.checkpoint import Judgement


def held_out_line(judgements: Sequence[Judgement], *, has_ended: bool) -> None:
    """Show how each epoch did on the held-out conversations; nothing if none were held out."""
    if judgements:
        st.markdown(
            f":material/balance: {describe(judgements, has_ended=has_ended)}",
            help="Change × advantage of conversations that the run does not train on, in nats per "
            "token (a token's change counts up to 1). 0 is the model that the run started from; the "
            "higher, the better.",
        )


def describe(judgements: Sequence[Judgement], *, has_ended: bool) -> str:
    """Return in words what the held-out conversations say, and which epoch's adapter is kept."""
    epochs = ", ".join(f"epoch {one.epoch + 1} {signed(one.signal)}" for one in judgements)
    text = f"Judged by {counted(judgements[-1].conversations, 'held-out conversation')}: {epochs}."
    best = max(judgements, key=lambda one: one.signal)
    if best.signal <= 0:
        last = (
            " The last epoch's adapter is kept: compare it with the base model before you use it."
        )
        return f"{text} None is better than the model that the run started from.{last if has_ended else ''}"
    return f"{text} Epoch {best.epoch + 1} is the best{' and kept' if has_ended else ' so far'}."
