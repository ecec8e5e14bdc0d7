"""The command line that scripts rely on: files, JSON, exit statuses, one readable line."""

import json
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
import torch
from filelock import FileLock
from peft import PeftModel
from safetensors.torch import load_file, save_file
from transformers import AutoModelForCausalLM

from db.settings import Settings
from trainer.__main__ import main

SEED = [
    {
        "turns": [
            {"user": "What is it?", "assistant": "The capital.", "reward": 1.0},
            {"user": "Of what?", "assistant": "Of France, of course.", "reward": 0.9},
        ]
    },
    {
        "turns": [
            {"user": "Explain it.", "assistant": "It is the study of particles.", "reward": 0.7},
            {"user": "More?", "assistant": "It uses wave functions.", "reward": 0.95},
        ]
    },
]


@pytest.fixture
def data(tmp_path: Path) -> Path:
    path = tmp_path / "seed.json"
    path.write_text(json.dumps(SEED))
    return path


def train(data: Path, model: Path, out: Path, *more: str) -> int:
    arguments = ["train", "--data", str(data), "--model", str(model), "--preset", "recipe"]
    arguments += ["--out", str(out), "--set", "sample_tokens=4", "--device", "cpu"]
    return main([*arguments, *more])


def error_line(capsys: pytest.CaptureFixture[str]) -> str:
    """The one line on standard error that explains a failure."""
    output = capsys.readouterr()
    assert output.out == ""
    (line,) = output.err.strip().splitlines()
    return line


def test_train_leaves_metrics_adapter_config_and_summary(
    settings: Settings, data: Path, tiny_llama: Path, tmp_path: Path
) -> None:
    out = tmp_path / "run"
    assert train(data, tiny_llama, out) == 0
    rows = [json.loads(line) for line in (out / "metrics.jsonl").read_text().splitlines()]
    assert [(row["epoch"], row["conversation"], row["turn"]) for row in rows] == [
        (epoch, conversation, turn)
        for epoch in (0, 1)
        for conversation in (0, 1)
        for turn in (0, 1)
    ]
    assert set(rows[0]) == {
        *("epoch", "step", "conversation", "turn", "tokens", "response_tokens", "reward"),
        *("advantage", "loss_mean", "loss_sum", "ratio_mean", "clipfrac", "clipfrac_binding"),
        *("kl_mean", "logprob_mean", "kl_base"),
    }
    assert [row["advantage"] for row in rows[:4]] == pytest.approx([0.05, -0.05, -0.125, 0.125])
    for row in rows:
        assert row["loss_sum"] == pytest.approx(row["loss_mean"] * row["response_tokens"])
    summary = json.loads((out / "summary.json").read_text())
    assert [epoch["loss_mean"] for epoch in summary["epochs"]] == pytest.approx(
        [sum(row["loss_mean"] for row in rows if row["epoch"] == epoch) / 4 for epoch in (0, 1)]
    )
    assert summary["turn_tokens"] == sum(row["tokens"] for row in rows)
    assert summary["computed_tokens"] == summary["distinct_tokens"] <= summary["turn_tokens"]
    assert json.loads((out / "config.json").read_text())["preset"] == "recipe"
    assert "base_model" in (out / "adapter" / "README.md").read_text()


def test_a_run_in_the_foreground_is_reproducible(
    settings: Settings, data: Path, tiny_llama: Path, tmp_path: Path
) -> None:
    outs = [tmp_path / "a", tmp_path / "b"]
    for out in outs:
        assert train(data, tiny_llama, out) == 0
    files = [out / "adapter" / "adapter_model.safetensors" for out in outs]
    assert files[0].read_bytes() == files[1].read_bytes()
    assert (outs[0] / "metrics.jsonl").read_text() == (outs[1] / "metrics.jsonl").read_text()


def test_exports_load_elsewhere_and_agree(
    settings: Settings, data: Path, tiny_llama: Path, tmp_path: Path
) -> None:
    out = tmp_path / "run"
    assert train(data, tiny_llama, out, "--set", "learning_rate=0.01") == 0
    for kind in ("adapter", "merged"):
        target = str(tmp_path / kind)
        assert main(["export", str(out), "--to", kind, "--out", target]) == 0
    ids = torch.tensor([[5, 6, 7, 8]])
    with torch.no_grad():
        base = AutoModelForCausalLM.from_pretrained(tiny_llama)
        before = base(ids).logits
        adapted = PeftModel.from_pretrained(base, tmp_path / "adapter").eval()(ids).logits
        merged = AutoModelForCausalLM.from_pretrained(tmp_path / "merged")(ids).logits
    assert (adapted - before).abs().max() > 1e-3
    torch.testing.assert_close(merged, adapted, atol=1e-4, rtol=1e-4)
    assert (tmp_path / "merged" / "chat_template.jinja").exists()


