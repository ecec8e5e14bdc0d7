"""NaN and Inf: whatever they come from, the run says where, and its folder can go on."""

import json
import math
import shutil
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
import torch
from safetensors.torch import load_file, save_file
from torch import Tensor
from transformers import AutoTokenizer

from db.enums import Role
from db.records import Conversation, Message, Score
from db.settings import Settings
from tests.oracle import OracleTurn
from tests.runs import run, scored
from tests.subject import datum_of, load_subject
from trainer.config import TrainConfig
from trainer.engine.gradients import BatchRunner, PassResult
from trainer.engine.losses import LossConfig
from trainer.engine.parallel import ParallelRunner
from trainer.engine.policy import Policy
from trainer.engine.ranks import ALONE
from trainer.errors import NotFiniteError
from trainer.runs.checkpoint import checkpoint_paths
from trainer.runs.folder import RunFolder
from trainer.runs.recorder import FileRecorder
from trainer.runs.worker import run_folder

CONVERSATIONS = [
    scored(("Hi", "Good day!", 1.0), ("The price?", "Ten per cent off.", 0.5)),
    scored(("Where is my order?", "I am sorry, let me look.", 0.8), ("And?", "No.", -0.3)),
    scored(("Hello", "What now", -1.0)),
]
WEIGHTS = "adapter/adapter_model.safetensors"


def config_for(model: Path, **changes: Any) -> TrainConfig:
    settings = {"sample_prompts": 0, "device": "cpu", "batch_conversations": 1, "max_kl": 0.0}
    return TrainConfig.from_json({"base_model": str(model), **settings, **changes})


def resume(out: Path, settings: Settings) -> None:
    folder = RunFolder(out)
    run_folder(folder, FileRecorder(folder.metrics), settings)


def assert_same_bits(found: Path, expected: Path) -> None:
    for name in ("metrics.jsonl", WEIGHTS):
        assert (found / name).read_bytes() == (expected / name).read_bytes()


def test_a_poisoned_weight_file_is_noticed_before_anything_is_learnt_from_it(
    settings: Settings, tiny_llama: Path, tmp_path: Path
) -> None:
    model = tmp_path / "model"
    shutil.copytree(tiny_llama, model)
    weights = load_file(model / "model.safetensors")
    weights["model.layers.1.mlp.down_proj.weight"][0, 0] = float("nan")
    save_file(weights, model / "model.safetensors", metadata={"format": "pt"})
    out = tmp_path / "run"
    with pytest.raises(NotFiniteError, match=r"before the first step, conversation .*turn") as told:
        run(out, CONVERSATIONS, config_for(model), settings)
    assert "weights are whole" in told.value.remedy
    assert not (out / "adapter").exists()
    assert not checkpoint_paths(RunFolder(out))

    shutil.copy(tiny_llama / "model.safetensors", model / "model.safetensors")
    resume(out, settings)
    run(tmp_path / "clean", CONVERSATIONS, config_for(model), settings)
    assert_same_bits(out, tmp_path / "clean")


def test_a_number_that_is_none_in_a_later_epoch_leaves_the_last_good_checkpoint(
    settings: Settings, tiny_llama: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The hardware errs once, in the second epoch: the run ends there, and resumes to the end."""
    whole, trained = Policy.logprobs, 0

    def logprobs(self: Policy, questions: Sequence[Any]) -> list[Tensor]:
        nonlocal trained
        trained += torch.is_grad_enabled()
        answers = whole(self, questions)
        return [answer * float("nan") for answer in answers] if trained == 5 else answers

    out = tmp_path / "run"
    with monkeypatch.context() as patch, pytest.raises(NotFiniteError, match=r"step 5, conv.*turn"):
        patch.setattr(Policy, "logprobs", logprobs)
        run(out, CONVERSATIONS, config_for(tiny_llama), settings)
    assert [path.name for path in checkpoint_paths(RunFolder(out))] == ["00000003"]
    resume(out, settings)
    run(tmp_path / "clean", CONVERSATIONS, config_for(tiny_llama), settings)
    assert_same_bits(out, tmp_path / "clean")


@pytest.mark.parametrize("score", [1.0, -1.0])
def test_an_absurd_stored_logprob_is_bounded(
    settings: Settings, tiny_llama: Path, tmp_path: Path, score: float
) -> None:
    """Whoever imports -1e30 gets a clamped ratio, not an Inf."""
    tokenizer = AutoTokenizer.from_pretrained(tiny_llama)
    ids = tuple(tokenizer.encode("Good day!"))
    sampled = Message(
        role=Role.ASSISTANT, content="Good day!", scores=(Score(rater="test", value=score),),
        token_ids=ids, logprobs=(-1e30, *(-1.0 for _ in ids[1:])), model=str(tiny_llama),
    )  # fmt: skip
    odd = Conversation(messages=(Message(role=Role.USER, content="Hi"), sampled))
    config = config_for(tiny_llama, guard="none", dual_clip=0.0)
    rows = run(tmp_path / "run", [*CONVERSATIONS, odd], config, settings)
    own = [row for row in rows if row["conversation"] == 3]
    assert own[0]["response_tokens"] == len(ids)
    assert own[0]["ratio_mean"] > 1e3
    figures = [value for row in rows for value in row.values() if isinstance(value, float)]
    assert all(math.isfinite(figure) for figure in figures)


def test_a_rate_that_blows_the_model_up_leaves_checkpoints_that_compute(
    settings: Settings, tiny_llama: Path, tmp_path: Path
) -> None:
    config = config_for(
        tiny_llama, learning_rate=1.0, grad_clip_norm=0.0, lora_alpha=1024.0, epochs=100,
        warmup_steps=0, guard="none", adam_eps=1e-12,
    )  # fmt: skip
    out = tmp_path / "run"
    with pytest.raises(NotFiniteError, match="step"):
        run(out, CONVERSATIONS, config, settings)
    with pytest.raises(NotFiniteError, match="step"):
        resume(out, settings)
    for path in checkpoint_paths(RunFolder(out)):
        state = load_file(path / "state" / "adapter_model.safetensors")
        assert all(bool(tensor.isfinite().all()) for tensor in state.values())
        assert json.loads((path / "progress.json").read_text())["step"] == int(path.name)


def test_a_gradient_that_is_none_names_its_turn(tiny_llama: Path, tmp_path: Path) -> None:
    """The loss is finite, its gradient not: the turn is found by asking for one at a time."""
    policy = load_subject(tiny_llama, tmp_path).policy
    data = [datum_of(OracleTurn((5, 6), (7 + n, 8), 0.5, (-1.0, -1.0))) for n in range(3)]

    class Overflowing(BatchRunner):
        def run(self, data: Any, *args: Any, **kwargs: Any) -> PassResult:
            result = super().run(data, *args, **kwargs)
            if any(datum.model_input.tokens[2] == 9 for datum in data):
                name = next(iter(result.gradients))
                result.gradients[name][0, 0] = float("inf")
            return result

    runner = ParallelRunner(policy, Overflowing(policy, 2048), ALONE)
    with pytest.raises(NotFiniteError, match="gradient of this turn") as told:
        runner.run(data, "ppo", LossConfig(), backward=True)
    assert told.value.datum == 2
