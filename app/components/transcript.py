"""A conversation as a chat: what messages say is shown as text, and nothing in it is executed."""

import json
from collections.abc import Sequence
from typing import Any

import streamlit as st

from app.components.format import counted, plain, score_text
from app.components.prose import render_prose
from db.enums import Role
from db.records import Conversation, Message

LONG_TEXT_CHARS = 4000
"""Longer messages are folded; the rest is sent to the browser only when somebody asks for it."""

LONG_TEXT_LINES = 60

PREVIEW_CHARS = 1200
PREVIEW_LINES = 25

PAGE_MESSAGES = 40
"""More messages than this are shown page by page."""

AVATARS = {
    Role.SYSTEM: ":material/settings:",
    Role.USER: ":material/person:",
    Role.ASSISTANT: ":material/smart_toy:",
    Role.TOOL: ":material/build:",
}


def render_transcript(conversation: Conversation, *, key: str) -> None:
    """Show a whole conversation with what people said about its turns, read-only."""
    render_system(conversation.system, key=key)
    render_tools(conversation.tools)
    turns = turn_numbers(conversation.messages)
    first = page_of_messages(len(conversation.messages), key=key)
    for index in range(first, min(first + PAGE_MESSAGES, len(conversation.messages))):
        message = conversation.messages[index]
        with st.chat_message(message.role, avatar=AVATARS[message.role]):
            st.markdown(f"{heading(message, turns[index])} {_scores(message)}")
            render_content(message, key=f"{key}.{index}")
            for score in message.scores:
                if score.note:
                    st.text(f"Note by {score.rater}: {score.note}")


def page_of_messages(count: int, *, key: str, shown: int = 0, size: int = PAGE_MESSAGES) -> int:
    """Return the index of the first message to show; offers pages when there are too many.

    Args:
        count: Number of messages.
        key: Tells this pagination from others on the page.
        shown: Index of a message whose page is shown first.
        size: Number of messages on a page.
    """
    if count <= size:
        return 0
    pages = -(-count // size)
    st.caption(f"{counted(count, 'message')}, {size} a page")
    page = st.pagination(pages, default=shown // size + 1, key=f"{key}.page.{shown // size}")
    return (page - 1) * size


def render_system(text: str, *, key: str, markdown: bool = True) -> None:
    """Show the system prompt, if there is one."""
    if text:
        with st.chat_message("system", avatar=AVATARS[Role.SYSTEM]):
            st.markdown(":gray[system prompt]")
            render_text(text, key=f"{key}.system", markdown=markdown)


def render_tools(tools: Sequence[dict[str, Any]]) -> None:
    """Show which functions the assistant may call, folded, if there are any."""
    if tools:
        with st.expander(
            f"{counted(len(tools), 'tool')} the assistant may call", icon=":material/build:"
        ):
            listed = json.dumps(tools, indent=2, ensure_ascii=False)
            st.code(listed, language="json", wrap_lines=True)


def render_content(message: Message, *, key: str, markdown: bool = True) -> None:
    """Show what a message says and which tools it calls."""
    if message.content:
        is_prose = markdown and message.role is not Role.TOOL
        render_text(message.content, key=key, markdown=is_prose)
    elif not message.tool_calls:
        st.caption("(empty)")
    for call in message.tool_calls:
        st.caption("Tool call")
        st.code(json.dumps(call, indent=2, ensure_ascii=False), language="json", wrap_lines=True)


def render_text(text: str, *, key: str, markdown: bool = True) -> None:
    """Show somebody's text; a very long one is folded."""
    shown = folded(text)
    if shown != text:
        told = f"Show all {counted(len(text), 'character')}"
        shown = text if st.toggle(told, key=f"{key}.unfold") else f"{shown} …"
    render_prose(shown, key=f"{key}.prose", markdown=markdown)


def folded(text: str) -> str:
    """Return the beginning of a text that is too long to be shown at once, else all of it."""
    if len(text) <= LONG_TEXT_CHARS and text.count("\n") < LONG_TEXT_LINES:
        return text
    lines = text[:PREVIEW_CHARS].split("\n")[:PREVIEW_LINES]
    return "\n".join(lines)


def heading(message: Message, turn: int | None, *, colour: str = "gray") -> str:
    """Return a message's role in Markdown, with the turn's number where it can be scored."""
    parts = [message.role.value]
    if turn is not None:
        parts.append(f"turn {turn + 1}")
    if message.model:
        parts.append(f"sampled from {plain(message.model)}")
    return f":{colour}[{' · '.join(parts)}]"


def turn_numbers(messages: Sequence[Message]) -> list[int | None]:
    """Return for each message its assistant turn, counted from 0, or None."""
    numbers: list[int | None] = []
    turn = 0
    for message in messages:
        is_turn = message.role is Role.ASSISTANT
        numbers.append(turn if is_turn else None)
        turn += is_turn
    return numbers


def _scores(message: Message) -> str:
    if message.role is not Role.ASSISTANT:
        return ""
    badges = [f":green-badge[{score_text(score.value)}]" for score in message.scores]
    if message.adjudicated is not None:
        badges.append(f":violet-badge[decided {score_text(message.adjudicated.value)}]")
    return " ".join(badges) or ":orange-badge[not scored]"
