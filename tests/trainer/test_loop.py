"""What the loop decides: when a run ends early, what it trains on, what it says when it cannot."""

import io
import json
from dataclasses import replace
from pathlib import Path

import pytest
from transformers import AutoTokenizer

from db.enums import Role
from db.formats import write
from db.records import Conversation
from db.settings import Settings
from tests.runs import run, scored
from trainer.config import TrainConfig
from trainer.errors import NotFiniteError
from trainer.runs.folder import RunFolder, write_json, write_text
from trainer.runs.recorder import FileRecorder
from trainer.runs.worker import run_folder

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


def sampled(conversation: Conversation, model: Path, logprob: float) -> Conversation:
    """The conversation with its replies sampled by a policy that gave each token `logprob`."""
    tokenizer = AutoTokenizer.from_pretrained(model)
    messages = []
    for message in conversation.messages:
        if message.role is Role.ASSISTANT:
            ids = tuple(tokenizer.encode(message.content))
            message = replace(message, token_ids=ids, logprobs=(logprob,) * len(ids))
        messages.append(message)
    return replace(conversation, messages=tuple(messages))


def test_kl_to_the_base_starts_at_0_and_is_the_kl_to_the_old_policy_where_both_are_one(
    settings: Settings, tiny_llama: Path, tmp_path: Path
) -> None:
    config = config_for(tiny_llama, epochs=2, learning_rate=0.003)
    rows = run(tmp_path / "run", CONVERSATIONS, config, settings)
    assert all(row["kl_base"] == row["kl_mean"] for row in rows)
    assert [row["kl_base"] == 0.0 for row in rows if row["step"] == 0] == [True] * len(
        [row for row in rows if row["step"] == 0]
    )
    assert all(row["kl_base"] > 0 for row in rows if row["epoch"] == 1)


def test_kl_to_the_base_ends_a_run_whose_sampling_policy_is_far_away(
    settings: Settings, tiny_llama: Path, tmp_path: Path
) -> None:
    data = [sampled(conversation, tiny_llama, -6.0) for conversation in CONVERSATIONS]
    config = config_for(tiny_llama, learning_rate=0.01, epochs=20, max_kl=0.0)
    rows = run(tmp_path / "free", data, config, settings)
    assert {row["kl_base"] for row in rows} == {None}  # nothing needs it, so it is not asked
    # To the stored log-probabilities KL is what it is from the start; the limit lies above it.
    limit = 1.5 * max(row["kl_mean"] for row in rows if row["step"] == 0)
    rows = run(tmp_path / "run", data, config.replace(max_kl=limit), settings)
    assert all(row["kl_base"] == 0.0 < row["kl_mean"] for row in rows if row["step"] == 0)


def test_a_kl_weight_keeps_the_model_closer_to_the_base(
    settings: Settings, tiny_llama: Path, tmp_path: Path
) -> None:
    def distance(name: str, weight: float) -> float:
        config = config_for(tiny_llama, learning_rate=0.005, epochs=6, kl_weight=weight)
        rows = run(tmp_path / name, CONVERSATIONS, config, settings)
        return sum(row["kl_base"] for row in rows if row["epoch"] == 5)

    assert distance("held", 2.0) < 0.5 * distance("free", 0.0)


def test_positive_only_leaves_a_run_of_low_scores_where_it_is(
    settings: Settings, tiny_llama: Path, tmp_path: Path
) -> None:
    """One good reply and many bad ones: steps without the good one have no gradient at all."""
    data = [scored((f"Question {i}?", "No.", -1.0)) for i in range(5)]
    data.append(scored(("Hello", "Good day!", 1.0)))
    config = config_for(tiny_llama, epochs=1, guard="positive_only", weight_decay=0.0, seed=1)
    said = io.StringIO()
    folder = RunFolder(tmp_path / "run")
    folder.path.mkdir()
    write_json(folder.config, config.to_json())
    write_text(folder.data, write(data, "native"))
    run_folder(folder, FileRecorder(folder.metrics, output=said), settings)
    norms = [
        float(line.split("norm ")[1].split(",")[0])
        for line in said.getvalue().splitlines()
        if "norm" in line
    ]
    assert sorted(norms)[:5] == [0.0] * 5 and max(norms) > 0.0
    assert "5 of 6 scored turns carry no gradient" in said.getvalue()
