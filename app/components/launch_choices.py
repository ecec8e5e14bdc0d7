"""The first questions of the launch page: which conversations, which base model, which method."""

from dataclasses import dataclass, replace

import streamlit as st

from app import auth, data
from app.components.errors import show_error
from app.components.format import counted, plain
from app.components.narrowing import choose_narrowing, in_words
from app.launch_again import Again
from db.errors import EveryTurnError
from db.records import Conversation
from trainer import catalog
from trainer.config import Preset

METHODS = {
    Preset.STANDARD: "Credits each reply with everything that follows it, compared with other "
    "conversations. Careful steps, and a limit on how far the model may move.",
    Preset.RECIPE: "The published recipe, exactly: each reply against its own conversation's mean, "
    "one step an epoch. For comparison with its published figures.",
}

THESE, OTHERS = "these", "others"


@dataclass(frozen=True, slots=True, kw_only=True)
class Chosen:
    """The data of a run to be.

    Attributes:
        conversations: Those of the choice that have any score.
        selection: In words, how they were chosen; empty if all were taken.
    """

    conversations: list[Conversation]
    selection: str


def choose_conversations(again: Again | None) -> Chosen:
    """Ask which conversations to train on."""
    if again and _takes_the_same(again):
        found = data.conversations(again.conversation_ids)
        selection = again.config.selection
    else:
        user = auth.current_user()
        filter = replace(choose_narrowing(user, data.project_settings()), order="oldest")
        found = data.conversations(tuple(data.conversation_ids(filter, user_id=user.id)))
        selection = in_words(filter)
    tag = data.project_settings().evaluation_tag
    held_out = sum(bool(tag) and tag in conversation.tags for conversation in found)
    found = [conversation for conversation in found if not tag or tag not in conversation.tags]
    if held_out:
        st.caption(
            f"{counted(held_out, 'conversation')} with the tag {plain(tag)} left out: it marks what "
            "runs are evaluated by (Settings)."
        )
    chosen = [conversation for conversation in found if is_scored(conversation)]
    st.markdown(describe(chosen, len(found), selection))
    return Chosen(conversations=chosen, selection=selection)


def _takes_the_same(again: Again) -> bool:
    """Ask whether the conversations of the earlier run are meant, as they are now."""
    names = {
        THESE: f"The {counted(len(again.conversation_ids), 'conversation')} of run {again.run.id}, "
        "with today's scores",
        OTHERS: "Others",
    }
    choice = st.radio(
        "Conversations",
        list(names),
        index=list(names).index(OTHERS if again.is_next_round else THESE),
        format_func=names.__getitem__,
        label_visibility="collapsed",
        key="data",
    )
    return choice == THESE


def is_scored(conversation: Conversation) -> bool:
    """Return whether anybody scored one of its turns, or the whole of it."""
    return bool(conversation.outcomes) or any(
        turn.scores or turn.adjudicated for turn in conversation.assistant_messages
    )


def describe(chosen: list[Conversation], found: int, selection: str) -> str:
    """Return in words what was chosen, and how much of it carries a score."""
    turns = [turn for conversation in chosen for turn in conversation.assistant_messages]
    scored = sum(bool(turn.scores or turn.adjudicated) for turn in turns)
    text = f"**{counted(len(chosen), 'conversation')}** · **{scored:,} of {len(turns):,}** turns scored"
    unscored = found - len(chosen)
    if unscored:
        text += f" · {counted(unscored, 'conversation')} without any score left out"
    if selection:
        text += f"  \n:gray[Only those {plain(selection)}.]"
    return text


def choose_model(again: Again | None) -> catalog.BaseModel | None:
    """Ask for the base model: a listed one, a hub id, or a folder; None if it is unusable."""
    models = {model.name: model for model in catalog.list_models(data.settings())}
    first = again.config.base_model if again else catalog.default_model()
    names = list(dict.fromkeys([*models, first]))
    name = st.selectbox(
        "Base model",
        names,
        index=names.index(first),
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


def choose_method(again: Again | None) -> Preset:
    """Ask for the preset."""
    names = [preset.value for preset in METHODS]
    name = st.radio(
        "Method",
        names,
        index=names.index(again.config.preset.value) if again else 0,
        captions=list(METHODS.values()),
        label_visibility="collapsed",
        key="method",
        bind="query-params",
    )
    return Preset(name)
