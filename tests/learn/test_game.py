"""The decision problem pays what it says, and its words lead where they should."""

import pytest

from db.enums import Role
from db.records import Message
from tests.learn.game import (
    BEST_RETURN,
    GREEDY,
    GREEDY_RETURN,
    INVEST,
    NO_ANSWER_PAY,
    PICK,
    REST,
    Situation,
    all_situations,
    conversation_of,
)


def pays(*answers: str) -> list[float]:
    """Return what each answer of a game pays."""
    situation: Situation | None = Situation()
    paid: list[float] = []
    for answer in answers:
        assert situation is not None
        paid.append(situation.pay(answer))
        situation = situation.after(answer)
    assert situation is None
    return paid


def test_planting_pays_nothing_first_and_most_in_the_end() -> None:
    assert pays(INVEST, PICK, PICK) == [0.0, 0.7, 0.7]
    assert pytest.approx(1.4) == BEST_RETURN


def test_eating_pays_at_once_and_little_later() -> None:
    assert pays(GREEDY, PICK, PICK) == [0.6, 0.1, 0.1]
    assert pytest.approx(0.8) == GREEDY_RETURN


def test_resting_pays_nothing_on_any_field() -> None:
    assert pays(INVEST, REST, REST) == [0.0, 0.0, 0.0]
    assert pays(GREEDY, REST, PICK) == [0.6, 0.0, 0.1]


@pytest.mark.parametrize("answers", [("sleep",), (INVEST, "plant"), (GREEDY, PICK, " pick")])
def test_another_answer_costs_and_ends_the_game(answers: tuple[str, ...]) -> None:
    assert pays(*answers)[-1] == NO_ANSWER_PAY


def test_the_question_tells_the_field_that_the_first_answer_made() -> None:
    for situation in all_situations():
        asked = situation.messages[-1].content
        assert all(word in asked for word in situation.words)
        if situation.answers:
            assert ("green" in asked) == (situation.answers[0] == INVEST)
            assert ("bare" in asked) == (situation.answers[0] == GREEDY)


def test_there_are_seven_situations_with_questions_of_their_own() -> None:
    assert len({situation.messages for situation in all_situations()}) == 7


def test_a_game_becomes_a_conversation_of_alternating_messages() -> None:
    replies = [Message(role=Role.ASSISTANT, content=word) for word in (INVEST, PICK, "sleep")]
    messages = conversation_of(replies).messages
    assert [m.role for m in messages] == [Role.USER, Role.ASSISTANT] * 3
    assert [m.content for m in messages[1::2]] == [INVEST, PICK, "sleep"]
    assert messages[4] == Situation((INVEST, PICK)).messages[-1]
