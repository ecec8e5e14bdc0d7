"""Label: score every assistant turn of a conversation, with the keyboard or with the mouse."""

import streamlit as st

from app import auth, data, routes
from app.components.errors import fragment, show_error, show_failure
from app.components.export_panel import render_export
from app.components.key_names import with_action
from app.components.label_acting import HELP, act, take_keys
from app.components.label_bar import render_bar
from app.components.label_blind import seen_by
from app.components.label_desk import first_unscored
from app.components.label_facts import render_facts, render_nothing_waits
from app.components.label_filter import choose_filter
from app.components.label_help import render_guidelines, show_help
from app.components.label_keys import hear_keys
from app.components.label_place import Place, arrive, go_to, place
from app.components.label_queue import QUEUE, Queue, first_of, open_queue
from app.components.label_reading import keep_shown
from app.components.label_scale import SCALES, Scale
from app.components.label_turns import NOTE_KEY, Look, render_turns, turn_key
from app.components.layout import reading_page
from app.components.notice import show_notice
from db.enums import LabelAction, ReviewState
from db.errors import NotFoundError
from db.records import Conversation, ProjectSettings, User, UserSettings

PAGE_WIDTH = 1280
"""In pixels: a chat of a comfortable width, and the guidelines beside it."""


def render() -> None:
    """Draw the page."""
    user = auth.current_user()
    if not data.has_turns():
        st.title("Label")
        st.write(
            "Here you score every reply of a conversation. There is no conversation with a reply "
            "yet: load an example set, type one in, or import a file."
        )
        st.page_link(routes.HOME, label="Load an example set", icon=":material/download:")
        st.page_link(routes.CONVERSATIONS, label="Type in or import", icon=":material/add:")
        return
    QUEUE.clear()  # the page was opened anew: so is the queue
    arrive()
    _desk(user)


@fragment()
def _desk(user: User) -> None:
    """Draw the queue and the conversation; a score redraws this part of the page alone."""
    project, settings = data.project_settings(), data.user_settings(user_id=user.id)
    scale = SCALES[project.scale]
    with reading_page(PAGE_WIDTH):
        with st.container(horizontal=True, vertical_alignment="bottom", gap="xsmall"):
            filter = choose_filter(user, project)
            queue = open_queue(filter, user.id)
            markdown, beside = _views(project)
            render_export(filter, user_id=user.id, count=len(queue.ids))
            st.space("stretch")
            _neighbours(settings)
        show_failure()
        show_notice()
        here = place() or _beginning(queue)
        if here is None:
            render_nothing_waits(filter, user)
            return
        go_to(here)
        conversation_id = here.conversation_id
        try:
            conversation = data.conversation(conversation_id)
        except NotFoundError as error:
            show_error(error)
            with st.bottom:  # the way to the other conversations
                _keyboard(f"{conversation_id}", "", settings, scale)
            return
        keep_shown(conversation)
        if project.blind:
            conversation = seen_by(conversation, user.name)
        stance = data.review_state(user_id=user.id, conversation_id=conversation_id)
        look = _look(here, user, scale, settings, markdown)
        chat, side = st.columns([5, 2], gap="medium") if beside else (st.container(), None)
        with chat:
            render_facts(conversation, user, queue, stance)
            if not conversation.assistant_messages:
                st.info("This conversation has no assistant turn: there is nothing to score here.")
            render_turns(conversation, look)
        if side is not None:
            with side, st.container(border=True):
                render_guidelines(project, scale)
        _foot(conversation, look, stance)
        if HELP.get():
            show_help(settings, scale)


def _beginning(queue: Queue) -> Place | None:
    first = first_of(queue)
    return None if first is None else Place(first)


def _look(here: Place, user: User, scale: Scale, settings: UserSettings, markdown: bool) -> Look:
    turns = data.own_turns(user_id=user.id, conversation_id=here.conversation_id)
    asked = here.turn
    return Look(
        user=user,
        scale=scale,
        settings=settings,
        focus=asked if asked is not None and 0 <= asked < len(turns) else first_unscored(turns),
        notes=data.pending_notes(user_id=user.id, conversation_id=here.conversation_id),
        markdown=markdown,
        is_blind=data.project_settings().blind,
    )


def _views(project: ProjectSettings) -> tuple[bool, bool]:
    """Let the rater choose how messages look, and whether the guidelines stand beside them."""
    with st.popover("View", icon=":material/visibility:"):
        markdown = st.toggle("Show Markdown as it is meant", True, key="md", bind="query-params")
        beside = st.toggle(
            "Guidelines beside the chat",
            bool(project.guidelines.strip()),
            key="guidelines",
            bind="query-params",
        )
    return markdown, beside


def _neighbours(settings: UserSettings) -> None:
    """Offer the conversations before and after this one."""
    for text, action in (
        ("Previous", LabelAction.PREVIOUS_CONVERSATION),
        ("Next", LabelAction.NEXT_CONVERSATION),
    ):
        st.button(
            with_action(text, settings.keys, action),
            key=f"go.{action}",
            help=f"{text} conversation of the queue",
            on_click=act,
            args=(f"go:{action}",),
        )


def _foot(conversation: Conversation, look: Look, stance: ReviewState) -> None:
    with st.bottom, reading_page(PAGE_WIDTH):
        render_bar(conversation, look.user, look.scale, look.settings, stance)
        with st.container(horizontal=True, vertical_alignment="center", gap="small"):
            has_turns = bool(conversation.assistant_messages)
            _keyboard(
                f"{conversation.id}.{look.focus}",
                turn_key(look.focus) if has_turns else "",
                look.settings,
                look.scale,
            )
            st.button("Next unscored", type="tertiary", on_click=act, args=("go:unscored",))
            st.button(
                with_action("Keys", look.settings.keys, LabelAction.HELP),
                type="tertiary",
                on_click=act,
                args=("help",),
            )


def _keyboard(place: str, focus: str, settings: UserSettings, scale: Scale) -> None:
    hear_keys(
        keys=settings.keys,
        scale=scale,
        place=place,
        focus=focus,
        note=NOTE_KEY if focus else "",
        on_keys=take_keys,
    )


if __name__ == "__main__":
    render()
