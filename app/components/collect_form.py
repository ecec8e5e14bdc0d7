"""What to collect: from which prompts, by which model, how far, and how it is sampled."""

from dataclasses import dataclass
from typing import TypedDict

import streamlit as st
from streamlit.delta_generator import DeltaGenerator

from app import auth, data
from app.collect_models import Answerer, answerers
from app.components.errors import show_error
from app.components.format import counted
from app.components.narrowing import choose_narrowing
from db.enums import Partner
from db.errors import EveryTurnError
from db.records import CollectionPlan, Conversation
from db.text import MAX_NAME_CHARS
from trainer.collecting.life import LIMITS
from trainer.collecting.prompts import UserTurns, from_conversations, from_file, from_lines

_TYPED, _FILE, _HERE = "Typed in", "From a file", "From conversations here"
_PARTNERS = {
    Partner.NOBODY: "One reply",
    Partner.SCRIPT: "A conversation, with a user who says what you wrote",
    Partner.MODEL: "A conversation, with a user whom the base model plays",
}
_TURNS = {
    UserTurns.LAST: "The last user turn",
    UserTurns.FIRST: "The first user turn",
    UserTurns.EACH: "Each user turn",
}


class _Sampling(TypedDict):
    temperature: float
    top_p: float
    max_tokens: int
    seed: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Wanted:
    """What the form asks for."""

    plan: CollectionPlan
    prompts: list[Conversation]


def choose() -> Wanted | None:
    """Draw the form; return what it asks for, None while something is missing."""
    st.subheader("1 Prompts", anchor=False)
    prompts = _prompts()
    st.subheader("2 Replies", anchor=False)
    left, right = st.columns([3, 1], vertical_alignment="bottom")
    with left:
        model = _model()
    replies = _number(
        "Replies to each prompt",
        "replies",
        4,
        right,
        "So many are sampled for each prompt; they stay together as one group, so that a run can "
        "compare them.",
    )
    partner = st.radio(
        "How far",
        list(_PARTNERS),
        format_func=_PARTNERS.__getitem__,
        key="collect.partner",
        help="Whole conversations show how the model does over several turns.",
    )
    script, persona, turns = _partner(partner)
    sampling = _sampling()
    name = st.text_input(
        "Name",
        placeholder=_suggestion(prompts, model),
        max_chars=MAX_NAME_CHARS,
        key="collect.name",
        help="What the list below calls it.",
    )
    if model is None or not prompts:
        return None
    plan = CollectionPlan(
        name=(name or "").strip() or _suggestion(prompts, model),
        base_model=model.base_model,
        run_id=model.run_id,
        replies=replies,
        partner=partner,
        script=script,
        persona=persona,
        turns=turns,
        **sampling,
    )
    return Wanted(plan=plan, prompts=prompts)


def in_words(wanted: Wanted) -> str:
    """Return what will be sampled, at most."""
    plan = wanted.plan
    conversations = len(wanted.prompts) * plan.replies
    replies = conversations * plan.replies_each
    return (
        f"**{counted(len(wanted.prompts), 'prompt')}** × {plan.replies} = "
        f"**{counted(conversations, 'conversation')}** with at most "
        f"{counted(replies, 'reply', 'replies')} and {replies * plan.max_tokens:,} tokens."
    )


def _prompts() -> list[Conversation]:
    source = st.radio(
        "Where the prompts come from",
        [_TYPED, _FILE, _HERE],
        horizontal=True,
        key="collect.source",
        label_visibility="collapsed",
    )
    if source == _HERE:
        return _from_here()
    try:
        found = _from_file() if source == _FILE else _typed()
    except EveryTurnError as error:
        show_error(error)
        return []
    return found


def _typed() -> list[Conversation]:
    text = st.text_area(
        "Openings, one a line",
        height=150,
        placeholder="My parcel says delivered but nothing is here.\nCan I change my booking?",
        key="collect.openings",
        help="What the user says first. Each line is one prompt; the same line counts once.",
    )
    return from_lines(text or "", system=_system())


