"""Held-out conversations: the measure, the best epoch's adapter, and stops at any moment."""

import io
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from db.formats import write
from db.records import Conversation
from db.settings import Settings
from tests.runs import run, scored
from trainer.config import TrainConfig
from trainer.held_out import signal
from trainer.loop import Ending
from trainer.runs.checkpoint import Judgement, Progress
from trainer.runs.folder import RunFolder, sha256_of, write_json, write_text
from trainer.runs.recorder import FileRecorder
from trainer.runs.worker import run_folder


def talk(number: int, good: float) -> Conversation:
    """A friendly reply with the score `good`, and a curt one with its opposite."""
    return scored((f"Question {number}?", "Yes, of course I can.", good), ("And?", "No.", -good))


TALKS = [talk(number, 1.0) for number in range(8)]


def config_for(model: Path, **changes: Any) -> TrainConfig:
    settings = {
        "base_model": str(model), "device": "cpu", "sample_prompts": 0, "held_out": 0.25,
        "epochs": 3, "learning_rate": 0.003, "max_kl": 0.0, "credit": "recipe",
    }  # fmt: skip
    return TrainConfig.from_json({**settings, **changes})


def lines(folder: Path, name: str) -> list[dict[str, Any]]:
    return [json.loads(line) for line in (folder / name).read_text("utf-8").splitlines()]


def test_the_signal_is_change_times_advantage_a_token_with_changes_limited() -> None:
    base = [(-1.0, -1.0), (-2.0,), (-3.0,)]
    new = [(-0.5, -0.9), (-2.4,), (-30.0,)]
    # (1 x (0.5 + 0.1) + -0.5 x -0.4 + 2 x -1) / (1 x 2 + 0.5 x 1 + 2 x 1)
    assert signal([1.0, -0.5, 2.0], new, base) == pytest.approx(-1.2 / 4.5)
    assert signal([1.0, -0.5, 2.0], base, base) == 0.0
    assert signal([0.0], [(-1.0,)], [(-2.0,)]) == 0.0


def test_the_best_epoch_is_the_first_of_the_highest_above_zero() -> None:
    def best(*signals: float) -> int | None:
        judgements = tuple(
            Judgement(epoch=i, step=i, signal=s, conversations=1, turns=1, response_tokens=1)
            for i, s in enumerate(signals)
        )
        progress = Progress(
            step=9, old_logprobs=(), base_logprobs=None, held_out_logprobs=(), judgements=judgements
        )
        return progress.best.epoch if progress.best else None

    assert best(0.1, 0.3, 0.3, 0.2) == 1
    assert best(-0.1, 0.0) is None
    assert best() is None


def test_held_out_conversations_judge_each_epoch_and_are_not_trained_on(
    settings: Settings, tiny_llama: Path, tmp_path: Path
) -> None:
    folder = tmp_path / "run"
    rows = run(folder, TALKS, config_for(tiny_llama), settings)
    assert len({row["conversation"] for row in rows}) == 6
    judged = lines(folder, "held_out.jsonl")
    assert [(row["epoch"], row["step"]) for row in judged] == [(0, 2), (1, 4), (2, 6)]
    assert {(row["conversations"], row["turns"]) for row in judged} == {(2, 4)}
    summary = json.loads((folder / "summary.json").read_text())
    assert summary["held_out"]["epochs"] == judged
    best = max(judged, key=lambda row: row["signal"])
    assert best["signal"] > 0  # friendliness is learned for other questions too
    assert summary["held_out"]["best_epoch"] == best["epoch"]


def test_the_best_epochs_adapter_is_kept_though_the_run_went_on(
    settings: Settings, tiny_llama: Path, tmp_path: Path
) -> None:
    """At this rate the run tears the model apart in the end; the measure knows when to stop."""
    config = config_for(
        tiny_llama, epochs=6, learning_rate=0.05, loss="importance_sampling",
        grad_clip_norm=0.0, guard="none",
    )  # fmt: skip
    run(tmp_path / "run", TALKS, config, settings)
    judged = lines(tmp_path / "run", "held_out.jsonl")
    best = max(judged, key=lambda row: row["signal"])
    assert best["signal"] > 0 and best["epoch"] < 3  # so that newer checkpoints came after it
    # The schedule is constant, so a run of that many epochs takes the same steps.
    short = config.replace(epochs=best["epoch"] + 1)
    run(tmp_path / "short", TALKS, short, settings)
    weights = "adapter/adapter_model.safetensors"
    kept, expected = (tmp_path / name / weights for name in ("run", "short"))
    assert sha256_of(kept) == sha256_of(expected)


def test_a_run_that_never_beats_the_untrained_model_keeps_the_last_adapter_and_says_so(
    settings: Settings, tiny_llama: Path, tmp_path: Path
) -> None:
    """The held-out scores are the reverse of those trained on, so training must do harm."""
    config = config_for(tiny_llama, epochs=2)
    held_out = {
        row["conversation"] for row in run(tmp_path / "probe", TALKS, config, settings)
    } ^ set(range(8))
    reverse = [talk(number, -1.0 if number in held_out else 1.0) for number in range(8)]
    folder = tmp_path / "run"
    said = io.StringIO()
    begin(folder, reverse, config)
    run_folder(RunFolder(folder), FileRecorder(folder / "metrics.jsonl", output=said), settings)
    assert all(row["signal"] < 0 for row in lines(folder, "held_out.jsonl"))
    assert json.loads((folder / "summary.json").read_text())["held_out"]["best_epoch"] is None
    assert "No epoch did better" in said.getvalue()
    assert (folder / "adapter" / "adapter_model.safetensors").exists()


def begin(folder: Path, talks: list[Conversation], config: TrainConfig) -> None:
    folder.mkdir(parents=True)
    write_json(folder / "config.json", config.to_json())
    write_text(folder / "data.jsonl", write(talks, "native"))


class StopAt(FileRecorder):
    """Asks for a stop at one message, the so-manieth time that it comes."""

    def __init__(self, metrics: Path, is_wanted: Callable[[str], bool], time: int) -> None:
        super().__init__(metrics, output=io.StringIO())
        self._is_wanted = is_wanted
        self._left = time

    def progress(self, share: float, message: str) -> bool:
        super().progress(share, message)
        self._left -= self._is_wanted(message)
        return self._left == 0 and self._is_wanted(message)


@pytest.mark.parametrize(
    ("text", "time"),
    [("measuring", 3), ("epoch 1/3 · step 2", 1), ("judging", 1), ("judging", 2), ("step 5", 1)],
)
def test_a_run_stopped_at_any_moment_ends_as_if_it_had_not_been(
    settings: Settings, tiny_llama: Path, tmp_path: Path, text: str, time: int
) -> None:
    config = config_for(tiny_llama, kl_weight=0.05, schedule="cosine", guard="exp_weighted")
    run(tmp_path / "whole", TALKS, config, settings)
    stopped = RunFolder(tmp_path / "stopped")
    begin(stopped.path, TALKS, config)
    stopping = StopAt(stopped.metrics, lambda message: text in message, time)
    assert run_folder(stopped, stopping, settings) is Ending.STOPPED
    assert not stopped.adapter.exists()
    resumed = FileRecorder(stopped.metrics, output=io.StringIO())
    assert run_folder(stopped, resumed, settings) is Ending.FINISHED
    for name in ("metrics.jsonl", "held_out.jsonl", "adapter/adapter_model.safetensors"):
        assert sha256_of(tmp_path / "whole" / name) == sha256_of(stopped.path / name), name
