"""Before its first optimiser step a fresh adapter is the old policy: every ratio is exactly 1."""

from pathlib import Path

import pytest

from db.settings import Settings
from tests.conftest import TinyModels
from tests.runs import run, scored
from trainer.config import LossName, Preset, TrainConfig

CONVERSATIONS = [
    scored(("Hi", "Good day!", 1.0), ("The price?", "Ten per cent off.", 0.5), system="Be kind."),
    scored(("Hi", "What now", -1.0), system="Be kind."),
    scored(("Where is my order?", "I am sorry, let me look.", 0.8), ("And?", "No.", 0.0)),
    scored(("Where is my order?", "Don't know.", -0.5), ("And?", "No.", -1.0), ("So", "No", 0.1)),
    scored(("Capital?", "Paris, with approximately 2.2 million residents.", 0.9)),
]


@pytest.mark.parametrize("model", ["llama", "qwen3", "gemma3-sliding"])
@pytest.mark.parametrize("token_budget", [2048, 60])
@pytest.mark.parametrize("loss", [LossName.PPO, LossName.IMPORTANCE_SAMPLING])
def test_the_first_step_of_a_standard_run_has_ratio_1_and_clips_nothing(
    tiny_models: TinyModels,
    settings: Settings,
    tmp_path: Path,
    model: str,
    token_budget: int,
    loss: LossName,
) -> None:
    config = TrainConfig.for_preset(
        Preset.STANDARD,
        base_model=str(tiny_models(model)),
        token_budget=token_budget,
        loss=loss,
        learning_rate=0.01,
        batch_conversations=3,
        warmup_steps=0,
        epochs=2,
        max_kl=0.0,
        sample_prompts=0,
    )
    rows = run(tmp_path / "run", CONVERSATIONS, config, settings)
    first = [row for row in rows if row["step"] == 0]
    assert len({row["conversation"] for row in first}) == 3
    for row in first:
        assert row["ratio_mean"] == 1.0
        assert row["clipfrac"] == 0.0
        assert row["clipfrac_binding"] == 0.0
        assert row["kl_mean"] == 0.0
        assert row["loss_mean"] == pytest.approx(-row["advantage"], rel=1e-6)
    # And the later steps show that these figures can be otherwise.
    later = [row for row in rows if row["step"] > 0]
    assert all(row["ratio_mean"] != 1.0 and row["kl_mean"] > 0.0 for row in later)
    assert {row["epoch"] for row in later} == {0, 1}
