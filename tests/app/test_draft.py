from dataclasses import replace

import pytest

from app import draft as drafts
from app.draft import Draft, DraftMessage
from db.enums import Role
from db.errors import DataError
from db.records import Conversation, Message, Score

SAMPLED = Message(
    id=7,
    role=Role.ASSISTANT,
    content="Hello.",
    scores=(Score(rater="local", value=0.5), Score(rater="ann", value=1.0)),
    model="m",
    token_ids=(1, 2),
    logprobs=(-0.1, -0.2),
)
STORED = Conversation(
    id=3,
    title="Greeting",
    source="import:a.jsonl",
    tools=({"type": "function", "function": {"name": "greet"}},),
    messages=(Message(id=6, role=Role.USER, content="Hi"), SAMPLED),
)


def roles(draft: Draft) -> list[str]:
    return [message.role.value for message in draft.messages]


def test_a_message_below_answers_the_one_above() -> None:
    draft = drafts.with_message_below(drafts.new_draft(), 1)
    assert roles(draft) == ["user", "assistant", "user"]
    assert roles(drafts.with_message_below(draft, 2)) == ["user", "assistant", "user", "assistant"]


def test_moving_and_deleting_keep_the_other_messages() -> None:
    first, second = drafts.new_draft().messages
    draft = Draft(messages=(first, second))
    assert drafts.with_move(draft, 0, 1).messages == (second, first)
    assert drafts.with_move(draft, 1, -1).messages == (second, first)
    assert drafts.without_message(draft, 0).messages == (second,)


def test_an_unchanged_conversation_comes_back_unchanged() -> None:
    assert drafts.conversation_from(drafts.draft_of(STORED, "local")) == STORED


def test_a_rewritten_reply_is_no_longer_what_the_model_sampled() -> None:
    draft = drafts.draft_of(STORED, "local")
    changed = DraftMessage(role=Role.ASSISTANT, content="Good day.", stored=SAMPLED)
    messages = drafts.conversation_from(Draft(messages=(draft.messages[0], changed))).messages
    assert messages[1].id == 7
    assert messages[1].scores == SAMPLED.scores
    assert (messages[1].model, messages[1].token_ids, messages[1].logprobs) == (None, None, None)


def test_a_turn_that_becomes_a_user_message_loses_its_scores() -> None:
    changed = DraftMessage(role=Role.USER, content="Hello.", stored=SAMPLED)
    assert drafts.conversation_from(Draft(messages=(changed,))).messages[0].scores == ()


def test_an_empty_message_is_refused_by_its_number() -> None:
    draft = Draft(
        messages=(DraftMessage(role=Role.USER, content="Hi"), DraftMessage(role=Role.USER))
    )
    with pytest.raises(DataError, match="message 2"):
        drafts.conversation_from(draft)


@pytest.mark.parametrize("value", [7.0, 1.01, -0.05])
def test_a_score_out_of_range_is_refused_by_its_message(value: float) -> None:
    opening = DraftMessage(role=Role.USER, content="Hi")
    reply = DraftMessage(role=Role.ASSISTANT, content="Hello.", value=value)
    with pytest.raises(DataError, match=f"the score of message 2 is {value:g}"):
        drafts.conversation_from(Draft(messages=(opening, reply)))


def test_scores_below_zero_stay_allowed_where_there_is_one() -> None:
    stored = replace(SAMPLED, scores=(Score(rater="local", value=-0.7),))
    reply = DraftMessage(role=Role.ASSISTANT, content="Hello.", value=-0.5, stored=stored)
    assert drafts.conversation_from(Draft(messages=(reply,))).messages[0].content == "Hello."


def test_a_conversation_without_messages_is_refused() -> None:
    with pytest.raises(DataError, match="no message"):
        drafts.conversation_from(Draft())


def test_a_turn_that_becomes_a_user_message_loses_the_decision_on_it_too() -> None:
    decided = replace(SAMPLED, adjudicated=Score(rater="dora", value=0.2))
    changed = DraftMessage(role=Role.USER, content="Hello.", stored=decided)
    assert drafts.conversation_from(Draft(messages=(changed,))).messages[0].adjudicated is None
