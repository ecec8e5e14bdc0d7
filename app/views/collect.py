"""Collect: let a model answer many prompts in the background, so that people can score the replies."""

import hashlib
import json

import streamlit as st

from app import address, auth, data
from app.components.collect_form import Wanted, choose, in_words
from app.components.collect_progress import collection_facts, render_collection
from app.components.errors import guarded, show_error, show_failure
from app.components.format import plain, shortened
from app.components.layout import reading_page
from app.components.notice import show_notice
from db.errors import NotFoundError
from db.formats import write
from db.records import Collection, User
from trainer.collecting.life import start_collection


def render() -> None:
    """Draw the collection that the address names, or the form and the list."""
    user = auth.current_user()
    show_notice()
    with reading_page():
        collection = _opened()
        if collection is None:
            st.title("Collect", anchor=False)
            st.write(
                "Let a model answer many prompts in the background. The replies come to the label "
                "queue, those to one prompt as a group, with what a run needs to learn exactly."
            )
            show_failure()
            _form(user)
            _list()
            return
        st.button(
            "All collections",
            icon=":material/arrow_back:",
            type="tertiary",
            on_click=address.open_collection,
            args=(None,),
        )
        st.title(plain(collection.plan.name), anchor=False)
        show_failure()
        render_collection(collection)


def _opened() -> Collection | None:
    collection_id = address.collection_id()
    if collection_id is None:
        return None
    try:
        return data.collection(collection_id)
    except NotFoundError as error:
        show_error(error)
        return None


def _form(user: User) -> None:
    address.start_token()  # from the first look on, so that a copied tab has it too
    wanted = choose()
    if wanted is not None:
        st.markdown(in_words(wanted))
    st.button(
        "Collect",
        type="primary",
        icon=":material/play_arrow:",
        disabled=wanted is None,
        help="Give at least one prompt first." if wanted is None else None,
        on_click=_start,
        args=(wanted, user.id),
        key="collect.start",
    )


def _list() -> None:
    collections = data.collections()
    if not collections:
        return
    st.subheader("Collections so far", anchor=False)
    for collection in collections:
        with st.container(horizontal=True, vertical_alignment="center"):
            st.button(
                plain(shortened(collection.plan.name, 60)),
                key=f"collect.open.{collection.id}",
                type="tertiary",
                icon=":material/inbox:",
                on_click=address.open_collection,
                args=(collection.id,),
            )
            st.space("stretch")
            st.markdown(f":gray[:small[{collection_facts(collection)}]]", width="content")


@guarded
def _start(wanted: Wanted, user_id: int) -> None:
    """Begin; the same form sent twice under one address is one collection."""
    form = json.dumps(
        [address.start_token(), wanted.plan.to_json(), write(wanted.prompts, "native")]
    )
    collection_id = data.write(
        start_collection,
        wanted.plan,
        wanted.prompts,
        start_token=hashlib.sha256(form.encode()).hexdigest(),
        user_id=user_id,
    )
    address.renew_start_token()
    address.open_collection(collection_id)


if __name__ == "__main__":
    render()
