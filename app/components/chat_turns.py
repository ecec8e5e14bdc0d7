"""What was said in a chat: each question, its replies side by side, and what can be done there."""

import streamlit as st

from app import routes, state
from app.chat_jobs import job_of
from app.chat_sending import scores_of
from app.chat_tree import Chat, Ending, Reply, Turn, Vote, opening_of
from app.components import chat_actions as actions
from app.components.chat_live import column_title, render_live
from app.components.format import counted, plain, score_text
from app.components.prose import render_prose
from app.components.transcript import (
    AVATARS,
    page_of_messages,
    render_system,
    render_text,
    render_tools,
    render_transcript,
)
from db.enums import Role

PAGE_TURNS = 20

VOTES = {
    Vote.FIRST: "A is better",
    Vote.SECOND: "B is better",
    Vote.SAME: "About the same",
    Vote.BAD: "Both are bad",
}

_ENDS = {
    Ending.LENGTH: "cut at the longest length",
    Ending.STOPPED: "stopped",
}


def render_turns(chat: Chat, *, can_act: bool) -> None:
    """Show the path of the chat that is chosen."""
    opening = opening_of(chat)
    render_system(chat.system, key="chat.system_shown")
    render_tools(chat.tools)
    if opening is not None:
        with st.expander(
            f"Goes on from: {plain(opening.title or 'an earlier conversation')} "
            f"({counted(len(opening.messages), 'message')})",
            icon=":material/history:",
        ):
            render_transcript(opening, key="chat.opening")
    path = chat.path
    first = page_of_messages(len(path), key="chat.pages", shown=len(path) - 1, size=PAGE_TURNS)
    job = job_of(chat.id) if chat.id else None
    for turn in path[first : first + PAGE_TURNS]:
        is_last = turn is path[-1]
        _question(chat, turn, can_act=can_act and job is None)
        answering = job is not None and job.turn.id == turn.id
        lanes = [lane for lane in turn.order if not (answering and job and lane in job.growing)]
        _replies(turn, lanes, can_act=can_act and is_last and job is None)
        if answering:
            render_live(chat, turn)
        elif is_last and can_act and job is None:
            _missing(turn)
            _vote(turn)
        if turn.vote is not None:
            _voted(turn, turn.vote)


def _question(chat: Chat, turn: Turn, *, can_act: bool) -> None:
    with st.chat_message("user", avatar=AVATARS[Role.USER]):
        if state.EDITED_TURN.get() == turn.id and can_act:
            _editor(turn)
            return
        render_text(turn.asked, key=f"chat.asked.{turn.id}")
        if not can_act:
            return
        siblings = chat.siblings(turn)
        with st.container(horizontal=True, vertical_alignment="center", gap="xxsmall"):
            st.button(
                "Edit",
                icon=":material/edit:",
                type="tertiary",
                key=f"chat.edit.{turn.id}",
                help="Ask in other words, as a branch: what was said so far stays beside it.",
                on_click=state.EDITED_TURN.set,
                args=(turn.id,),
            )
            if len(siblings) > 1:
                at = siblings.index(turn)
                _switch(
                    f"branch.{turn.id}",
                    at,
                    len(siblings),
                    "branch",
                    lambda index: (actions.show_branch, (siblings[index].id,)),
                )


def _editor(turn: Turn) -> None:
    key = f"chat.words.{turn.id}"
    st.text_area("Your question", turn.asked, key=key)
    with st.container(horizontal=True):
        st.button(
            "Ask anew",
            type="primary",
            key=f"chat.anew.{turn.id}",
            on_click=actions.ask_anew,
            args=(key, turn.id),
        )
        st.button("Cancel", key=f"chat.cancel.{turn.id}", on_click=state.EDITED_TURN.clear)


def _replies(turn: Turn, lanes: list[str], *, can_act: bool) -> None:
    shown = [(lane, reply) for lane in lanes if (reply := turn.reply(lane)) is not None]
    if not shown:
        return
    for (lane, reply), column in zip(shown, st.columns(len(shown)), strict=True):
        place = turn.order.index(lane)
        with column, st.container(border=True, key=f"chat_reply_{turn.id}_{place}"):
            st.markdown(f"**{column_title(turn, lane)}**")
            _said(turn, reply, place)
            if can_act:
                _reply_actions(turn, lane, reply, place)


