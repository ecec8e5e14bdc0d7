"""Settings: how people score here, the guidelines, who may come in, and each person's own keys."""

import streamlit as st

from app import auth
from app.components.endpoint_settings import render_endpoints
from app.components.errors import show_failure
from app.components.key_settings import render_keys
from app.components.layout import reading_page
from app.components.notice import show_notice
from app.components.people import render_people
from app.components.project_settings import render_project, render_project_facts
from db.enums import UserRole


def render() -> None:
    """Draw the page: an admin may change the project, everybody else may read it."""
    user = auth.current_user()
    show_notice()
    with reading_page():
        st.title("Settings", anchor=False)
        show_failure()
        is_admin = user.role is UserRole.ADMIN
        names = ["Project", "My keys", *(["Endpoints", "People"] if is_admin else [])]
        tabs = st.tabs(names, key="part", bind="query-params")
        with tabs[0]:
            if is_admin:
                render_project()
            else:
                render_project_facts()
        with tabs[1]:
            render_keys(user)
        if is_admin:
            with tabs[2]:
                render_endpoints()
            with tabs[3]:
                render_people()


render()
