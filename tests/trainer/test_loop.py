"""What the loop decides: when a run ends early, what it trains on, what it says when it cannot."""

import json
from pathlib import Path

import pytest

from db.records import Conversation
from db.settings import Settings
from tests.runs import run, scored
from trainer.config import TrainConfig
from trainer.errors import NotFiniteError

CONVERSATIONS = [
    scored(("Hi", "Good day!", 1.0), ("The price?", "Ten per cent off.", 0.5)),
    scored(("Where is my order?", "I am sorry, let me look.", 0.8), ("And?", "No.", None)),
    scored(("Hello", "What now", -1.0)),
]


def config_for(model: Path, **changes: object) -> TrainConfig:
    settings = {"sample_prompts": 0, "device": "cpu", "batch_conversations": 1, "max_kl": 0.0}
    return TrainConfig.from_json({"base_model": str(model), **settings, **changes})


def test_a_run_ends_early_once_a_step_passes_the_kl_limit(
    settings: Settings, tiny_llama: Path, tmp_path: Path
) -> None:
    config = config_for(tiny_llama, learning_rate=0.01, max_kl=1e-3, epochs=20)
    rows = run(tmp_path / "run", CONVERSATIONS, config, settings)
    summary = json.loads((tmp_path / "run" / "summary.json").read_text())
    assert summary["ending"] == "early"
    last = max(row["step"] for row in rows)
    assert summary["steps"] == last + 1 < summary["planned_steps"] == 60
    kl = [max(row["kl_mean"] for row in rows if row["step"] == step) for step in range(last + 1)]
    assert kl[-1] > 1e-3 >= max(kl[:-1])
    assert (tmp_path / "run" / "adapter" / "adapter_model.safetensors").exists()


def test_an_unscored_turn_is_context_and_never_trained(
    settings: Settings, tiny_llama: Path, tmp_path: Path
) -> None:
    rows = run(tmp_path / "run", CONVERSATIONS, config_for(tiny_llama, epochs=1), settings)
    trained = sorted((row["conversation"], row["turn"]) for row in rows)
    assert trained == [(0, 0), (0, 1), (1, 0), (2, 0)]


def test_a_turn_over_the_context_limit_is_left_out(
    settings: Settings, tiny_llama: Path, tmp_path: Path
) -> None:
    long = scored(("Hi", "Good day! " * 40, 1.0), ("Bye", "Bye.", 0.0))
    config = config_for(tiny_llama, epochs=1, max_context_tokens=100)
    rows = run(tmp_path / "run", [*CONVERSATIONS, long], config, settings)
    assert {row["conversation"] for row in rows} == {0, 1, 2}
    assert max(row["tokens"] for row in rows) <= 100


def test_a_number_that_is_none_stops_the_run_and_leaves_no_adapter(
    settings: Settings, tiny_llama: Path, tmp_path: Path
) -> None:
    """A rate of 1 without clipping blows the tiny model up within a few steps."""
    config = config_for(
        tiny_llama, learning_rate=1.0, grad_clip_norm=0.0, lora_alpha=1024.0, epochs=100,
        warmup_steps=0, guard="none", adam_eps=1e-12,
    )  # fmt: skip
    data: list[Conversation] = CONVERSATIONS
    with pytest.raises(NotFiniteError, match="step"):
        run(tmp_path / "run", data, config, settings)
    assert not (tmp_path / "run" / "adapter").exists()
    assert not (tmp_path / "run" / "summary.json").exists()
