"""The router: page settings, navigation, and what every page shows in the sidebar."""

from pathlib import Path

import streamlit as st

from app import auth, routes
from app.components.errors import shown
from app.components.run_status import render_active_run

LOGO = Path(__file__).parent / "logo.svg"
ICON = Path(__file__).parent / "icon.svg"  # a named icon would be fetched from the internet


def main() -> None:
    """Draw the frame around the page that the address asks for, then that page."""
    st.set_page_config(
        page_title="EveryTurn",
        page_icon=str(ICON),
        layout="wide",
        initial_sidebar_state=240,
    )
    st.logo(LOGO, size="large")
    page = st.navigation(
        {
            "": [
                st.Page(routes.HOME, title="Home", icon=":material/home:", default=True),
            ],
            "Data": [
                st.Page(
                    routes.CONVERSATIONS,
                    title="Conversations",
                    icon=":material/chat:",
                    url_path="conversations",
                ),
                st.Page(routes.LABEL, title="Label", icon=":material/grade:", url_path="label"),
            ],
            "Train": [
                st.Page(
                    routes.LAUNCH,
                    title="Launch",
                    icon=":material/rocket_launch:",
                    url_path="launch",
                ),
                st.Page(routes.RUNS, title="Runs", icon=":material/monitoring:", url_path="runs"),
                st.Page(routes.RUN, title="Run", url_path="run", visibility="hidden"),
            ],
            "Project": [
                st.Page(
                    routes.SETTINGS,
                    title="Settings",
                    icon=":material/settings:",
                    url_path="settings",
                ),
            ],
        }
    )
    with shown():
        with st.sidebar:
            render_active_run()
            st.caption(f":material/person: {auth.current_user().name}")
        page.run()


if __name__ == "__main__":
    main()
