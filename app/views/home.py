"""Home: what there is, and the one thing to do next."""

from dataclasses import dataclass

import streamlit as st

from app import auth, data, routes
from app.components.format import ago, counted, plain, row_title, shortened
from app.components.notice import show_notice
from app.components.run_status import status_badge
from app.components.welcome import render_welcome
from db.records import ConversationFilter, Overview, User

RECENT = 5


@dataclass(frozen=True, slots=True)
class NextStep:
    """What to do next, in words, and where that is done."""

    words: str
    button: str
    page: str


def render() -> None:
    """Draw the page."""
    show_notice()
    overview = data.overview()
    if overview.conversations == 0:
        st.title("Welcome to EveryTurn", anchor=False)
        render_welcome()
        return
    st.title("Home", anchor=False)
    _flow(overview)
    _next_step(next_step(overview) if auth.is_admin() else rating_step(overview))
    left, right = st.columns(2, gap="large")
    with left:
        _recent_conversations(auth.current_user())
    with right:
        _recent_runs()


def rating_step(overview: Overview) -> NextStep:
    """Return what an annotator does next: they score, whatever the project is at."""
    if overview.turns == 0:
        return NextStep("No conversation has an assistant turn yet.", "Look", routes.CONVERSATIONS)
    return NextStep("Score the conversations that wait for you.", "Go on labelling", routes.LABEL)


def next_step(overview: Overview) -> NextStep:
    """Return the one thing that brings the work forward most."""
    waiting = overview.turns - overview.scored_turns
    if overview.active_runs:
        return NextStep("A run is training right now.", "Watch it", routes.RUNS)
    if overview.scored_turns == 0 and overview.turns:
        words = f"{counted(waiting, 'turn')} {'waits' if waiting == 1 else 'wait'} for a score."
        return NextStep(words, "Start scoring", routes.LABEL)
    if overview.turns == 0:
        words = "No conversation has an assistant turn yet."
        return NextStep(words, "Go to the conversations", routes.CONVERSATIONS)
    if overview.runs == 0:
        words = f"{counted(overview.scored_turns, 'turn')} with a score: enough for a first run."
        return NextStep(words, "Launch a run", routes.LAUNCH)
    if waiting:
        words = f"{counted(waiting, 'turn')} {'waits' if waiting == 1 else 'wait'} for a score."
        return NextStep(words, "Go on labelling", routes.LABEL)
    return NextStep("Every turn has a score.", "Launch a run", routes.LAUNCH)


def _flow(overview: Overview) -> None:
    running = f" ({overview.active_runs} running)" if overview.active_runs else ""
    steps = (
        ("Conversations", f"{overview.conversations:,}"),
        ("Scored turns", f"{overview.scored_turns:,} / {overview.turns:,}"),
        ("Runs", f"{overview.runs:,}{running}"),
        ("Adapters", f"{overview.adapters:,}"),
    )
    with st.container(horizontal=True, vertical_alignment="center"):
        for index, (label, value) in enumerate(steps):
            if index:
                st.markdown(":gray[:material/arrow_forward:]", width="content")
            st.metric(label, value, border=True)


def _next_step(step: NextStep) -> None:
    with st.container(border=True, horizontal=True, vertical_alignment="center"):
        st.markdown(f"**Next:** {step.words}")
        st.space("stretch")
        if st.button(step.button, type="primary", icon=":material/arrow_forward:"):
            st.switch_page(step.page)


def _recent_conversations(user: User) -> None:
    st.subheader("Recent conversations", anchor=False)
    newest = ConversationFilter(order="newest")
    for row in data.conversation_rows(newest, user_id=user.id, limit=RECENT):
        with st.container(horizontal=True, vertical_alignment="center"):
            st.page_link(
                routes.CONVERSATIONS,
                label=plain(shortened(row_title(row), 36)),
                icon=":material/chat:",
                query_params={routes.CONVERSATION_PARAM: str(row.id)},
            )
            st.space("stretch")
            _aside(f"{row.scored_turns} of {counted(row.turns, 'turn')} scored")


def _recent_runs() -> None:
    st.subheader("Recent runs", anchor=False)
    runs = data.runs()[:RECENT]
    if not runs:
        st.caption("No run yet. A run turns scored conversations into an adapter.")
    for run in runs:
        with st.container(horizontal=True, vertical_alignment="center"):
            st.page_link(
                routes.RUN,
                label=plain(shortened(run.name, 30)),
                icon=":material/monitoring:",
                query_params={routes.RUN_PARAM: str(run.id)},
            )
            status_badge(run.status)
            st.space("stretch")
            _aside(ago(run.created_at))


def _aside(text: str) -> None:
    st.markdown(f":gray[:small[{text}]]", width="content")


if __name__ == "__main__":
    render()
