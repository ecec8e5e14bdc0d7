"""The router: page settings, who is signed in, navigation, and what every page shows beside it."""

from pathlib import Path

import streamlit as st
from streamlit.navigation.page import StreamlitPage

from app import auth, routes
from app.components.errors import guarded, shown
from app.components.format import plain
from app.components.run_news import render_news
from app.views import sign_in
from db.enums import UserRole
from db.records import User

LOGO = Path(__file__).parent / "logo.svg"
ICON = Path(__file__).parent / "icon.svg"  # a named icon would be fetched from the internet

ADMIN_PAGES = {"import", "launch", "collect", "agreement", "insight"}
"""Pages on which an annotator can do nothing; `app.permissions` decides what anybody may do."""


def main() -> None:
    """Draw the frame around the page that the address asks for, then that page."""
    st.set_page_config(
        page_title="EveryTurn",
        page_icon=str(ICON),
        layout="wide",
        initial_sidebar_state=240,
    )
    st.logo(LOGO, size="large")
    with shown():
        try:
            user = auth.current_user()
        except auth.NotSignedInError as reason:
            st.navigation(_pages(), position="hidden")  # or the address would be unknown
            sign_in.render(reason)
            return
        _signed_in(user)


def _signed_in(user: User) -> None:
    is_admin = user.role is UserRole.ADMIN
    page = st.navigation(_pages(is_admin=is_admin))
    with st.sidebar:
        render_news()
        _who(user)
    if page.url_path in ADMIN_PAGES and not is_admin:
        st.title(page.title, anchor=False)
        st.info("Only admins use this page. Ask one of them.", icon=":material/lock:")
        return
    page.run()


def _pages(*, is_admin: bool = True) -> dict[str, list[StreamlitPage]]:
    return {
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
            st.Page(
                routes.IMPORTS,
                title="Import",
                icon=":material/download:",
                url_path="import",
                visibility="hidden",
            ),
            st.Page(routes.LABEL, title="Label", icon=":material/grade:", url_path="label"),
            st.Page(
                routes.AGREEMENT,
                title="Agreement",
                icon=":material/balance:",
                url_path="agreement",
                visibility="visible" if is_admin else "hidden",
            ),
            st.Page(
                routes.INSIGHT,
                title="Insight",
                icon=":material/insights:",
                url_path="insight",
                visibility="visible" if is_admin else "hidden",
            ),
        ],
        "Train": [
            st.Page(
                routes.LAUNCH,
                title="Launch",
                icon=":material/rocket_launch:",
                url_path="launch",
                visibility="visible" if is_admin else "hidden",
            ),
            st.Page(routes.RUNS, title="Runs", icon=":material/monitoring:", url_path="runs"),
            st.Page(routes.RUN, title="Run", url_path="run", visibility="hidden"),
            st.Page(routes.COMPARE, title="Compare runs", url_path="compare", visibility="hidden"),
        ],
        "Use": [
            st.Page(routes.CHAT, title="Chat", icon=":material/forum:", url_path="chat"),
            st.Page(
                routes.COLLECT,
                title="Collect",
                icon=":material/inbox:",
                url_path="collect",
                visibility="visible" if is_admin else "hidden",
            ),
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


def _who(user: User) -> None:
    """Say who is here and, where people sign in, offer to leave."""
    role = " (admin)" if user.role is UserRole.ADMIN and auth.people_sign_in() else ""
    st.caption(f":material/person: {plain(user.name)}{role}")
    if auth.people_sign_in():
        st.button(
            "Sign out", type="tertiary", icon=":material/logout:", on_click=guarded(auth.sign_out)
        )


if __name__ == "__main__":
    main()