def _said(turn: Turn, reply: Reply, place: int) -> None:
    key = f"chat.said.{turn.id}.{place}.{len(turn.replies)}"
    if reply.text:
        render_prose(reply.text, key=key)
    elif reply.ending is not Ending.FAILED:
        st.caption("(It ended its turn without a word.)")
    if reply.ending is Ending.FAILED:
        st.error(plain(reply.problem), icon=":material/error:")
        return
    facts = [counted(len(reply.token_ids), "token")]
    if not turn.hides_names:  # how fast a model is may give it away
        facts.append(f"{reply.seconds:.1f} s")
    if reply.ending in _ENDS:
        facts.append(_ENDS[reply.ending])
    st.caption(" · ".join(facts), help=_how(reply))


def _how(reply: Reply) -> str:
    drawn = reply.sampling
    return (
        f"temperature {drawn.temperature:g}, top-p {drawn.top_p:g}, top-k {drawn.top_k or 'all'}, "
        f"seed {drawn.seed}"
    )


def _reply_actions(turn: Turn, lane: str, reply: Reply, place: int) -> None:
    own = turn.replies_of(lane)
    if turn.vote is not None:
        return
    with st.container(horizontal=True, vertical_alignment="center", gap="xxsmall"):
        failed = reply.ending is Ending.FAILED
        st.button(
            "Try again" if failed else "Regenerate",
            icon=":material/refresh:",
            type="secondary" if failed else "tertiary",
            key=f"chat.again.{turn.id}.{place}",
            help=None if failed else "Another reply of this model; the others stay, too.",
            on_click=actions.answer_again,
            args=(turn.id, [lane]),
        )
        if len(own) > 1:
            _switch(
                f"reply.{turn.id}.{place}",
                own.index(reply),
                len(own),
                "reply",
                lambda index: (actions.show_reply, (turn.id, lane, index)),
            )


def _missing(turn: Turn) -> None:
    """Offer the replies that never came: somebody stopped them, or the app went down."""
    missing = [lane for lane in turn.order if turn.reply(lane) is None]
    if not missing:
        return
    if len(missing) < len(turn.order) and turn.blind:
        told = "One of the two has not answered."
    else:
        told = (
            "There is no reply yet." if len(missing) == len(turn.order) else "A reply is missing."
        )
    with st.container(horizontal=True, vertical_alignment="center"):
        st.caption(told)
        st.button(
            "Answer",
            icon=":material/play_arrow:",
            type="primary",
            key=f"chat.answer.{turn.id}",
            on_click=actions.answer_again,
            args=(turn.id, missing),
        )


def _vote(turn: Turn) -> None:
    if not turn.awaits_vote:
        return
    st.markdown("**Which reply is better?** :gray[Then you see who said it, and the chat goes on.]")
    with st.container(horizontal=True):
        for vote, label in VOTES.items():
            st.button(label, key=f"chat.vote.{vote}", on_click=actions.vote, args=(turn.id, vote))


def _voted(turn: Turn, vote: Vote) -> None:
    first, second = scores_of(vote)
    with st.container(horizontal=True, vertical_alignment="center"):
        st.caption(
            f":material/how_to_vote: {VOTES[vote]}: stored as A {score_text(first)}, "
            f"B {score_text(second)}, one group."
        )
        for letter, conversation_id in zip("AB", turn.conversations, strict=False):
            _link_to_label(conversation_id, f"{letter} in Label")


def render_sent(chat: Chat) -> None:
    """Say where the chat was sent to be labelled, and lead there."""
    if not chat.conversations:
        return
    with st.container(horizontal=True, vertical_alignment="center"):
        st.caption(":material/check: Sent to labelling")
        for conversation_id in chat.conversations:
            _link_to_label(conversation_id, f"Score conversation {conversation_id}")


def _link_to_label(conversation_id: int, label: str) -> None:
    st.page_link(
        routes.LABEL,
        label=label,
        icon=":material/grade:",
        query_params={routes.CONVERSATION_PARAM: str(conversation_id)},
    )


def _switch(key: str, at: int, count: int, what: str, go) -> None:
    """Offer the one before and the one after among several."""
    for icon, name, index in (
        ("chevron_left", "Previous", at - 1),
        ("chevron_right", "Next", at + 1),
    ):
        if name == "Next":
            st.caption(f"{at + 1}/{count}")
        inside = 0 <= index < count
        action, arguments = go(index if inside else at)
        st.button(
            name,
            icon=f":material/{icon}:",
            type="tertiary",
            key=f"chat.{key}.{name}",
            help=f"{name} {what}",
            disabled=not inside,
            on_click=action,
            args=arguments,
        )
