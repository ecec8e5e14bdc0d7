"""On the real model: the seed recipe's figures, and one pass against a pass for each turn."""

import asyncio
import importlib.util
import json
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest
import tinker
import torch
from safetensors.torch import load_file
from transformers import AutoTokenizer

from tests import oracle
from tests.conftest import EMBEDDED
from tests.protocol.server import KEY, TrainingServer, serving
from tests.subject import (
    BRIEF,
    Subject,
    assert_engine_equals_oracle,
    dialogue,
    load_subject,
    rendered_turns,
)
from trainer.config import Preset, Rendering, TrainConfig

pytestmark = pytest.mark.slow

SEED = [
    {
        "turns": [
            {
                "user": "What is the capital of France?",
                "assistant": "The capital of France is Paris.",
                "reward": 1.0,
            },
            {
                "user": "How many people live there?",
                "assistant": "Paris has approximately 2.2 million residents in the city proper.",
                "reward": 0.9,
            },
        ]
    },
    {
        "turns": [
            {
                "user": "Explain quantum mechanics.",
                "assistant": "Quantum mechanics is the study of particles at atomic scales.",
                "reward": 0.7,
            },
            {
                "user": "Can you be more precise?",
                "assistant": "Quantum mechanics uses wave functions and probability amplitudes "
                "to describe particle behavior.",
                "reward": 0.95,
            },
        ]
    },
]
"""The two conversations of the recipe that the `recipe` preset keeps exactly."""

EXAMPLE = Path(__file__).parents[2] / "docs" / "examples" / "multi_turn_rl.py"
"""The recipe in the calls of the Tinker / MinT API."""

FIGURES = (
    "loss_mean",
    "loss_sum",
    "ratio_mean",
    "clipfrac",
    "clipfrac_binding",
    "kl_mean",
    "logprob_mean",
)


