"""The chat page: what it shows, where its buttons lead, and what it leaves to be labelled."""

from dataclasses import replace

import pytest
from streamlit.testing.v1 import AppTest

from app import auth, chat_jobs, chat_store, data, routes
from app.chat_jobs import Job
from app.chat_sending import conversations_of
from app.chat_tree import (
    BASE,
    Chat,
    Ending,
    Reply,
    Sampling,
    Turn,
    Vote,
    ask,
    from_json,
    history,
    switched,
    to_json,
    with_replies,
    with_turn,
)
from db import commands, queries
from db.engine import Database
from db.enums import ReviewState, Role, UserRole
from db.errors import ConflictError, DataError, NotFoundError
from db.records import Conversation, Message, User
from tests.app.conftest import MARKUP, OpenPage
from tests.app.shown import texts


def reply(lane: str, text: str) -> Reply:
    return Reply(
        lane=lane,
        text=text,
        base_model="tiny",
        ending=Ending.STOP,
        sampling=Sampling(seed=3),
        token_ids=(1, 2),
        logprobs=(-0.5, -0.25),
        fingerprint=f"weights of {lane}",
    )


def talk(*, blind: bool = False, said: tuple[str, str] = ("By car.", "On foot.")) -> Chat:
    """A chat of one question that two models have answered."""
    chat = Chat(base_model="tiny", lanes=(BASE, "run-7"), blind=blind, system="Be brief.")
    chat = ask(chat, f"How? {MARKUP}", after=None)
    assert chat.last is not None
    both = [reply(lane, text) for lane, text in zip(chat.lanes, said, strict=True)]
    return with_replies(chat, chat.last.id, both)


def last(chat: Chat) -> Turn:
    assert chat.last is not None
    return chat.last


@pytest.fixture
def asked(monkeypatch: pytest.MonkeyPatch) -> list[tuple[Chat, Turn, tuple[str, ...]]]:
    """What models are asked, instead of asking them."""
    found: list[tuple[Chat, Turn, tuple[str, ...]]] = []

    def begin(database: Database, chat: Chat, turn: Turn, lanes) -> Job:
        found.append((chat, turn, tuple(lanes)))
        return Job(chat=chat, turn=turn, growing={}, database=database)

    monkeypatch.setattr("app.components.chat_actions.begin", begin)
    return found


def button(app: AppTest, key: str):
    return next(button for button in app.button if button.key and button.key.startswith(key))


def test_a_chat_is_the_same_after_it_was_written_and_read() -> None:
    chat = talk(blind=True)
    assert from_json(to_json(chat)) == chat
    with pytest.raises(DataError, match="damaged"):
        from_json('{"base_model": 7}')


@pytest.mark.parametrize("chat_id", ["../../etc/passwd", "1-", "1-zz", "", "1-0123456789abcdef/.."])
def test_an_address_can_name_no_other_file(database: Database, chat_id: str) -> None:
    with pytest.raises(NotFoundError):
        chat_store.read(chat_id)


def test_each_model_goes_on_from_its_own_words_and_after_a_vote_from_the_better_ones() -> None:
    first = talk()
    second = ask(first, "And then?", after=first.leaf)
    told = [history(second, last(second), lane)[2]["content"] for lane in first.lanes]
    assert told == ["By car.", "On foot."]
    voted = with_turn(second, replace(second.path[0], vote=Vote.SECOND))
    told = [history(voted, last(voted), lane)[2]["content"] for lane in first.lanes]
    assert told == ["On foot.", "On foot."]


def test_a_question_asked_anew_is_a_branch_and_both_stay() -> None:
    chat = talk()
    longer = ask(chat, "And then?", after=chat.leaf)
    anew = ask(longer, "Why?", after=None)
    assert [turn.asked for turn in anew.path] == ["Why?"]
    assert len(anew.siblings(last(anew))) == 2
    back = switched(anew, chat.path[0].id)
    assert back.path == longer.path


def test_replies_stand_side_by_side_as_text_and_are_sent_with_their_tokens(
    open_page: OpenPage, database: Database, user: User
) -> None:
    chat = chat_store.create(talk(), user_id=user.id)
    app = open_page(routes.CHAT, chat=chat.id)
    assert not app.exception
    shown = "\n".join(texts(app))
    assert "By car." in shown and "On foot." in shown and "<script>" in shown
    assert not any("<script>" in element.value for element in app.markdown)
    button(app, "chat.send").click().run()
    assert not app.exception and not app.error
    ids = chat_store.read(chat.id).conversations
    stored = queries.conversations(database, list(ids))
    assert len({conversation.group for conversation in stored}) == 1
    for conversation, lane in zip(stored, chat.lanes, strict=True):
        (turn,) = conversation.assistant_messages
        assert (turn.token_ids, turn.logprobs) == ((1, 2), (-0.5, -0.25))
        assert turn.sampling is not None
        assert turn.sampling["weights"] == f"weights of {lane}"
        assert turn.sampling["temperature"] == 0.7 and turn.sampling["seed"] == 3
        assert conversation.system == "Be brief." and conversation.source == "chat"
    button(app, "chat.send").click().run()  # again: nothing is stored twice
    assert data.overview().conversations == 2


