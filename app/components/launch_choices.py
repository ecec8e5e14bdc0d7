"""The first two questions of the launch page: which conversations, which base model."""

import streamlit as st

from app import auth, data
from app.components.errors import show_error
from app.components.format import counted, plain
from db.errors import EveryTurnError
from db.records import Conversation, ConversationFilter
from trainer import catalog


def choose_conversations() -> list[Conversation]:
    """Ask which conversations to train on; return those among them that have any score."""
    left, right = st.columns(2)
    tags = left.multiselect(
        "With all of these tags", data.all_tags(), placeholder="any tag", key="tags",
        bind="query-params",
    )  # fmt: skip
    sources = right.multiselect(
        "From one of these sources", data.all_sources(), placeholder="any source", key="source",
        bind="query-params",
    )  # fmt: skip
    wanted = ConversationFilter(tags=tuple(tags), sources=tuple(sources), order="oldest")
    ids = data.conversation_ids(wanted, user_id=auth.current_user().id)
    found = data.conversations(tuple(ids))
    chosen = [conversation for conversation in found if is_scored(conversation)]
    st.markdown(describe(chosen, len(found)))
    return chosen


def is_scored(conversation: Conversation) -> bool:
    """Return whether anybody scored one of its turns, or the whole of it."""
    return bool(conversation.outcomes) or any(m.scores for m in conversation.assistant_messages)


def describe(chosen: list[Conversation], found: int) -> str:
    """Return in words what was chosen, and how much of it carries a score."""
    turns = [turn for conversation in chosen for turn in conversation.assistant_messages]
    scored = sum(bool(turn.scores) for turn in turns)
    text = f"**{counted(len(chosen), 'conversation')}** · **{scored:,} of {len(turns):,}** turns scored"
    unscored = found - len(chosen)
    if unscored:
        text += f" · {counted(unscored, 'conversation')} without any score left out"
    return text


def choose_model() -> catalog.BaseModel | None:
    """Ask for the base model: a listed one, a hub id, or a folder; None if it is unusable."""
    models = {model.name: model for model in catalog.list_models(data.settings())}
    names = list(models)
    name = st.selectbox(
        "Base model",
        names,
        index=names.index(catalog.default_model()),
        format_func=lambda name: _label(models.get(name), name),
        accept_new_options=True,
        key="model",
        bind="query-params",
        help="Choose one, or type a Hugging Face id (owner/name) or the path of a model folder.",
    )
    try:
        model = catalog.find_model(data.settings(), name)
    except EveryTurnError as error:
        show_error(error)
        return None
    st.markdown(_availability(model))
    return model


def _label(model: catalog.BaseModel | None, name: str) -> str:
    if model is None:
        return name
    size = f" · {model.parameters}" if model.parameters else ""
    return f"{model.title}{size}{'' if model.available else ' · not here yet'}"


def _availability(model: catalog.BaseModel) -> str:
    if model.available:
        return f":green-badge[:material/check: here] {plain(model.note)}"
    return (
        f":orange-badge[:material/download: not here yet] {plain(model.note)}  \n"
        "The run downloads it first. To do it beforehand: "
        f"`python -m trainer pull {model.name}`"
    )
