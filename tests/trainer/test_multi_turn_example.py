"""The recipe in the API's calls gives what the loop gives, on the real model."""

import asyncio
import importlib.util
import json
import os
import subprocess
import sys
from pathlib import Path
from types import ModuleType

import pytest
import torch
from safetensors.torch import load_file

from tests.conftest import EMBEDDED

pytestmark = pytest.mark.slow

SCRIPT = Path(__file__).parents[2] / "docs" / "examples" / "multi_turn_rl.py"
WEIGHTS = "adapter_model.safetensors"


def script() -> ModuleType:
    spec = importlib.util.spec_from_file_location("multi_turn_rl", SCRIPT)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module
    spec.loader.exec_module(module)
    return module


def test_the_script_differs_from_one_for_the_service_by_its_import_alone() -> None:
    lines = SCRIPT.read_text("utf-8").splitlines()
    assert [line for line in lines if "trainer" in line] == ["import trainer.engine.api as mint"]


def test_the_script_gives_the_loops_figures_and_adapter(
    smollm2: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    home = smollm2.parent.parent
    monkeypatch.setenv("EVERYTURN_HOME", str(home))
    recipe = script()
    turns, adapter = asyncio.run(recipe.train(EMBEDDED, str(tmp_path / "script")))
    assert [(turn.tokens, turn.response_tokens) for turn in turns] == [
        (13, 7),
        (33, 14),
        (14, 11),
        (34, 14),
    ] * 2

    names = ("user", "assistant", "reward")
    data = [
        {"turns": [dict(zip(names, turn, strict=True)) for turn in conversation]}
        for conversation in recipe.CONVERSATIONS
    ]
    (tmp_path / "data.json").write_text(json.dumps(data), encoding="utf-8")
    command = [sys.executable, "-m", "trainer", "train", "--data", str(tmp_path / "data.json")]
    command += ["--model", EMBEDDED, "--preset", "recipe", "--device", "cpu"]
    command += ["--set", "sample_prompts=0", "--out", str(tmp_path / "loop")]
    done = subprocess.run(
        command, env=dict(os.environ), capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    rows = [json.loads(line) for line in (tmp_path / "loop" / "metrics.jsonl").open("rb")]
    for row, turn in zip(rows, turns, strict=True):
        allowed = 1e-4 if turn.epoch == 0 else 1e-3
        assert (row["epoch"], row["tokens"]) == (turn.epoch, turn.tokens)
        for key, name in (("loss:mean", "loss_mean"), ("ratio:mean", "ratio_mean")):
            assert turn.metrics[key] == pytest.approx(row[name], abs=allowed), key
        assert turn.metrics["clipfrac:mean"] == pytest.approx(row["clipfrac"], abs=allowed)

    found, expected = load_file(Path(adapter) / WEIGHTS), load_file(tmp_path / "loop/adapter" / WEIGHTS)
    assert found.keys() == expected.keys()
    flat, wanted = (torch.cat([w[key].flatten() for key in sorted(w)]) for w in (found, expected))
    assert float((flat - wanted).norm() / wanted.norm()) <= 1e-3
