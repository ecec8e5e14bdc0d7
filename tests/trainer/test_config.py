"""The configuration: presets, limits, JSON round trip, and what it refuses."""

import dataclasses
import json
import math

import pytest

from trainer.assignments import parse_assignments
from trainer.config import (
    CreditMode,
    Limits,
    LossScale,
    OldLogprobs,
    Preset,
    Rendering,
    TrainConfig,
)
from trainer.errors import ConfigError


def test_recipe_is_the_seed_exactly() -> None:
    config = TrainConfig.for_preset(Preset.RECIPE)
    assert config.rendering is Rendering.PLAIN
    assert config.credit is CreditMode.RECIPE
    assert config.old_logprobs is OldLogprobs.CONSTANT
    assert config.loss_scale is LossScale.SUM
    assert (config.lora_rank, config.lora_alpha) == (16, 32.0)
    assert (config.learning_rate, config.adam_beta1, config.adam_beta2) == (1e-4, 0.9, 0.95)
    assert (config.adam_eps, config.weight_decay, config.grad_clip_norm) == (1e-12, 0.0, 0.0)
    assert (config.epochs, config.batch_conversations, config.warmup_steps) == (2, 0, 0)


@pytest.mark.parametrize("preset", list(Preset))
def test_json_round_trip_is_the_identity(preset: Preset) -> None:
    config = TrainConfig.for_preset(preset, gamma=0.5, seed=7)
    assert TrainConfig.from_json(json.loads(json.dumps(config.to_json()))) == config


def test_an_unknown_key_is_refused_by_name() -> None:
    with pytest.raises(ConfigError, match="learning_rat"):
        TrainConfig.from_json({"learning_rat": 1e-4})


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("gamma", 1.5),
        ("gamma", math.nan),
        ("learning_rate", 0.0),
        ("learning_rate", math.inf),
        ("epochs", 0),
        ("epochs", 2.0),
        ("epochs", True),
        ("clip_low", 1.2),
        ("clip_high", 0.9),
        ("dual_clip", 0.5),
        ("dual_clip", 1.0),
        ("dual_clip", -1.0),
        ("guard", "hope"),
        ("guard_beta", 0.0),
        ("guard_cap", 0.5),
        ("kl_weight", -0.1),
        ("schedule", "stairs"),
        ("held_out", 0.6),
        ("lora_rank", "16"),
        ("credit", "magic"),
        ("base_model", 3),
    ],
)
def test_a_value_of_the_wrong_type_or_range_is_refused_by_name(name: str, value: object) -> None:
    with pytest.raises(ConfigError, match=name):
        TrainConfig.from_json({name: value})


def test_a_refusal_names_the_allowed_range() -> None:
    with pytest.raises(ConfigError, match=r"at least 0 and at most 0\.5"):
        TrainConfig(held_out=0.9)
    with pytest.raises(ConfigError, match=r"0 \(off\), or more than 1 and at most 100"):
        TrainConfig(dual_clip=0.5)
    assert TrainConfig(dual_clip=0.0).dual_clip == 0.0


def test_what_an_older_file_lacks_is_as_its_method_has_it() -> None:
    """A recipe run from before dual clip must not gain it by being resumed."""
    old = TrainConfig.for_preset(Preset.RECIPE, epochs=5).to_json()
    del old["dual_clip"], old["max_kl"]
    config = TrainConfig.from_json(old)
    assert (config.dual_clip, config.max_kl, config.epochs) == (0.0, 0.0, 5)


def test_a_whole_number_serves_as_a_decimal() -> None:
    assert TrainConfig.from_json({"gamma": 1}).gamma == 1.0


def test_assignments_are_parsed_by_the_type_of_their_setting() -> None:
    parsed = parse_assignments(["epochs=5", "gamma=0.25", "credit=outcome", "base_model=a=b"])
    assert parsed == {
        "epochs": 5,
        "gamma": 0.25,
        "credit": CreditMode.OUTCOME,
        "base_model": "a=b",
    }


@pytest.mark.parametrize("text", ["epochs", "epochs=two", "epoch=2", "credit=none"])
def test_a_faulty_assignment_is_refused(text: str) -> None:
    with pytest.raises(ConfigError, match=text.partition("=")[0]):
        parse_assignments([text])


def test_every_number_says_its_limits_and_every_setting_explains_itself() -> None:
    for field in dataclasses.fields(TrainConfig):
        assert field.metadata["label"] and field.metadata["help"], field.name
        if isinstance(field.default, int | float):
            assert isinstance(field.metadata["limits"], Limits), field.name