def test_a_blind_vote_shows_the_names_and_becomes_scores_of_a_pair(
    open_page: OpenPage, database: Database, user: User, asked
) -> None:
    chat = chat_store.create(talk(blind=True), user_id=user.id)
    app = open_page(routes.CHAT, chat=chat.id)
    heads = [element.value for element in app.markdown if element.value in ("**A**", "**B**")]
    assert heads == ["**A**", "**B**"]
    assert app.chat_input[0].disabled
    button(app, "chat.vote.second").click().run()
    assert not app.exception and not app.error
    turn = last(chat_store.read(chat.id))
    assert turn.vote is Vote.SECOND
    pair = queries.conversations(database, list(turn.conversations))
    assert len({conversation.group for conversation in pair}) == 1 and pair[0].group
    given = [conversation.assistant_messages[-1].scores[0].value for conversation in pair]
    assert given == [0.0, 1.0]
    said = {
        turn.order[0]: pair[0].messages[-1].content,
        turn.order[1]: pair[1].messages[-1].content,
    }
    assert said == {BASE: "By car.", "run-7": "On foot."}
    stances = {
        queries.review_state(database, user_id=user.id, conversation_id=id)
        for id in turn.conversations
    }
    assert stances == {ReviewState.DONE}
    assert not app.chat_input[0].disabled
    commands.undo(database, user_id=user.id)  # one undo takes the whole vote back
    pair = queries.conversations(database, list(turn.conversations))
    assert not any(c.assistant_messages[-1].scores for c in pair)


def test_a_question_begins_a_chat_with_an_address_and_one_from_an_old_view_is_refused(
    open_page: OpenPage, database: Database, user: User, asked
) -> None:
    app = open_page(routes.CHAT)
    app.chat_input[0].set_value("Hello?").run()
    assert not app.exception
    chat_id = app.query_params["chat"]
    ((chat, turn, lanes),) = asked
    assert chat.id == chat_id and lanes == (BASE,) and turn.asked == "Hello?"
    chat_store.update(chat_id, lambda c: ask(c, "From another tab", after=c.leaf))
    app.chat_input[0].set_value("And?").run()
    assert "gone on in another tab" in "\n".join(error.value for error in app.error)
    assert len(asked) == 1


def test_a_chat_goes_on_from_a_conversation_without_its_scores(
    open_page: OpenPage, conversation_ids: list[int], asked
) -> None:
    app = open_page(routes.CHAT, conversation=conversation_ids[0])
    assert not app.exception
    app.chat_input[0].set_value("Which neighbour?").run()
    ((chat, turn, _),) = asked
    told = history(chat, turn, BASE)
    assert [message["role"] for message in told] == [
        *("system", "user", "assistant", "user", "assistant", "user"),
    ]
    assert told[-1]["content"] == "Which neighbour?" and "0.8" not in chat.opening


def test_the_tools_of_a_conversation_go_with_the_chat_and_back_to_labelling(
    open_page: OpenPage, database: Database, asked
) -> None:
    tool = {"type": "function", "function": {"name": "order"}}
    question = Message(role=Role.USER, content="Where is my order?")
    stored = commands.add_conversation(database, Conversation(messages=(question,), tools=(tool,)))
    app = open_page(routes.CHAT, conversation=stored)
    assert not app.exception
    assert "1 tool the assistant may call" in [expander.label for expander in app.expander]
    app.chat_input[0].set_value("Number 7.").run()
    ((chat, turn, _),) = asked
    assert from_json(to_json(chat)).tools == (tool,)
    (sent,) = conversations_of(with_replies(chat, turn.id, [reply(BASE, "On its way.")]))
    assert sent.tools == (tool,)


def test_annotators_chat_send_and_vote_and_read_others_chats_only(
    open_page: OpenPage, database: Database, user: User, monkeypatch: pytest.MonkeyPatch
) -> None:
    annotator = replace(user, role=UserRole.ANNOTATOR)
    monkeypatch.setattr(auth, "current_user", lambda: annotator)
    monkeypatch.setattr(auth, "acting_user", lambda: annotator)
    chat = chat_store.create(talk(), user_id=user.id)
    app = open_page(routes.CHAT, chat=chat.id)
    button(app, "chat.send").click().run()
    assert not app.error and chat_store.read(chat.id).conversations
    others = chat_store.create(talk(), user_id=user.id + 1)
    app = open_page(routes.CHAT, chat=others.id)
    assert "By car." in "".join(texts(app)) and not app.chat_input
    assert not any(b.key and b.key.startswith(("chat.send", "chat.again")) for b in app.button)


def test_a_chat_that_is_gone_or_unanswered_offers_a_way_on(
    open_page: OpenPage, database: Database, user: User, asked
) -> None:
    app = open_page(routes.CHAT, chat=f"{user.id}-0123456789abcdef")
    assert "no such chat" in app.error[0].value.replace("\u2060", "")
    # The app went down while a reply came in: the question is there, and can be answered.
    chat = chat_store.create(
        ask(Chat(base_model="tiny"), "Still there?", after=None), user_id=user.id
    )
    app = open_page(routes.CHAT, chat=chat.id)
    button(app, "chat.answer").click().run()
    ((_, turn, lanes),) = asked
    assert (turn.asked, lanes) == ("Still there?", (BASE,))


def test_one_chat_is_answered_once_at_a_time(
    database: Database, user: User, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(Job, "run_to_the_end", lambda self: None)
    chat = chat_store.create(ask(Chat(base_model="tiny"), "Hi", after=None), user_id=user.id)
    chat_jobs.begin(database, chat, last(chat), [BASE])
    with pytest.raises(ConflictError, match="answered already"):
        chat_jobs.begin(database, chat, last(chat), [BASE])
