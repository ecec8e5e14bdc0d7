"""What a click on the chat page does."""

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

from app import address, auth, chat_store, data, state
from app.chat_jobs import begin, job_of
from app.chat_models import default_base_model, lanes_for
from app.chat_sending import conversations_of, pair_of, scores_of
from app.chat_tree import (
    BASE,
    Chat,
    Turn,
    Vote,
    ask,
    lane_of,
    switched,
    with_turn,
)
from app.components.errors import guarded
from app.permissions import RefusedError
from db import commands
from db.enums import Role
from db.errors import ConflictError, DataError
from db.formats import write
from db.records import Conversation

MOST_LANES = 4
"""So many models fit side by side."""


def opened() -> Chat:
    """Return the chat that the address names, or one that is not stored before something is said.

    Raises:
        NotFoundError, DataError: if the address names what is not there.
    """
    chat_id = address.chat_id()
    if chat_id:
        return chat_store.read(chat_id)
    run_id, conversation_id = address.run_id(), address.conversation_id()
    if run_id is not None:
        run = data.run(run_id)
        return Chat(base_model=run.base_model, lanes=(BASE, lane_of(run.id)))
    base_model = default_base_model()
    chat = Chat(base_model=base_model, lanes=lanes_for(base_model))
    if conversation_id is not None:
        return _from_conversation(chat, data.conversation(conversation_id))
    return chat


def is_own(chat: Chat) -> bool:
    """Return whether the person may go on with it: it is theirs, or not stored yet."""
    return not chat.id or chat_store.owner_of(chat.id) == auth.current_user().id


def change(edit: Callable[[Chat], Chat]) -> Chat:
    """Change the chat of the page; one that was not stored yet is now.

    Raises:
        RefusedError: if it is somebody else's.
    """
    chat = opened()
    if not is_own(chat):
        raise RefusedError(
            "this chat is somebody else's", where="chat", remedy="Begin one of your own."
        )
    if chat.id:
        return chat_store.update(chat.id, edit)
    made = chat_store.create(edit(chat), user_id=auth.acting_user().id)
    address.open_chat(made.id)
    return made


@guarded
def say(key: str, after: str | None) -> None:
    """Ask what was typed into the input at the foot of the page."""
    text = str(state.widget_value(key) or "").strip()
    if text:
        _ask(text, after)


@guarded
def ask_anew(key: str, turn_id: str) -> None:
    """Ask a question again, in the words of the field: a branch beside the old one."""
    text = str(state.widget_value(key) or "").strip()
    if not text:
        raise DataError("there is no question", where="chat", remedy="Write one.")
    state.EDITED_TURN.clear()
    _ask(text, opened().turn(turn_id).parent, seen=False)


def _ask(text: str, after: str | None, *, seen: bool = True) -> None:
    """Put a question and let the models answer; `after` is the last turn that the person saw."""

    def put(chat: Chat) -> Chat:
        _require_quiet(chat)
        if not chat.lanes:
            raise DataError("no model was chosen", where="Who answers", remedy="Choose one.")
        if seen and chat.leaf != after:
            raise ConflictError(
                "this chat has gone on in another tab",
                where="chat",
                remedy="Read what was said there, then ask again.",
            )
        return ask(chat, text, after=after)

    chat = change(put)
    assert chat.last is not None  # it was just asked
    begin(data.database(), chat, chat.last, chat.last.order)


@guarded
def answer_again(turn_id: str, lanes: Sequence[str]) -> None:
    """Let models answer a question once more."""
    chat = change(lambda chat: chat)
    begin(data.database(), chat, chat.turn(turn_id), lanes)


@guarded
def stop(chat_id: str) -> None:
    """End the replies in progress; what has come stays."""
    job = job_of(chat_id)
    if job is not None:
        job.stop()


@guarded
def show_branch(turn_id: str) -> None:
    """Show another branch."""
    change(lambda chat: switched(chat, turn_id))


@guarded
def show_reply(turn_id: str, lane: str, index: int) -> None:
    """Mean another reply of a model, and go on from it."""

    def choose(chat: Chat) -> Chat:
        turn = chat.turn(turn_id)
        return with_turn(chat, replace(turn, shown={**turn.shown, lane: index}))

    change(choose)


@guarded
def vote(turn_id: str, said: Vote) -> None:
    """Say which reply is better: both are stored as a group, with scores by the rule."""
    chat = change(lambda chat: chat)
    turn = chat.turn(turn_id)
    if not turn.awaits_vote:
        return  # another tab was first
    ids = data.write(
        commands.keep_chat,
        pair_of(chat, turn),
        user_id=auth.acting_user().id,
        last_scores=scores_of(said),
    )

    def settle(chat: Chat) -> Chat:
        return with_turn(chat, replace(chat.turn(turn_id), vote=said, conversations=ids))

    change(settle)


@guarded
def send() -> None:
    """Store what is shown as conversations that can be labelled."""
    chat = change(lambda chat: chat)
    _require_quiet(chat)
    conversations = conversations_of(chat)
    if not conversations:
        raise DataError("there is no reply yet", where="chat", remedy="Ask something first.")
    ids = data.write(commands.keep_chat, conversations, user_id=auth.acting_user().id)
    change(lambda chat: replace(chat, conversations=ids))


@guarded
def change_settings(**changes: Any) -> None:
    """Change how the chat goes on: fields of `Chat`."""
    change(lambda chat: replace(chat, **changes))


@guarded
def change_base_model(key: str) -> None:
    """Talk to another base model and its adapters."""
    name = str(state.widget_value(key))
    change(lambda chat: replace(chat, base_model=name, lanes=lanes_for(name)))


@guarded
def delete(chat_id: str) -> None:
    """Forget a chat for good."""
    if chat_store.owner_of(chat_id) != auth.acting_user().id:
        raise RefusedError("this chat is somebody else's", where="chat")
    stop(chat_id)
    chat_store.delete(chat_id)
    if chat_id == address.chat_id():
        address.open_chat(None)


def _require_quiet(chat: Chat) -> None:
    if chat.id and job_of(chat.id) is not None:
        raise ConflictError(
            "this chat is being answered already",
            where="chat",
            remedy="Wait for the reply, or stop it.",
        )


def _from_conversation(chat: Chat, conversation: Conversation) -> Chat:
    """Return a chat that goes on from a stored conversation; nobody's scores come along."""
    messages = tuple(
        replace(message, id=None, scores=(), adjudicated=None) for message in conversation.messages
    )
    chat = replace(chat, system=conversation.system, tools=conversation.tools)
    if messages and messages[-1].role is Role.USER:
        # It ends with a question: that is the first turn, which only wants to be answered.
        turn = Turn(id="opening", asked=messages[-1].content, order=chat.lanes)
        chat = replace(chat, turns=(turn,), leaf=turn.id)
        messages = messages[:-1]
    if not messages:
        return chat
    opening = Conversation(messages=messages, title=conversation.title)
    return replace(chat, opening=write([opening], "native"))
