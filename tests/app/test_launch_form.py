"""The launch page's form: every setting once, where it matters, within its limits."""

import pytest

from app.components import config_form
from trainer.config import CreditMode, Guard, Limits, LossName, OldLogprobs, Preset, TrainConfig


def test_the_form_offers_every_setting_once():
    offered = [name for group in config_form.GROUPS.values() for name in group]
    assert sorted([*offered, *config_form.CHOSEN_ABOVE]) == sorted(TrainConfig().to_json())


@pytest.mark.parametrize(
    ("name", "config", "matters"),
    [
        ("gamma", TrainConfig(), True),
        ("gamma", TrainConfig(credit=CreditMode.IMMEDIATE), False),
        ("outcome_weight", TrainConfig(credit=CreditMode.RECIPE), False),
        ("clip_low", TrainConfig(loss=LossName.IMPORTANCE_SAMPLING), False),
        ("guard", TrainConfig(old_logprobs=OldLogprobs.CONSTANT), False),
        ("old_logprobs", TrainConfig(loss=LossName.CROSS_ENTROPY), False),
        ("max_kl", TrainConfig(loss=LossName.CROSS_ENTROPY), True),
        ("dual_clip", TrainConfig(loss=LossName.IMPORTANCE_SAMPLING), False),
        ("guard_beta", TrainConfig(), False),
        ("guard_beta", TrainConfig(guard=Guard.EXP_WEIGHTED), True),
        ("guard_cap", TrainConfig(guard=Guard.EXP_WEIGHTED, loss=LossName.CROSS_ENTROPY), False),
        ("epochs", TrainConfig(), True),
    ],
)
def test_settings_without_effect_are_left_out(name: str, config: TrainConfig, matters: bool):
    assert config_form.matters(name, config) is matters


def test_changes_name_what_differs_from_the_method():
    start = TrainConfig.for_preset(Preset.RECIPE)
    changed = start.replace(learning_rate=5e-5, credit=CreditMode.RETURN_TO_GO)
    assert config_form.changes(start, changed) == ["Credit return to go", "Learning rate 5e-05"]


@pytest.mark.parametrize(
    ("value", "step"), [(1e-4, 1e-5), (32.0, 1.0), (0.9, 0.01), (1e-12, 1e-13), (0.0, 0.1)]
)
def test_number_fields_step_by_a_tenth_of_their_size(value: float, step: float):
    assert config_form.step_of(value) == pytest.approx(step)


def test_an_exclusive_limit_is_no_value_of_the_field():
    limits: Limits = TrainConfig.__dataclass_fields__["learning_rate"].metadata["limits"]
    assert not limits.allow(limits.low)
    assert limits.allow(config_form.lowest(limits, config_form.step_of(1e-4)))


def test_a_limit_that_can_be_switched_off_lets_people_type_0():
    limits: Limits = TrainConfig.__dataclass_fields__["dual_clip"].metadata["limits"]
    assert config_form.lowest(limits, 0.1) == 0.0
    assert limits.allow(0.0) and not limits.allow(1.0)