@pytest.fixture(scope="module")
def recipe_run(smollm2: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of a recipe run on the seed's data, from the command line."""
    root = tmp_path_factory.mktemp("recipe")
    data, out = root / "conversations.json", root / "out"
    data.write_text(json.dumps(SEED), encoding="utf-8")
    command = [sys.executable, "-m", "trainer", "train", "--data", str(data), "--model", EMBEDDED]
    command += ["--preset", "recipe", "--device", "cpu", "--set", "sample_prompts=0"]
    environment = os.environ | {"EVERYTURN_HOME": str(smollm2.parent.parent)}
    done = subprocess.run(
        [*command, "--out", str(out)], env=environment, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    return out


@pytest.fixture(scope="module")
def conversations(smollm2: Path, recipe_run: Path) -> list[list[oracle.OracleTurn]]:
    """The oracle's own reading of the same data."""
    tokenizer = AutoTokenizer.from_pretrained(smollm2)
    return oracle.recipe_turns(recipe_run.parent / "conversations.json", tokenizer)


def _rows(run: Path, epoch: int) -> list[dict[str, Any]]:
    lines = (run / "metrics.jsonl").read_text(encoding="utf-8").splitlines()
    return [row for row in map(json.loads, lines) if row["epoch"] == epoch]


def test_the_recipe_counts_the_tokens_that_the_seed_counts(recipe_run: Path) -> None:
    rows = _rows(recipe_run, 0)
    assert [(row["conversation"], row["turn"]) for row in rows] == [(0, 0), (0, 1), (1, 0), (1, 1)]
    assert [row["tokens"] for row in rows] == [13, 33, 14, 34]
    assert [row["response_tokens"] for row in rows] == [7, 14, 11, 14]
    assert [row["reward"] for row in rows] == [1.0, 0.9, 0.7, 0.95]
    assert [row["advantage"] for row in rows] == pytest.approx([0.05, -0.05, -0.125, 0.125])


def test_the_first_epoch_equals_the_oracle(
    smollm2: Path, recipe_run: Path, conversations: list[list[oracle.OracleTurn]]
) -> None:
    model = oracle.load(smollm2)
    turns = [turn for conversation in conversations for turn in conversation]
    for row, turn in zip(_rows(recipe_run, 0), turns, strict=True):
        expected = oracle.figures(model, turn)
        assert row["tokens"] == expected.tokens
        for name in FIGURES:
            assert row[name] == pytest.approx(getattr(expected, name), abs=1e-4), name


def test_the_second_epoch_equals_the_oracle_after_one_step_of_adam(
    smollm2: Path,
    recipe_run: Path,
    conversations: list[list[oracle.OracleTurn]],
    tmp_path: Path,
) -> None:
    config = TrainConfig.for_preset(Preset.RECIPE)
    fresh = load_subject(smollm2, tmp_path, rank=config.lora_rank, jitter=0.0, seed=config.seed)
    turns = [turn for conversation in conversations for turn in conversation]
    model = fresh.reference
    parameters = [value for value in model.parameters() if value.requires_grad]
    adam = torch.optim.Adam(parameters, lr=1e-4, betas=(0.9, 0.95), eps=1e-12)
    oracle.passes(model, turns)
    adam.step()
    for row, turn in zip(_rows(recipe_run, 1), turns, strict=True):
        expected = oracle.figures(model, turn)
        for name in FIGURES:
            assert row[name] == pytest.approx(getattr(expected, name), abs=1e-3), name


def _example() -> ModuleType:
    spec = importlib.util.spec_from_file_location("multi_turn_rl", EXAMPLE)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module
    spec.loader.exec_module(module)
    return module


def test_the_example_differs_from_a_script_for_the_service_by_its_import_alone() -> None:
    lines = EXAMPLE.read_text("utf-8").splitlines()
    assert [line for line in lines if "trainer" in line] == ["import trainer.engine.api as mint"]


def _assert_equals_the_loop(recipe_run: Path, turns: list[Any], adapter: Path) -> None:
    """Hold figures and adapter of the example against those of the loop."""
    rows = [*_rows(recipe_run, 0), *_rows(recipe_run, 1)]
    for row, turn in zip(rows, turns, strict=True):
        counts = (turn.epoch, turn.tokens, turn.response_tokens)
        assert counts == (row["epoch"], row["tokens"], row["response_tokens"])
        for key, name in (
            ("loss:mean", "loss_mean"),
            ("loss:sum", "loss_sum"),
            ("ratio:mean", "ratio_mean"),
            ("clipfrac:mean", "clipfrac"),
        ):
            assert turn.metrics[key] == pytest.approx(row[name], abs=10 ** (turn.epoch - 4)), key

    weights = "adapter_model.safetensors"
    found, expected = load_file(adapter / weights), load_file(recipe_run / "adapter" / weights)
    assert found.keys() == expected.keys()
    ours, loops = (torch.cat([w[key].flatten() for key in sorted(w)]) for w in (found, expected))
    assert float((ours - loops).norm() / loops.norm()) <= 1e-3


def test_the_example_gives_the_loops_figures_and_adapter(
    smollm2: Path, recipe_run: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("EVERYTURN_HOME", str(smollm2.parent.parent))
    # The loop ran on the CPU, also where there is a better device.
    monkeypatch.setattr("trainer.engine.client.choose_device", lambda _: torch.device("cpu"))
    example = _example()
    names = ("user", "assistant", "reward")
    said = [
        {"turns": [dict(zip(names, turn, strict=True)) for turn in conversation]}
        for conversation in example.CONVERSATIONS
    ]
    assert said == SEED

    turns, saved = asyncio.run(example.train(EMBEDDED, str(tmp_path / "adapter")))
    _assert_equals_the_loop(recipe_run, turns, Path(saved))


def test_the_example_with_the_official_sdk_over_http_gives_them_too(
    smollm2: Path, recipe_run: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    example = _example()
    monkeypatch.setattr(example, "mint", tinker)  # the one import that differs
    opened: list[tinker.ServiceClient] = []

    class Service(tinker.ServiceClient):
        def __init__(self) -> None:
            super().__init__()
            opened.append(self)

    monkeypatch.setattr(tinker, "ServiceClient", Service)
    with serving(TrainingServer(tmp_path, str(smollm2), tells_metrics=True)) as server:
        monkeypatch.setenv("TINKER_BASE_URL", server.address)
        monkeypatch.setenv("TINKER_API_KEY", KEY)
        monkeypatch.setenv("TINKER_TELEMETRY", "0")
        turns, saved = asyncio.run(example.train(str(smollm2), "adapter"))
        for service in opened:
            service.holder.close()  # else it reports to a server that has ended
    assert saved.startswith("tinker://") and saved.endswith("/adapter")
    _assert_equals_the_loop(recipe_run, turns, tmp_path / "adapter")


@pytest.fixture(scope="module")
def subject(smollm2: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Subject]:
    """The embedded model under an adapter that has learnt something."""
    yield load_subject(smollm2, tmp_path_factory.mktemp("embedded"), rank=16, jitter=0.01)


@pytest.mark.parametrize(
    ("rendering", "turns"),
    [
        (Rendering.PLAIN, 16),
        (Rendering.TEMPLATE, 1),
        (Rendering.TEMPLATE, 3),
        (Rendering.TEMPLATE, 16),
    ],
)
def test_a_conversation_in_one_pass_equals_a_pass_for_each_turn(
    subject: Subject, rendering: Rendering, turns: int
) -> None:
    assert subject.policy.shares_prefixes
    conversation = dialogue(turns, seed=turns, sentences=BRIEF)
    built = rendered_turns(subject, [conversation], rendering)
    assert_engine_equals_oracle(subject, built)


def test_packed_conversations_equal_a_pass_for_each_turn(subject: Subject) -> None:
    gathered = [dialogue(2, seed=seed, system="Be brief.") for seed in (1, 2)]
    assert_engine_equals_oracle(subject, rendered_turns(subject, gathered, Rendering.TEMPLATE))