def test_preview_prints_one_json_object(
    settings: Settings, data: Path, tiny_llama: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["preview", "--data", str(data), "--model", str(tiny_llama), "--json"]) == 0
    table = json.loads(capsys.readouterr().out)
    assert {"turns", "distinct_tokens", "warnings"} <= set(table)
    assert {"conversation", "turn", "tokens", "response_tokens", "reward", "advantage"} <= set(
        table["turns"][0]
    )
    assert 0 < table["distinct_tokens"] < sum(turn["tokens"] for turn in table["turns"])


def test_models_prints_one_json_object(
    settings: Settings, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["models", "--json"]) == 0
    models = json.loads(capsys.readouterr().out)["models"]
    assert models[0]["name"] == "smollm2-135m"
    assert sum(model["default"] for model in models) == 1


def test_a_folder_that_is_taken_is_refused(
    settings: Settings, data: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert train(data, tmp_path, tmp_path) == 1
    assert "resume" in error_line(capsys)


@pytest.mark.parametrize(
    ("more", "said"),
    [
        (["--set", "gamma=2"], "gamma"),
        (["--set", "gama=1"], "gama"),
        (["--set", "epochs"], "key=value"),
        (["--set", "preset=recipe"], "--preset"),
        (["--set", f"epochs={'9' * 400}"], "epochs"),
        (["--set", f"gamma={'9' * 400}"], "gamma"),
        (["--model", "nobody/has this"], "nobody/has this"),
    ],
)
def test_a_wrong_setting_is_one_line_and_status_1(
    settings: Settings,
    data: Path,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    more: list[str],
    said: str,
) -> None:
    assert train(data, tmp_path / "model", tmp_path / "out", *more) == 1
    assert said in error_line(capsys)


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ('[{"turns": [{"user": "a",\n "assistant" "b"}]}]', "line 2"),
        ('{"messages": [{"role": "wizard", "content": "a"}]}', "wizard"),
        ('[{"turns": [{"user": "a", "reward": 1}]}]', "assistant"),
        ('[{"turns": [{"user": "a", "assistant": "b", "reward": NaN}]}]', "reward"),
        ('[{"turns": [{"user": "a", "assistant": "b", "reward": 7}]}]', "reward"),
        ('[{"turns": [{"user": "a", "assistant": "b"}]}]', "has a score"),
        ('[{"turns": [{"user": "a", "assistant": "", "reward": 1}]}]', "empty reply"),
        ("", "empty"),
    ],
)
def test_bad_data_is_refused_before_training_in_words(
    settings: Settings,
    tiny_llama: Path,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    text: str,
    said: str,
) -> None:
    data = tmp_path / "bad.json"
    data.write_text(text)
    assert train(data, tiny_llama, tmp_path / "out") == 1
    line = capsys.readouterr().err.strip().splitlines()[-1]
    assert line.startswith("error: ") and said in line
    assert not (tmp_path / "out").exists()


