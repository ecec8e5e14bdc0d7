"""Base weights in other precisions and on other devices: the adapter and the loss stay fp32."""

import importlib.util
import json
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import Tensor

from db.settings import Settings
from tests import oracle
from tests.oracle import OracleTurn
from tests.runs import run, scored
from tests.subject import datum_of, relative_difference
from trainer.choices import BasePrecision
from trainer.config import TrainConfig
from trainer.engine.adapter import AdapterShape
from trainer.engine.gradients import BatchRunner, PassResult
from trainer.engine.losses import LossConfig
from trainer.engine.policy import Policy
from trainer.engine.precision import loading_options
from trainer.errors import ConfigError
from trainer.models import load_base_model, load_tokenizer

DEVICES = ["cpu", pytest.param("cuda", marks=pytest.mark.gpu)]

IDS = tuple(torch.randint(3, 380, (60,), generator=torch.Generator().manual_seed(0)).tolist())
TURNS = [
    OracleTurn(IDS[:20], IDS[20:32], 0.7, (-5.0,) * 12),
    OracleTurn(IDS[:38], IDS[38:50], -0.4, (-5.0,) * 12),
]
"""Two turns of one conversation."""


def make_policy(model: Path, scratch: Path, device: str, precision: BasePrecision) -> Policy:
    """Load a model under an adapter whose B is not 0."""
    settings = Settings(home=scratch, database_url="sqlite://")
    base = load_base_model(settings, str(model), device=torch.device(device), precision=precision)
    shape = AdapterShape(base_name="tiny", rank=4, alpha=8.0)
    policy = Policy(base, load_tokenizer(settings, str(model)), shape, seed=1)
    generator = torch.Generator().manual_seed(2)
    tensors = policy.tensors().items()
    policy.set_tensors(
        {k: v + 0.05 * torch.randn(v.shape, generator=generator) for k, v in tensors}
    )
    return policy


def pass_over_turns(policy: Policy) -> PassResult:
    data = [datum_of(turn) for turn in TURNS]
    return BatchRunner(policy, 2048).run(data, "importance_sampling", LossConfig(), backward=True)


def on_cpu(gradients: dict[str, Tensor]) -> dict[str, Tensor]:
    return {name: gradient.cpu() for name, gradient in gradients.items()}


@pytest.mark.parametrize("device", DEVICES)
def test_fp32_agrees_with_the_oracle(tiny_llama: Path, tmp_path: Path, device: str) -> None:
    policy = make_policy(tiny_llama, tmp_path, device, BasePrecision.FP32)
    policy.write(tmp_path / "adapter")
    expected = oracle.load_adapted(tiny_llama, tmp_path / "adapter")
    assert policy.shares_prefixes
    for turn, logprobs_T in zip(TURNS, pass_over_turns(policy).logprobs, strict=True):
        wanted = oracle.response_logprobs(expected, turn).detach()
        assert float((logprobs_T[-len(wanted) :] - wanted).abs().max()) <= 1e-4


@pytest.mark.parametrize("device", DEVICES)
def test_under_bf16_weights_adapter_logprobs_and_gradients_are_fp32(
    tiny_llama: Path, tmp_path: Path, device: str
) -> None:
    policy = make_policy(tiny_llama, tmp_path, device, BasePrecision.BF16)
    frozen = {p.dtype for p in policy.model.parameters() if not p.requires_grad}
    assert frozen == {torch.bfloat16}
    assert {p.dtype for p in policy.trainable().values()} == {torch.float32}
    assert {t.dtype for t in policy.tensors().values()} == {torch.float32}
    assert policy.shares_prefixes
    result = pass_over_turns(policy)
    assert {g.dtype for g in result.gradients.values()} == {torch.float32}
    assert {t.dtype for t in result.logprobs} == {torch.float32}
    exact = pass_over_turns(make_policy(tiny_llama, tmp_path, "cpu", BasePrecision.FP32))
    difference = torch.cat(result.logprobs) - torch.cat(exact.logprobs)
    assert float(difference.abs().mean()) <= 0.05
    assert relative_difference(on_cpu(result.gradients), exact.gradients) <= 0.1


@pytest.mark.parametrize("device", DEVICES)
def test_a_run_on_bf16_weights_starts_at_ratio_one_and_learns(
    settings: Settings, tiny_llama: Path, tmp_path: Path, device: str
) -> None:
    config = TrainConfig.from_json(
        {
            "base_model": str(tiny_llama), "device": device, "base_precision": "bf16",
            "batch_conversations": 1, "max_kl": 0.0, "learning_rate": 2e-3, "epochs": 8,
            "sample_prompts": 0,
        }
    )  # fmt: skip
    data = [scored(("Hi", "Good day!", 1.0)), scored(("Hi", "What now", -1.0))]
    rows = run(tmp_path / "run", data, config, settings)
    assert rows[0]["ratio_mean"] == 1.0
    gains: dict[int, float] = {}
    for row in rows:
        sign = 1 if row["advantage"] > 0 else -1
        gains[row["epoch"]] = gains.get(row["epoch"], 0.0) + sign * row["logprob_mean"]
    assert gains[7] > gains[0] + 0.5
    assert json.loads((tmp_path / "run" / "config.json").read_text())["base_precision"] == "bf16"


@pytest.mark.parametrize("device", DEVICES)
def test_auto_takes_the_precision_that_suits_the_device(device: str) -> None:
    wanted = torch.bfloat16 if device == "cuda" else torch.float32
    assert loading_options(BasePrecision.AUTO, torch.device(device)) == {"dtype": wanted}


def test_four_bits_on_a_cpu_are_refused(
    settings: Settings, tiny_llama: Path, tmp_path: Path
) -> None:
    config = TrainConfig.from_json(
        {"base_model": str(tiny_llama), "device": "cpu", "base_precision": "4bit"}
    )
    with pytest.raises(ConfigError, match="4-bit weights need a CUDA device"):
        run(
            tmp_path / "run", [scored(("Hi", "Ho", 1.0)), scored(("a", "b", 0.0))], config, settings
        )


def test_four_bits_without_bitsandbytes_name_what_to_install(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: None)
    with pytest.raises(ConfigError, match=r"requirements-4bit\.txt"):
        loading_options(BasePrecision.FOUR_BIT, torch.device("cuda"))


@pytest.mark.gpu
def test_under_four_bits_the_adapter_learns_in_fp32(tiny_llama: Path, tmp_path: Path) -> None:
    pytest.importorskip("bitsandbytes")
    policy = make_policy(tiny_llama, tmp_path, "cuda", BasePrecision.FOUR_BIT)
    assert {p.dtype for p in policy.trainable().values()} == {torch.float32}
    result: Any = pass_over_turns(policy)
    assert {g.dtype for g in result.gradients.values()} == {torch.float32}
    assert all(bool(g.isfinite().all()) for g in result.gradients.values())
    exact = pass_over_turns(make_policy(tiny_llama, tmp_path, "cpu", BasePrecision.FP32))
    assert relative_difference(on_cpu(result.gradients), exact.gradients) <= 0.7
