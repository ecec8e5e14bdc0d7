"""Taking conversations away: what the filters let through, in any form of export."""

import streamlit as st

from app import auth, data
from app.components.format import counted
from app.downloads import for_admins
from db.formats import WRITERS
from db.records import ConversationFilter


def render_export(chosen: ConversationFilter, *, user_id: int, count: int) -> None:
    """Offer admins what a table or queue shows, all pages of it, as a file."""
    if not auth.is_admin():
        return
    with st.popover("Export", icon=":material/upload:", disabled=count == 0, width="content"):
        name = st.radio(
            "Form",
            list(WRITERS),
            format_func=lambda name: WRITERS[name].title,
            key="export.format",
        )
        writer = WRITERS[name]
        st.caption(writer.about)
        st.download_button(
            f"Download {counted(count, 'conversation')}",
            data=for_admins(
                "conversations", lambda: data.export(chosen, user_id=user_id, format=name)
            ),
            file_name=f"conversations-{name}{writer.suffix}",
            mime=writer.media_type,
            icon=":material/download:",
            type="primary",
            on_click="ignore",
        )
        st.caption(
            "All conversations that the filters let through. Very many are better written on the "
            "server: `python -m db export FILE --format NAME`."
        )
