"""Argilla: one rating for each user, by question, by user or flattened."""

import pytest

from db.formats import Scale, ScoreRule, ScoreTarget
from db.records import Score
from tests.db.formats.reading import COLOUR, clean, found, lines, said, taken

CHAT = [{"role": "user", "content": COLOUR}, {"role": "assistant", "content": "Blue."}]


@pytest.mark.parametrize(
    "record",
    [
        {"fields": {"chat": CHAT}, "responses": {"rating": [
            {"value": 4, "user_id": "ann", "status": "submitted"},
            {"value": 1, "user_id": "bob", "status": "submitted"},
            {"value": 5, "user_id": "eve", "status": "discarded"}]}},
        {"fields": {"prompt": COLOUR, "response": "Blue."}, "responses": [
            {"values": {"rating": {"value": 4}}, "user_id": "ann", "status": "submitted"},
            {"values": {"rating": {"value": 1}}, "user_id": "bob", "status": "submitted"},
            {"values": {"rating": {"value": 5}}, "user_id": "eve", "status": "draft"}]},
        {"chat": CHAT, "rating.responses": [4, 1, 5], "rating.responses.users": ["ann", "bob", "eve"],
         "rating.responses.status": ["submitted", "submitted", "draft"]},
    ],
)  # fmt: skip
def test_argilla_records_have_one_rating_a_user(record: object) -> None:
    assert found(lines(record)).format == "argilla"
    (conversation,) = clean(lines(record))
    assert [(m.role.value, m.content) for m in conversation.messages] == [
        ("user", COLOUR), ("assistant", "Blue.")
    ]  # fmt: skip
    assert conversation.messages[1].scores == (
        Score(rater="ann", value=0.75), Score(rater="bob", value=0.0)
    )  # fmt: skip


def test_the_rule_says_what_a_rating_is_about() -> None:
    chat = [*CHAT, *CHAT]
    record = {"fields": {"chat": chat}, "responses": {"rating": [{"value": 4, "user_id": "ann"}]}}
    (conversation,), _ = taken(lines(record))
    assert conversation.outcomes == (Score(rater="ann", value=0.75),)
    scale = Scale(name="rating", low=1.0, high=5.0, to_low=0.0, target=ScoreTarget.LAST_REPLY)
    (conversation,), _ = taken(lines(record), rule=ScoreRule((scale,)))
    assert conversation.outcomes == ()
    assert said(conversation)[-1] == ("assistant", "Blue.", 0.75)
