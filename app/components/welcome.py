"""What an empty home page offers: what EveryTurn is, and example conversations in one click."""

import streamlit as st

from app import address, auth, data, routes, state
from app.components.errors import guarded, show_failure
from app.components.format import counted
from db import commands
from db.examples import EXAMPLE_SETS, load_example


def render_welcome() -> None:
    """Explain the product in two sentences and offer the first step."""
    show_failure()
    st.markdown(
        "EveryTurn makes a chat model behave better over a whole conversation. You score each of "
        "its replies, and a training run on this machine turns the scores into an adapter that "
        "you can watch learning, and take away."
    )
    if not auth.is_admin():
        st.info("There is nothing to score yet: an admin has to add conversations first.")
        return
    with st.container(border=True, width=760):
        st.markdown("#### New here? Start with the example sets", anchors=False)
        chosen = [
            example.name
            for example in EXAMPLE_SETS
            if st.checkbox(
                f"**{example.title}** :gray[· {example.description}]",
                value=True,
                key=f"example.{example.name}",
            )
        ]
        st.button(
            "Load the example sets",
            type="primary",
            icon=":material/auto_stories:",
            disabled=not chosen,
            on_click=_load,
            args=(chosen,),
        )
    with st.container(horizontal=True, vertical_alignment="center"):
        st.markdown(":gray[Or bring your own:]", width="content")
        if st.button("Write a conversation", icon=":material/edit:", type="tertiary"):
            st.switch_page(routes.CONVERSATIONS, query_params={address.MODE_PARAM: "new"})
        if st.button("Import a file", icon=":material/download:", type="tertiary"):
            st.switch_page(routes.IMPORTS)


@guarded
def _load(names: list[str]) -> None:
    added = 0
    for name in names:
        ids, _ = data.write(commands.add_conversations, load_example(name))
        added += len(ids)
    state.NOTICE.set(f"Loaded {counted(added, 'conversation')}.")
