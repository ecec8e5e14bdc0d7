"""Credit assignment, with numbers worked by hand."""

import pytest

from trainer.config import CreditMode
from trainer.data.credit import ConversationRewards, assign_credit


def advantages(
    *rewards: ConversationRewards, mode: CreditMode, gamma: float = 0.5, outcome_weight: float = 1.0
) -> list[list[float | None]]:
    credits = assign_credit(rewards, mode=mode, gamma=gamma, outcome_weight=outcome_weight)
    return [[turn.advantage for turn in conversation] for conversation in credits]


def test_recipe_takes_off_the_conversations_own_mean() -> None:
    first, second = advantages(
        ConversationRewards(turns=(1.0, 0.9)),
        ConversationRewards(turns=(0.7, 0.95)),
        mode=CreditMode.RECIPE,
    )
    assert first == pytest.approx([0.05, -0.05])
    assert second == pytest.approx([-0.125, 0.125])


def test_recipe_gives_equal_rewards_exactly_nothing() -> None:
    assert advantages(ConversationRewards(turns=(0.1,) * 3), mode=CreditMode.RECIPE) == [[0, 0, 0]]


def test_immediate_compares_with_others_at_the_same_turn_once_there_are_four() -> None:
    five = [ConversationRewards(turns=(reward, 9.0)) for reward in (1.0, 2.0, 3.0, 4.0, 5.0)]
    result = advantages(*five, mode=CreditMode.IMMEDIATE)
    # without the first, the others' mean at turn 0 is (2 + 3 + 4 + 5) / 4
    assert result[0] == pytest.approx([1.0 - 3.5, 0.0])
    assert result[4] == pytest.approx([5.0 - 2.5, 0.0])


def test_with_fewer_others_the_baseline_is_over_all_turns_of_the_others() -> None:
    result = advantages(
        ConversationRewards(turns=(1.0, 0.0)),
        ConversationRewards(turns=(0.0, 0.5)),
        mode=CreditMode.IMMEDIATE,
    )
    assert result[0] == pytest.approx([1.0 - 0.25, 0.0 - 0.25])
    assert result[1] == pytest.approx([0.0 - 0.5, 0.5 - 0.5])


def test_return_to_go_discounts_what_follows_and_adds_the_outcome_to_the_last_turn() -> None:
    credits = assign_credit(
        [ConversationRewards(turns=(1.0, 0.0, 0.5), outcome=0.5)],
        mode=CreditMode.RETURN_TO_GO,
        gamma=0.5,
        outcome_weight=2.0,
    )
    # last: 0.5 + 2 * 0.5 = 1.5; middle: 0 + 0.5 * 1.5; first: 1 + 0.5 * 0.75
    assert [turn.return_ for turn in credits[0]] == pytest.approx([1.375, 0.75, 1.5])


def test_a_missing_score_carries_no_gradient_and_the_return_skips_it() -> None:
    credits = assign_credit(
        [ConversationRewards(turns=(None, 0.0, None, 1.0))],
        mode=CreditMode.RETURN_TO_GO,
        gamma=0.5,
        outcome_weight=1.0,
    )
    assert [turn.advantage for turn in credits[0]] == [None, 0.25, None, 1.0]
    assert [turn.reward for turn in credits[0]] == [None, 0.0, None, 1.0]


def test_gamma_zero_is_the_reward_alone() -> None:
    credits = assign_credit(
        [ConversationRewards(turns=(0.25, 0.5), outcome=1.0)],
        mode=CreditMode.RETURN_TO_GO,
        gamma=0.0,
        outcome_weight=1.0,
    )
    assert [turn.return_ for turn in credits[0]] == [0.25, 1.5]


def test_outcome_gives_each_turn_the_whole_conversations_total() -> None:
    credits = assign_credit(
        [
            ConversationRewards(turns=(None, 0.5), outcome=1.0),
            ConversationRewards(turns=(0.25, None)),
        ],
        mode=CreditMode.OUTCOME,
        gamma=0.5,
        outcome_weight=2.0,
    )
    assert [turn.return_ for turn in credits[0]] == [2.5, 2.5]  # the outcome speaks for all turns
    assert [turn.return_ for turn in credits[1]] == [2.25, None]  # the outcome is that of the first
    assert [turn.advantage for turn in credits[0]] == pytest.approx([0.25, 0.25])


def test_conversations_with_the_same_prompt_are_compared_with_each_other() -> None:
    others = [ConversationRewards(turns=(0.0,), group="b") for _ in range(9)]
    result = advantages(
        ConversationRewards(turns=(1.0,), group="a"),
        ConversationRewards(turns=(0.5,), group="a"),
        *others,
        mode=CreditMode.IMMEDIATE,
    )
    assert result[0] == pytest.approx([0.5])
    assert result[1] == pytest.approx([-0.5])


def test_a_lone_conversation_has_no_baseline() -> None:
    assert advantages(ConversationRewards(turns=(0.5,)), mode=CreditMode.IMMEDIATE) == [[0.5]]


def test_equal_returns_give_exactly_zero_despite_rounding() -> None:
    result = advantages(
        *[ConversationRewards(turns=(0.1, 0.7)) for _ in range(7)], mode=CreditMode.RETURN_TO_GO
    )
    assert {value for row in result for value in row} == {0.0}


def test_a_missing_outcome_counts_as_the_mean_of_those_given_and_not_as_0() -> None:
    judged = [ConversationRewards(turns=(0.5,), outcome=outcome) for outcome in (0.4, 0.8)]
    alike = ConversationRewards(turns=(0.5,))
    credits = assign_credit(
        [*judged, alike], mode=CreditMode.RETURN_TO_GO, gamma=1.0, outcome_weight=2.0
    )
    assert credits[2][0].return_ == pytest.approx(0.5 + 2.0 * 0.6)
    assert credits[2][0].advantage == pytest.approx(0.0)


def test_a_missing_outcome_is_that_of_its_own_group_where_that_has_one() -> None:
    credits = assign_credit(
        [
            ConversationRewards(turns=(0.0,), outcome=1.0, group="a"),
            ConversationRewards(turns=(0.0,), group="a"),
            ConversationRewards(turns=(0.0,), outcome=0.0, group="b"),
        ],
        mode=CreditMode.RETURN_TO_GO,
        gamma=1.0,
        outcome_weight=1.0,
    )
    assert [turn.return_ for (turn,) in credits] == [1.0, 1.0, 0.0]
