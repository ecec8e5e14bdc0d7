"""Who may come in, who has scored, and who tried what they may not; for admins."""

import streamlit as st

from app import auth, data
from app.components.cells import text_cells
from app.components.format import counted, exact_time
from app.sign_in_ways import Ways, ways
from db.records import Person

REFUSALS = 50


def render_people() -> None:
    """Show people and refused attempts; who comes in is decided on the machine itself."""
    if auth.people_sign_in():
        st.markdown(_told(ways()))
    else:
        st.info(
            "You are alone: the app serves this machine only, and nobody signs in. To work as a "
            "team, let somebody sign in as below.",
            icon=":material/person:",
        )
    _list(data.people())
    st.caption(
        "Who may sign in, and as what, is decided on the machine that EveryTurn runs on. Changes "
        "count at once; whoever is changed has to sign in again."
    )
    st.code(
        "python -m db user add NAME --admin\npython -m db user add NAME\n"
        "python -m db user remove NAME",
        language="bash",
    )
    _refusals()


def _told(here: Ways) -> str:
    ways_in = ["with a name and a password"] if here.password else []
    if here.providers:
        ways_in.append("through " + (" or ".join(here.providers)).replace("default", "a provider"))
    return f"People sign in {' or '.join(ways_in)}."


def _list(people: list[Person]) -> None:
    if not people:
        st.caption("Nobody has scored a turn yet, and nobody may sign in.")
        return
    st.dataframe(
        text_cells(
            {
                "Name": person.user.name,
                "Role": person.user.role.value,
                "May sign in": person.may_sign_in,
                "Scored turns": person.scores,
            }
            for person in people
        ),
        hide_index=True,
        alt=f"{counted(len(people), 'person', 'people')}: name, role, whether they may sign in, "
        "and how many turns they have scored",
    )


def _refusals() -> None:
    st.subheader("Refused attempts", anchor=False)
    refusals = data.refusals(limit=REFUSALS)
    if not refusals:
        st.caption("Nobody has tried what they may not do, or signed in with a wrong password.")
        return
    st.dataframe(
        text_cells(
            {
                "When": exact_time(refusal.at),
                "Who": refusal.name,
                "Tried to": refusal.action,
                "Refused because": refusal.reason,
            }
            for refusal in refusals
        ),
        hide_index=True,
        alt=f"The latest {counted(len(refusals), 'refused attempt')}: when, who, what and why",
    )
    st.caption(f"The latest {REFUSALS}. The server's log has them, too.")
