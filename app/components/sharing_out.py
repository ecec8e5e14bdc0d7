"""Sharing conversations out among raters, and how far each of them has come."""

import streamlit as st

from app import auth, data, state
from app.components.cells import text_cells
from app.components.errors import guarded
from app.components.format import counted
from db import commands
from db.records import ConversationFilter


def render_assign(ids: list[int]) -> None:
    """Offer to ask people to score exactly these conversations; nothing where nobody can be asked."""
    people = _people()
    if not people or not auth.is_admin():
        return
    with st.popover("Assign", icon=":material/person_add:"):
        raters = st.multiselect(
            "People", list(people), format_func=people.__getitem__, key="many.people",
            help="They find the conversations in their queue.",
        )  # fmt: skip
        with st.container(horizontal=True):
            st.button("Ask them", disabled=not raters, on_click=_assign, args=(ids, raters))
            st.button(
                "Ask them no longer", disabled=not raters, on_click=_take_back, args=(ids, raters)
            )


def render_sharing_out() -> None:
    """Ask whom to give which conversations, and show what was given to whom."""
    people = _people()
    if not people:
        st.caption(
            "Only people who can sign in can be asked to score. An admin lets them in with "
            "`python -m db user add NAME`."
        )
        return
    target = data.project_settings().target_raters
    with st.container(horizontal=True, vertical_alignment="bottom"):
        raters = st.multiselect(
            "People",
            list(people),
            default=list(people),
            format_func=people.__getitem__,
            key="share.people",
            help="Those who can be asked. They find the conversations in their queue.",
        )
        tags = st.multiselect(
            "With all of these tags", data.all_tags(), placeholder="any tag", key="share.tags"
        )
        number = st.number_input(
            "Raters each (people)", 1, 100, target, key="share.number", width=150,
            help="How many people should score each conversation. Those who were asked before or "
            "have scored it count. The Settings have the usual number.",
        )  # fmt: skip
    wanted = ConversationFilter(tags=tuple(tags), order="oldest")
    ids = data.conversation_ids(wanted, user_id=auth.current_user().id)
    with st.container(horizontal=True):
        st.button(
            f"Share {counted(len(ids), 'conversation')} out",
            icon=":material/group_add:",
            disabled=not ids or not raters,
            on_click=_share,
            args=(ids, raters, number),
        )
        st.button(
            "Ask them no longer",
            icon=":material/group_remove:",
            disabled=not ids or not raters,
            on_click=_take_back,
            args=(ids, raters),
            help="Takes these conversations out of these people's queues. Scores stay.",
        )
    loads = data.workloads()
    if loads:
        st.dataframe(
            text_cells(
                {
                    "Rater": load.rater,
                    "Conversations": load.assigned,
                    "Handled": load.handled,
                    "Progress": load.handled / load.assigned,
                }
                for load in loads
            ),
            hide_index=True,
            column_config={
                "Handled": st.column_config.NumberColumn(help="Marked done, skipped or flagged"),
                "Progress": st.column_config.ProgressColumn(
                    min_value=0.0, max_value=1.0, format="percent"
                ),
            },
            alt="How many conversations each person was asked to score, and has handled.",
        )


def _people() -> dict[int, str]:
    """Return the names of those who can be asked: only who can come in finds a queue."""
    return {person.user.id: person.user.name for person in data.people() if person.may_sign_in}


@guarded
def _assign(ids: list[int], raters: list[int]) -> None:
    asked = data.write(commands.assign, ids, raters)
    state.NOTICE.set(f"{counted(asked, 'assignment')} made.")


@guarded
def _share(ids: list[int], raters: list[int], number: int) -> None:
    asked = data.write(commands.distribute, ids, raters, raters=number)
    state.NOTICE.set(
        f"{counted(asked, 'assignment')} made."
        if asked
        else "Nothing to do: each has its raters, or there is nobody left to ask."
    )


@guarded
def _take_back(ids: list[int], raters: list[int]) -> None:
    gone = data.write(commands.unassign, ids, raters)
    state.NOTICE.set(f"{counted(gone, 'assignment')} taken back.")