def _from_file() -> list[Conversation]:
    file = st.file_uploader(
        "A file with openings",
        type=["txt", "jsonl", "json", "csv", "parquet"],
        key="collect.file",
        help="Text with one opening a line, or conversations in any form that Import reads: what "
        "precedes their first reply is taken.",
    )
    system = _system()
    return [] if file is None else from_file(file.name, file.getvalue(), system=system)


def _system() -> str:
    text = st.text_input(
        "System prompt",
        key="collect.system",
        help="Tells the model what it is; empty for none. A file's own system prompts stay.",
    )
    return (text or "").strip()


def _from_here() -> list[Conversation]:
    user = auth.current_user()
    left, right = st.columns([1, 3], vertical_alignment="bottom")
    with left:
        filter = choose_narrowing(user, data.project_settings())
    turns = right.selectbox(
        "Reply to",
        list(_TURNS),
        format_func=_TURNS.__getitem__,
        key="collect.turns",
        help="What stands before the chosen turn comes along; what follows it does not.",
    )
    found = data.conversations(tuple(data.conversation_ids(filter, user_id=user.id)))
    prompts = from_conversations(found, turns)
    st.caption(
        f"{counted(len(found), 'conversation')}, {counted(len(prompts), 'different prompt')}."
    )
    return prompts


def _model() -> Answerer | None:
    known = answerers()
    if not known:
        st.info(
            "No base model is here yet: `python -m trainer pull smollm2-135m` fetches a small one.",
            icon=":material/download:",
        )
        return None
    return st.selectbox(
        "Model",
        known,
        format_func=lambda answerer: answerer.title,
        key="collect.model",
        help="The base model, or the adapter of a finished run.",
    )


def _partner(partner: Partner) -> tuple[tuple[str, ...], str, int]:
    """Ask what the kind of user needs: the script, the persona, the number of turns."""
    if partner is Partner.SCRIPT:
        text = st.text_area(
            "What the user says after each reply, one turn a line",
            placeholder="It is 48213.\nThey say they never got it.",
            key="collect.script",
            help="The same in every conversation, whatever the model replies.",
        )
        return tuple(line.strip() for line in (text or "").splitlines() if line.strip()), "", 1
    if partner is Partner.MODEL:
        persona = st.text_area(
            "Whom the base model plays",
            placeholder="You are a customer whose parcel is lost. You are short and impatient. "
            "Say [end] when you have what you want.",
            key="collect.persona",
            help="The system prompt for the user's part. A user who says [end], or nothing, ends "
            "the conversation.",
        )
        turns = _number(
            "Replies in a conversation, at most", "turns", 3, st.container(width=320), ""
        )
        return (), (persona or "").strip(), turns
    return (), "", 1


def _sampling() -> _Sampling:
    defaults = CollectionPlan(name="", base_model="")
    with st.expander("Sampling", icon=":material/tune:"):
        left, middle = st.columns(2)
        temperature = left.number_input(
            "Temperature",
            float(LIMITS["temperature"].low),
            float(LIMITS["temperature"].high),
            defaults.temperature,
            0.1,
            key="collect.temperature",
            help="1 samples as the model predicts, which training assumes; lower is safer and more "
            "alike, 0 always takes the likeliest token.",
        )
        top_p = middle.number_input(
            "Top-p",
            0.05,
            float(LIMITS["top_p"].high),
            defaults.top_p,
            0.05,
            key="collect.top_p",
            help="Only the likeliest tokens that make up this share are sampled from; 1 for all.",
        )
        max_tokens = _number(
            "Longest reply (tokens)", "max_tokens", defaults.max_tokens, left, "Cut off there."
        )
        seed = _number(
            "Seed", "seed", defaults.seed, middle, "The same seed asks for the same replies again."
        )
    return {"temperature": temperature, "top_p": top_p, "max_tokens": max_tokens, "seed": seed}


def _number(label: str, name: str, value: int, place: DeltaGenerator, help: str) -> int:
    limits = LIMITS[name]
    number = place.number_input(
        label,
        int(limits.low),
        int(limits.high),
        value,
        1,
        key=f"collect.{name}",
        help=help or None,
    )
    return int(number)


def _suggestion(prompts: list[Conversation], model: Answerer | None) -> str:
    of = model.title if model else "a model"
    return f"{counted(len(prompts), 'prompt')}, {of}"
