"""Models that cannot do all: without full causal attention, without a chat template."""

import io
import json
from pathlib import Path

import pytest

from db.formats import write
from db.settings import Settings
from tests.runs import run, scored
from trainer.__main__ import main
from trainer.config import TrainConfig
from trainer.errors import ChatTemplateError
from trainer.runs.folder import RunFolder, write_json, write_text
from trainer.runs.recorder import FileRecorder
from trainer.runs.worker import run_folder

CONVERSATIONS = [
    scored(("Hi", "Good day!", 1.0), ("The price?", "Ten per cent off.", 0.5)),
    scored(("Hello", "What now", -1.0)),
]


def config_for(model: Path, **changes: object) -> TrainConfig:
    settings = {"sample_prompts": 0, "device": "cpu", "epochs": 1}
    return TrainConfig.from_json({"base_model": str(model), **settings, **changes})


def log_of(out: Path, model: Path, settings: Settings) -> str:
    """Train in `out` and return what the run's log says."""
    folder, log = RunFolder(out), io.StringIO()
    out.mkdir()
    write_json(folder.config, config_for(model).to_json())
    write_text(folder.data, write(CONVERSATIONS, "native"))
    run_folder(folder, FileRecorder(folder.metrics, output=log), settings)
    return log.getvalue()


def preview_kinds(model: Path, scratch: Path, capsys: pytest.CaptureFixture[str]) -> dict[str, str]:
    """Return the findings that `preview --json` prints, text by kind."""
    data = scratch / "data.jsonl"
    data.write_text(write(CONVERSATIONS, "native"))
    assert main(["preview", "--data", str(data), "--model", str(model), "--json"]) == 0
    warnings = json.loads(capsys.readouterr().out)["warnings"]
    return {warning["kind"]: warning["text"] for warning in warnings}


def test_a_model_with_sliding_windows_says_that_it_computes_a_pass_for_each_turn(
    settings: Settings, tiny_sliding: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    warning = preview_kinds(tiny_sliding, tmp_path, capsys)["one_pass_a_turn"]
    assert "some of its layers are sliding_attention" in warning
    log = log_of(tmp_path / "run", tiny_sliding, settings)
    assert "one pass for each turn, because some of its layers are sliding_attention" in log
    assert (tmp_path / "run" / "adapter").exists()


def test_a_model_with_full_attention_says_that_it_shares_prefixes(
    settings: Settings, tiny_llama: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert "one_pass_a_turn" not in preview_kinds(tiny_llama, tmp_path, capsys)
    assert "shared prefixes computed once" in log_of(tmp_path / "run", tiny_llama, settings)


def test_a_model_without_a_template_asks_for_plain_rendering_and_then_trains(
    settings: Settings, tiny_without_template: Path, tmp_path: Path
) -> None:
    model = tiny_without_template
    with pytest.raises(ChatTemplateError, match="chat template") as told:
        run(tmp_path / "refused", CONVERSATIONS, config_for(model), settings)
    assert "plain" in told.value.remedy
    rows = run(tmp_path / "plain", CONVERSATIONS, config_for(model, rendering="plain"), settings)
    assert len(rows) == 3