def test_a_missing_file_is_named(
    settings: Settings, tiny_llama: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert train(tmp_path / "nowhere.jsonl", tiny_llama, tmp_path / "out") == 1
    assert "nowhere.jsonl" in error_line(capsys)


def test_wrong_usage_is_status_2() -> None:
    with pytest.raises(SystemExit) as usage:
        main(["train", "--data", "x"])
    assert usage.value.code == 2


def test_resume_refuses_what_is_no_run(
    settings: Settings, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["resume", str(tmp_path)]) == 1
    assert "config.json" in error_line(capsys)


def stop_after_first_epoch(out: Path) -> None:
    """Undo the end of a finished two-epoch run, so that it can be resumed."""
    shutil.rmtree(out / "adapter")
    shutil.rmtree(out / "checkpoints" / "00000002")


def test_a_damaged_checkpoint_is_passed_over_for_the_one_before(
    settings: Settings, data: Path, tiny_llama: Path, tmp_path: Path
) -> None:
    whole, broken = tmp_path / "whole", tmp_path / "broken"
    for out in (whole, broken):
        assert train(data, tiny_llama, out, "--set", "epochs=3") == 0
    shutil.rmtree(broken / "adapter")
    newest = max((broken / "checkpoints").iterdir())
    for file in newest.rglob("*.safetensors"):
        file.write_bytes(file.read_bytes()[:40])
    assert main(["resume", str(broken)]) == 0
    assert (broken / "metrics.jsonl").read_text() == (whole / "metrics.jsonl").read_text()
    weights = [out / "adapter" / "adapter_model.safetensors" for out in (whole, broken)]
    assert weights[0].read_bytes() == weights[1].read_bytes()


def test_a_run_whose_data_changed_is_not_resumed(
    settings: Settings,
    data: Path,
    tiny_llama: Path,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
) -> None:
    out = tmp_path / "run"
    assert train(data, tiny_llama, out) == 0
    stop_after_first_epoch(out)
    lines = (out / "data.jsonl").read_text().splitlines(keepends=True)
    (out / "data.jsonl").write_text(lines[0])
    assert main(["resume", str(out)]) == 1
    assert "no longer those" in capsys.readouterr().err.splitlines()[-1]
    (out / "data.jsonl").write_text(lines[0] + '{"messages": 3}\n')
    assert main(["resume", str(out)]) == 1
    assert "damaged" in capsys.readouterr().err.splitlines()[-1]


def test_a_second_process_is_kept_out_of_a_runs_folder(
    settings: Settings,
    data: Path,
    tiny_llama: Path,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
) -> None:
    out = tmp_path / "run"
    assert train(data, tiny_llama, out) == 0
    stop_after_first_epoch(out)
    with FileLock(out / ".lock"):
        assert main(["resume", str(out)]) == 1
    assert "another process" in capsys.readouterr().err.splitlines()[-1]
    assert main(["resume", str(out)]) == 0


def test_a_model_with_weights_missing_is_refused_and_leaves_no_folder(
    settings: Settings,
    data: Path,
    tiny_llama: Path,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
) -> None:
    model = tmp_path / "model"
    shutil.copytree(tiny_llama, model)
    weights = load_file(model / "model.safetensors")
    kept = {name: value for name, value in weights.items() if "layers.1" not in name}
    save_file(kept, model / "model.safetensors", metadata={"format": "pt"})
    assert train(data, model, tmp_path / "out") == 1
    assert "weights are missing" in capsys.readouterr().err.splitlines()[-1]
    assert not (tmp_path / "out").exists()


@pytest.mark.parametrize(
    ("file", "content"),
    [
        ("model.safetensors", b"garbage"),
        ("model.safetensors", b""),
        ("config.json", b"[]"),
        ("tokenizer_config.json", b"[]"),
        ("tokenizer.json", b"{"),
    ],
)
def test_a_damaged_model_folder_is_one_line(
    settings: Settings,
    data: Path,
    tiny_llama: Path,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    file: str,
    content: bytes,
) -> None:
    model = tmp_path / "model"
    shutil.copytree(tiny_llama, model)
    (model / file).write_bytes(content)
    assert train(data, model, tmp_path / "out") == 1
    line = capsys.readouterr().err.splitlines()[-1]
    assert line.startswith("error: ") and str(model) in line
    assert not (tmp_path / "out").exists()


def test_what_is_left_out_is_said(
    settings: Settings,
    data: Path,
    tiny_llama: Path,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
) -> None:
    assert train(data, tiny_llama, tmp_path / "run", "--set", "max_context_tokens=30") == 0
    assert "the context limit is 30" in capsys.readouterr().err


@pytest.mark.parametrize(
    "arguments",
    [
        ["resume", "\N{SUPERSCRIPT TWO}"],
        ["export", "\N{SUPERSCRIPT TWO}", "--to", "adapter", "--out", "x"],
        ["pull", "~nobody-here/x"],
        ["pull", "x" * 5000],
    ],
)
def test_odd_names_are_one_line(
    settings: Settings, capsys: pytest.CaptureFixture[str], arguments: list[str]
) -> None:
    assert main(arguments) == 1
    assert len(error_line(capsys)) < 600


def test_what_ends_before_the_first_step_leaves_no_folder_in_the_way_of_the_next_try(
    settings: Settings,
    data: Path,
    tiny_llama: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    out = tmp_path / "run"
    with monkeypatch.context() as patch:
        patch.setitem(sys.modules, "trainer.runs.worker", None)
        with pytest.raises(ModuleNotFoundError):
            train(data, tiny_llama, out)
    assert not out.exists()
    assert train(data, tiny_llama, out) == 0


def test_a_wrong_path_is_told_before_torch_is_loaded(tmp_path: Path) -> None:
    code = (
        "import sys; from trainer.__main__ import main; "
        "assert main(sys.argv[1:]) == 1; assert 'torch' not in sys.modules"
    )
    wrong = str(tmp_path / "missing.jsonl")
    for arguments in (["preview"], ["train", "--out", str(tmp_path / "out")]):
        done = subprocess.run(
            [sys.executable, "-c", code, *arguments, "--data", wrong],
            capture_output=True,
            text=True,
            check=False,
        )
        assert done.returncode == 0, done.stderr
        assert "no such file" in done.stderr
