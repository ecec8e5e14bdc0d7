"""Which conversations are held out, and that training does not notice them."""

import pytest

from tests.runs import scored
from trainer.config import TrainConfig
from trainer.data.split import hold_out
from trainer.data.turns import build_turns


def test_the_share_is_met_by_whole_conversations_and_follows_the_seed() -> None:
    openings = {position: f"question {position}" for position in range(20)}
    held_out = hold_out(openings, 0.25, seed=3)
    assert len(held_out) == 5
    assert held_out == hold_out(openings, 0.25, seed=3)
    assert {hold_out(openings, 0.25, seed=seed) for seed in range(5)} != {held_out}


@pytest.mark.parametrize("seed", range(20))
def test_conversations_that_begin_alike_stay_on_one_side(seed: int) -> None:
    openings = {position: position // 3 for position in range(12)}
    held_out = hold_out(openings, 0.3, seed)
    assert len(held_out) == 3  # four would be 0.33 of twelve; groups are never cut
    assert len({openings[position] for position in held_out}) == 1


def test_a_small_share_holds_out_one_group_and_never_all() -> None:
    assert len(hold_out({0: "a", 1: "b", 2: "c"}, 0.01, seed=0)) == 1
    assert hold_out({0: "big", 1: "big", 2: "big", 3: "small"}, 0.01, seed=0) == {3}
    assert len(hold_out({0: "a", 1: "b"}, 0.5, seed=0)) == 1


def test_nothing_is_held_out_without_a_share_or_a_second_opening() -> None:
    assert hold_out({0: "a", 1: "b"}, 0.0, seed=0) == frozenset()
    assert hold_out({0: "a", 1: "a", 2: "a"}, 0.5, seed=0) == frozenset()


TALKS = [
    scored((f"Question {i}?", f"Answer {i}.", i / 10), ("Go on.", "So.", 0.5)) for i in range(10)
]


def test_training_advantages_are_those_of_the_training_conversations_alone() -> None:
    config = TrainConfig(held_out=0.3)
    turns = build_turns(TALKS, config)
    held_out = {turn.conversation for turn in turns if turn.held_out}
    assert len(held_out) == 3
    rest = [talk for position, talk in enumerate(TALKS) if position not in held_out]
    alone = build_turns(rest, config.replace(held_out=0.0))
    trained = [turn for turn in turns if not turn.held_out]
    assert [turn.credit for turn in trained] == [turn.credit for turn in alone]
    # Those held out are compared with all conversations, as without a split.
    whole = {(t.conversation, t.turn): t for t in build_turns(TALKS, config.replace(held_out=0.0))}
    for turn in turns:
        if turn.held_out:
            assert turn.credit == whole[turn.conversation, turn.turn].credit


def test_a_conversation_without_scores_is_never_held_out() -> None:
    silent = [scored((f"Hello {i}?", "Well.", None)) for i in range(10)]
    turns = build_turns([*silent, *TALKS], TrainConfig(held_out=0.5))
    held_out = {turn.conversation for turn in turns if turn.held_out}
    assert len(held_out) == 5 and min(held_out) >= 10
