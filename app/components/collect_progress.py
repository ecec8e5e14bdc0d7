"""One collection: while it goes on, and what it has brought."""

import streamlit as st

from app import address, data, routes
from app.components.errors import fragment, guarded
from app.components.format import ago, counted, plain
from db import commands
from db.enums import CollectionState, Partner
from db.records import Collection
from trainer.collecting.life import cancel_collection, resume_collection

EVERY_S = 1.0


def render_collection(collection: Collection) -> None:
    """Show how far a collection is, or how it ended, with what can be done."""
    st.caption(_asked(collection))
    match collection.state:
        case CollectionState.COLLECTING:
            st.write(
                "This goes on in the background; you can close the page. A run, or a chat, that "
                "wants the device goes first. Replies can be labelled as soon as they are stored."
            )
            _follow(collection.id)
            with st.container(horizontal=True):
                _label(collection, kind="secondary")
                st.button(
                    "Cancel",
                    icon=":material/close:",
                    on_click=_cancel,
                    args=(collection.id,),
                    key="collect.cancel",
                    help="Replies that are stored stay.",
                )
        case CollectionState.DONE:
            st.success(
                f"{_brought(collection)} {ago(collection.changed_at).capitalize()}.",
                icon=":material/check_circle:",
            )
            if collection.error_text:
                st.warning(plain(collection.error_text), icon=":material/warning:")
            with st.container(horizontal=True):
                _label(collection, kind="primary")
                _forget_button(collection)
        case CollectionState.FAILED | CollectionState.CANCELLED:
            _stopped(collection)


def collection_facts(collection: Collection) -> str:
    """Return the aside of the list: how it stands, how much it brought, when."""
    stands = {
        CollectionState.COLLECTING: f"{collection.progress:.0%}",
        CollectionState.DONE: "done",
        CollectionState.FAILED: "failed",
        CollectionState.CANCELLED: "cancelled",
    }[collection.state]
    told = (stands, counted(collection.conversations, "conversation"), ago(collection.changed_at))
    return " · ".join(told)


@fragment(EVERY_S)
def _follow(collection_id: int) -> None:
    collection = data.collection(collection_id)
    if collection.state is not CollectionState.COLLECTING:
        st.rerun()
    st.progress(collection.progress, text=plain(collection.message) or "Starting")
    st.caption(_brought(collection))


def _stopped(collection: Collection) -> None:
    if collection.state is CollectionState.FAILED:
        st.error(plain(collection.error_text), icon=":material/error:")
    else:
        st.info("This was cancelled.", icon=":material/cancel:")
    st.write(_brought(collection))
    with st.container(horizontal=True):
        st.button(
            "Go on",
            type="primary",
            icon=":material/play_arrow:",
            on_click=_resume,
            args=(collection.id,),
            key="collect.resume",
            help="With the prompts whose replies are not stored; nothing is stored twice.",
        )
        _label(collection, kind="secondary")
        _forget_button(collection)


def _label(collection: Collection, *, kind: str) -> None:
    is_empty = not collection.conversations
    if st.button(
        "Label the replies",
        type="primary" if kind == "primary" else "secondary",
        icon=":material/grade:",
        disabled=is_empty,
        help="None is stored yet." if is_empty else None,
        key="collect.label",
    ):
        st.switch_page(routes.LABEL, query_params={"source": collection.source})


def _forget_button(collection: Collection) -> None:
    st.button(
        "Take off the list",
        type="tertiary",
        on_click=_forget,
        args=(collection.id,),
        key="collect.forget",
        help="The conversations stay.",
    )


def _asked(collection: Collection) -> str:
    plan = collection.plan
    who = f"run {plan.run_id} on {plan.base_model}" if plan.run_id else plan.base_model
    partners = {
        Partner.NOBODY: "one reply each",
        Partner.SCRIPT: f"{counted(plan.replies_each, 'scripted turn')}",
        Partner.MODEL: f"a played user, at most {counted(plan.turns, 'reply', 'replies')}",
    }
    parts = (
        plain(who),
        f"{counted(collection.prompts, 'prompt')} × {plan.replies}",
        partners[plan.partner],
        f"temperature {plan.temperature:g}",
        f"top-p {plan.top_p:g}",
        f"at most {plan.max_tokens} tokens",
        f"seed {plan.seed}",
    )
    return " · ".join(parts)


def _brought(collection: Collection) -> str:
    text = (
        f"{counted(collection.conversations, 'conversation')} from {collection.done:,} of "
        f"{counted(collection.prompts, 'prompt')} stored."
    )
    if collection.repeats:
        text += f" {collection.repeats:,} said the same as another reply and were left out."
    return text


@guarded
def _cancel(collection_id: int) -> None:
    data.write(cancel_collection, collection_id)


@guarded
def _resume(collection_id: int) -> None:
    data.write(resume_collection, collection_id)


@guarded
def _forget(collection_id: int) -> None:
    data.write(commands.forget_collection, collection_id)
    address.open_collection(None)
