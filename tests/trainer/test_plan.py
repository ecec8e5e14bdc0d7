"""The plan of a run: epochs, steps and passes follow from data, settings and seed."""

import pytest

from trainer.choices import Schedule
from trainer.config import Preset, TrainConfig
from trainer.data.rendering import RenderedTurn
from trainer.data.turns import TrainableTurn
from trainer.plan import learning_rate, make_plan


def turns_of(*lengths_by_conversation: list[int]) -> list[TrainableTurn]:
    """Turns whose model inputs have the given lengths."""
    return [
        TrainableTurn(
            conversation=conversation,
            turn=turn,
            place="",
            reward=1.0,
            advantage=1.0,
            rendered=RenderedTurn(
                turn=turn, prompt_ids=tuple(range(length - 1)), response_ids=(1, 2)
            ),
        )
        for conversation, lengths in enumerate(lengths_by_conversation)
        for turn, length in enumerate(lengths)
    ]


def test_the_recipe_takes_one_step_an_epoch_in_the_datas_order() -> None:
    turns = turns_of([10, 20], [10], [10, 20, 30])
    plan = make_plan(turns, TrainConfig.for_preset(Preset.RECIPE))
    assert [(step.epoch, step.turns) for step in plan] == [
        (0, (0, 1, 2, 3, 4, 5)),
        (1, (0, 1, 2, 3, 4, 5)),
    ]


def test_each_epoch_trains_on_each_turn_once_with_conversations_kept_whole() -> None:
    turns = turns_of(*[[10, 20]] * 7)
    config = TrainConfig(epochs=3, batch_conversations=3)
    plan = make_plan(turns, config)
    assert [step.index for step in plan] == list(range(9))
    for epoch in range(3):
        positions = [p for step in plan if step.epoch == epoch for p in step.turns]
        assert sorted(positions) == list(range(14))
        assert all(b == a + 1 for a, b in zip(positions[::2], positions[1::2], strict=True))


def test_the_order_depends_on_seed_and_epoch_alone() -> None:
    turns = turns_of(*[[10]] * 20)
    plan = make_plan(turns, TrainConfig(epochs=2, batch_conversations=20))
    assert plan == make_plan(turns, TrainConfig(epochs=2, batch_conversations=20))
    assert plan[0].turns != plan[1].turns
    assert plan[0].turns != make_plan(turns, TrainConfig(seed=1, batch_conversations=20))[0].turns


def test_passes_hold_whole_conversations_within_the_token_budget() -> None:
    turns = turns_of([10, 40], [50], [10], [300], [10])
    config = TrainConfig.for_preset(Preset.RECIPE, token_budget=95)
    assert make_plan(turns, config)[0].passes == ((0, 1, 2), (3,), (4,), (5,))


def test_the_learning_rate_rises_over_the_warm_up_and_stays() -> None:
    config = TrainConfig(learning_rate=1.0, warmup_steps=3)
    assert [learning_rate(config, step, 9) for step in range(5)] == [0.25, 0.5, 0.75, 1.0, 1.0]
    assert learning_rate(TrainConfig(learning_rate=1.0, warmup_steps=0), 0, 9) == 1.0


def test_a_cosine_sinks_from_the_full_rate_to_a_tenth_in_the_last_step() -> None:
    config = TrainConfig(learning_rate=1.0, warmup_steps=2, schedule=Schedule.COSINE)
    rates = [learning_rate(config, step, 7) for step in range(7)]
    # After the warm-up cos(0), cos(45°), cos(90°) ...: 0.1 + 0.9 x (1 + cos) / 2.
    quarter = 0.1 + 0.9 * (1 + 2**-0.5) / 2
    expected = [1 / 3, 2 / 3, 1.0, quarter, 0.55, 1.1 - quarter, 0.1]
    assert rates == pytest.approx(expected)


@pytest.mark.parametrize("steps", [1, 2, 3])
def test_a_cosine_over_too_few_steps_stays_within_the_rate(steps: int) -> None:
    config = TrainConfig(learning_rate=1.0, warmup_steps=2, schedule=Schedule.COSINE)
    assert all(0 < learning_rate(config, step, steps) <= 1.0 for step in range(steps))
