"""Launch: choose data, model and method, see what each score will do, start the run."""

import hashlib
import json
from collections.abc import Sequence

import streamlit as st

from app import address, data, launch_again, routes
from app.components.config_form import changes, settings_form
from app.components.errors import show_error
from app.components.format import counted, plain
from app.components.launch_check import show_check
from app.components.launch_choices import choose_conversations, choose_method, choose_model
from app.components.launch_scores import choose_scores
from app.components.launch_start import choose_start
from app.components.launch_where import Where, choose_where
from app.launch_again import Again
from app.token_counts import give_up_counting
from db.errors import EveryTurnError
from db.records import Conversation
from db.text import MAX_NAME_CHARS
from trainer.config import TrainConfig
from trainer.errors import ConfigError
from trainer.preview import preview
from trainer.runs.launch import start_run


def render() -> None:
    """Draw the page."""
    st.title("Launch a run")
    if data.overview().turns == 0:
        _empty()
        return
    again = _asked_again()
    left, right = st.columns([3, 2], gap="large")
    with left:
        st.subheader("1 Data", anchor=False)
        chosen = choose_conversations(again)
        conversations = chosen.conversations
        scores = choose_scores(conversations, again)
    with right:
        st.subheader("2 Model", anchor=False)
        model = choose_model(again)
        start = choose_start(model.name, again) if model else {}
        where = Where()
        if model:
            where = choose_where(model.name, again.config.endpoint if again else "")
    st.subheader("3 Method", anchor=False)
    preset = choose_method(again)
    if model is None:
        return
    above = {
        "base_model": model.name,
        "endpoint": where.endpoint,
        "selection": chosen.selection,
        **start,
        **scores,
    }
    try:
        if again and again.config.preset is preset:
            config = settings_form(again.config.replace(**above), origin=again.origin)
        else:
            config = settings_form(TrainConfig.for_preset(preset, **above))
    except ConfigError as error:
        show_error(error)
        return
    st.subheader("4 Check", anchor=False)
    if not conversations:
        st.info("No conversation of this choice has a score yet.", icon=":material/grade:")
        st.page_link(routes.LABEL, label="Score some turns", icon=":material/grade:")
        return
    check = show_check(
        conversations, config, preview(conversations, config), model_here=model.available
    )
    _start(conversations, config, where.key, blocked=bool(check.blocking))


def _empty() -> None:
    st.write(
        "A run trains the model on scored conversations. There are none yet: load an example set, "
        "or type in or import your own, then score their turns."
    )
    st.page_link(routes.HOME, label="Load an example set", icon=":material/download:")
    st.page_link(routes.CONVERSATIONS, label="Type in or import", icon=":material/add:")


def _asked_again() -> Again | None:
    """Return the run that the address asks for again, having said what that means."""
    try:
        again = launch_again.requested()
    except EveryTurnError as error:
        show_error(error)
        return None
    if again is None:
        return None
    text = f"Run {again.run.id}, **{plain(again.run.name)}**, again"
    if again.is_next_round:
        text = f"The next round after run {again.run.id}, **{plain(again.run.name)}**"
    changed = changes(again.config_before, again.config)
    left, right = st.columns([5, 1], vertical_alignment="center")
    left.info(
        f"{text}, with {plain(', '.join(changed))}."
        if changed
        else f"{text}: change what you like.",
        icon=":material/replay:",
    )
    right.page_link(routes.LAUNCH, label="Start afresh", icon=":material/restart_alt:")
    return again


def _start(
    conversations: Sequence[Conversation], config: TrainConfig, endpoint_key: str, *, blocked: bool
) -> None:
    """Ask for a name and start; the same form started twice is one run."""
    address.start_token()  # from the first look on, so that a copied tab has it too
    suggestion = f"{config.preset} on {counted(len(conversations), 'conversation')}"
    left, right = st.columns([3, 1], vertical_alignment="bottom")
    typed = left.text_input("Name of the run", placeholder=suggestion, max_chars=MAX_NAME_CHARS)
    clicked = right.button(
        "Start the run",
        type="primary",
        icon=":material/play_arrow:",
        disabled=blocked,
        help="What the red message says has to be put right first." if blocked else None,
        width="stretch",
    )
    if not clicked:
        return
    give_up_counting()
    ids = [c.id for c in conversations if c.id is not None]
    name = (typed or "").strip() or suggestion
    try:
        run = data.write(
            start_run,
            name=name,
            conversation_ids=ids,
            config=config,
            start_token=_token(name, ids, config),
            endpoint_key=endpoint_key,
        )
    except EveryTurnError as error:
        show_error(error)
        address.renew_start_token()  # the next click is a new try, not the run that failed
        return
    st.toast(f"{plain(run.name)} is on its way.", icon=":material/rocket_launch:")
    st.switch_page(routes.RUN, query_params={routes.RUN_PARAM: str(run.id)})


def _token(name: str, ids: list[int], config: TrainConfig) -> str:
    """Return a token for this form as it stands under this address."""
    form = json.dumps([address.start_token(), name, ids, config.to_json()])
    return hashlib.sha256(form.encode()).hexdigest()


render()
