"""How a chat goes on: who answers, whether their names are hidden, and how replies are drawn."""

from collections.abc import Sequence
from dataclasses import asdict, replace
from typing import Any

import streamlit as st

from app import state
from app.chat_models import adapters_for, base_models, base_title, lane_title
from app.chat_tree import BASE, Chat, Sampling, lane_of
from app.components.chat_actions import MOST_LANES, change_base_model, change_settings

MOST_TOKENS = 4096
LARGEST_SEED = 2**31 - 1


def render_setup(chat: Chat) -> None:
    """Show the choices; each is stored as it is made."""
    key = f"chat.{chat.id}"
    with st.container(horizontal=True, vertical_alignment="bottom"):
        _base_model(chat, key)
        _lanes(chat, key)
        with st.popover("Settings", icon=":material/tune:", key="chat.settings"):
            _system(chat, key)
            _sampling(chat, key)
    blind = f"{key}.blind.{chat.blind}"
    st.toggle(
        "Blind A/B",
        chat.blind,
        key=blind,
        disabled=len(chat.lanes) != 2,
        on_change=_toggle_blind,
        args=(blind,),
        help="Hides which model said what until you have voted, and shuffles the sides at each "
        "turn. The vote stores both replies with scores: 1 for the better one, the lowest score "
        "for the other, the middle for both when they are about the same. Both models then go on "
        "from the better reply. Needs exactly two models.",
    )


def _base_model(chat: Chat, key: str) -> None:
    names = list(dict.fromkeys([*base_models(), chat.base_model]))
    if len(names) < 2:
        return
    widget = f"{key}.base.{chat.base_model}"
    st.selectbox(
        "Base model",
        names,
        index=names.index(chat.base_model),
        format_func=base_title,
        key=widget,
        on_change=change_base_model,
        args=(widget,),
        width=240,
        help="The model whose adapters can be talked to; one is in memory at a time.",
    )


def _lanes(chat: Chat, key: str) -> None:
    lanes = [BASE, *(lane_of(run.id) for run in adapters_for(chat.base_model))]
    widget = f"{key}.lanes.{','.join(chat.lanes)}"
    st.multiselect(
        "Who answers",
        list(dict.fromkeys([*lanes, *chat.lanes])),
        default=chat.lanes,
        format_func=_plain_title,
        max_selections=MOST_LANES,
        placeholder="Choose a model",
        key=widget,
        on_change=_choose_lanes,
        args=(widget,),
        help="The base model and the adapters of your runs, side by side on the same question: up "
        f"to {MOST_LANES}.",
    )


def _plain_title(lane: str) -> str:
    return lane_title(lane).replace("\\", "").replace("\u2060", "")


def _system(chat: Chat, key: str) -> None:
    widget = f"{key}.system.{hash(chat.system)}"
    st.text_area(
        "System prompt",
        chat.system,
        key=widget,
        on_change=_set_system,
        args=(widget,),
        placeholder="You are a helpful assistant.",
        help="What the model is told before the first message. Some templates bring their own "
        "where this is empty.",
    )


def _sampling(chat: Chat, key: str) -> None:
    drawn = chat.sampling
    left, right = st.columns(2)
    with left:
        _number(
            chat, key, "temperature", "Temperature", low=0.0, high=2.0, step=0.1,
            help="0 takes the likeliest token each time, 1 draws from the model's own policy: best "
            "for replies to train on. Log-probabilities are kept without it, so that a run's first "
            "ratio is 1 at any temperature.",
        )  # fmt: skip
        _number(
            chat, key, "top_p", "Top-p (share)", low=0.05, high=1.0, step=0.05,
            help="Only the fewest likeliest tokens that together have this probability; 1 for all.",
        )  # fmt: skip
        _number(
            chat, key, "top_k", "Top-k (tokens)", low=0, high=1000, step=1,
            help="Only so many of the likeliest tokens; 0 for all.",
        )  # fmt: skip
    with right:
        _number(
            chat, key, "max_tokens", "Longest reply (tokens)", low=1, high=MOST_TOKENS, step=32,
            help="A reply ends here at the latest. A token is about three quarters of a word.",
        )  # fmt: skip
        widget = f"{key}.seed.{drawn.seed}"
        st.number_input(
            "Seed (number)",
            0,
            LARGEST_SEED,
            drawn.seed,
            key=widget,
            on_change=_set_sampling,
            args=(widget, drawn, "seed"),
            placeholder="another one each time",
            help="The same seed, question and model give the same reply. Empty: another one each "
            "time; the one that was used is kept with the reply.",
        )


def _number(
    chat: Chat, key: str, name: str, label: str, *, low: Any, high: Any, step: Any, help: str
) -> None:
    value = asdict(chat.sampling)[name]
    widget = f"{key}.{name}.{value}"
    st.number_input(
        label,
        low,
        high,
        value,
        step,
        key=widget,
        on_change=_set_sampling,
        args=(widget, chat.sampling, name),
        help=help,
    )


def _set_sampling(widget: str, before: Sampling, name: str) -> None:
    change_settings(sampling=replace(before, **{name: state.widget_value(widget)}))


def _set_system(widget: str) -> None:
    change_settings(system=str(state.widget_value(widget) or "").strip())


def _toggle_blind(widget: str) -> None:
    change_settings(blind=bool(state.widget_value(widget)))


def _choose_lanes(widget: str) -> None:
    lanes: Sequence[str] = state.widget_texts(widget)
    change_settings(lanes=tuple(lanes))
