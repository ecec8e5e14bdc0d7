"""Every form of an export says what the trained model says, to those who read that form."""

import json
import resource
import shutil
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import httpx
import pytest
import torch
import xllamacpp
from peft import PeftModel
from safetensors.torch import load_file, save_file
from transformers import AutoModelForCausalLM, AutoTokenizer, PreTrainedModel

from db.errors import StorageError
from db.settings import Settings, read_settings
from tests.conftest import TinyModels
from tests.models import CHATML_TEMPLATE, make_tokenizer
from trainer.__main__ import main
from trainer.config import TrainConfig
from trainer.errors import CheckpointError, NotFiniteError
from trainer.export.card import kept_epoch
from trainer.export.exporting import export
from trainer.export.gguf_model import write_gguf_model
from trainer.export.gguf_names import Names
from trainer.export.modelfile import modelfile
from trainer.export.usage import ADAPTER_FILE, MODEL_FILE, Form, GgufType
from trainer.runs.folder import RunFolder, read_json, write_json

DATA = [
    {
        "turns": [
            {"user": "What is it?", "assistant": "The capital.", "reward": 1.0},
            {"user": "Of what?", "assistant": "Of France, of course.", "reward": 0.2},
        ]
    }
]
PROMPT = [5, 9, 40, 41, 7]
TEXTS = (
    "What is the capital of France? It has 2.2 million residents, doesn't it?",
    "  two spaces\n\nand a new paragraph\tétude 你好 🙂",
    "<|im_start|>user\nHi<|im_end|>\n",
)

TOKENIZER = make_tokenizer(CHATML_TEMPLATE)

SHOWN = {
    token
    for token in range(3, len(TOKENIZER))
    if (text := TOKENIZER.decode([token])).isascii() and text.isprintable() and text
}
"""llama.cpp shows no log-probability for control tokens and for parts of characters."""

FULL_AT_BYTES = 4096
"""The system lets no file grow beyond this, which is what a full disk looks like to who writes."""

Runs = Callable[[str], RunFolder]


@pytest.fixture(scope="module")
def runs(tmp_path_factory: pytest.TempPathFactory, tiny_models: TinyModels) -> Runs:
    """Return a function from a tiny model's name to the folder of a run that has changed it a lot."""
    root = tmp_path_factory.mktemp("runs")
    data = root / "data.json"
    data.write_text(json.dumps(DATA))

    def run_of(name: str) -> RunFolder:
        out = root / name
        if not out.exists():
            arguments = ["train", "--data", str(data), "--model", str(tiny_models(name))]
            arguments += ["--preset", "recipe", "--set", "learning_rate=0.05"]
            arguments += ["--set", "sample_tokens=2", "--device", "cpu", "--out", str(out)]
            assert main(arguments) == 0
        return RunFolder(out)

    return run_of


def trained(run: RunFolder) -> PreTrainedModel:
    """The trained model as peft alone loads it."""
    base = AutoModelForCausalLM.from_pretrained(read_json(run.config)["base_model"])
    PeftModel.from_pretrained(base, str(run.adapter))
    return base.eval()


@torch.no_grad()
def logprobs_after(model: PreTrainedModel, ids: list[int]) -> torch.Tensor:
    return model(torch.tensor([ids])).logits[0, -1].log_softmax(-1)


@contextmanager
def llama_cpp(model: Path, adapter: Path | None = None) -> Iterator[xllamacpp.Server]:
    """llama.cpp itself with a model loaded."""
    options = xllamacpp.CommonParams()
    options.model.path = str(model)
    options.n_ctx, options.n_parallel, options.warmup = 256, 1, False
    options.cpuparams.n_threads = 1
    options.verbosity, options.use_jinja = 0, True
    if adapter is not None:
        options.lora_adapters = [xllamacpp.CommonAdapterLoraInfo(str(adapter), 1.0)]
    server = xllamacpp.Server(options)
    yield server
    del server


def said_by(server: xllamacpp.Server, prompt: list[int]) -> tuple[int, float]:
    """The likeliest next token, with its log-probability."""
    asked = {"prompt": prompt, "n_predict": 1, "temperature": 0, "n_probs": 1}
    answer: Any = server.handle_completions(asked)
    (entry,) = answer["choices"][0]["logprobs"]["content"]
    return entry["id"], entry["logprob"]


def assert_agrees(server: xllamacpp.Server, model: PreTrainedModel, *, nats: float) -> None:
    """llama.cpp's next token and its log-probability are the model's, for several prompts."""
    compared = 0
    for start in range(24):
        prompt = [5 + (start * 31 + step * 17) % 300 for step in range(6)]
        expected = logprobs_after(model, prompt)
        if int(expected.argmax()) not in SHOWN:
            continue
        token, logprob = said_by(server, prompt)
        assert logprob == pytest.approx(float(expected[token]), abs=nats)
        assert float(expected.max()) - float(expected[token]) < nats
        compared += 1
    assert compared > 2


@pytest.mark.parametrize("name", ["llama", "qwen3"])
@pytest.mark.parametrize(
    ("gguf_type", "nats"), [(GgufType.F32, 0.01), (GgufType.F16, 0.02), (GgufType.Q8_0, 0.2)]
)
def test_llama_cpp_says_what_the_trained_model_says(
    settings: Settings, runs: Runs, tmp_path: Path, name: str, gguf_type: GgufType, nats: float
) -> None:
    run = runs(name)
    done = export(run, Form.GGUF, tmp_path / "out", settings, gguf_type=gguf_type)
    assert done.check.mean_nats < nats
    with llama_cpp(tmp_path / "out" / MODEL_FILE) as server:
        assert_agrees(server, trained(run), nats=nats)


@pytest.mark.parametrize("name", ["llama", "qwen3"])
def test_llama_cpp_adds_the_adapter_to_the_base_model(
    settings: Settings, runs: Runs, tmp_path: Path, name: str
) -> None:
    run = runs(name)
    export(run, Form.GGUF_ADAPTER, tmp_path / "out", settings, gguf_type=GgufType.F32)
    folder = read_json(run.config)["base_model"]
    base = AutoModelForCausalLM.from_pretrained(folder)
    tokenizer = AutoTokenizer.from_pretrained(folder)
    write_gguf_model(base, tokenizer, tmp_path / "base.gguf", GgufType.F32, name="base")
    with llama_cpp(tmp_path / "base.gguf") as server:
        assert_agrees(server, base.eval(), nats=0.01)
    with llama_cpp(tmp_path / "base.gguf", tmp_path / "out" / ADAPTER_FILE) as server:
        assert_agrees(server, trained(run), nats=0.01)


@pytest.mark.slow
def test_llama_cpp_reads_and_answers_with_the_embedded_model(smollm2: Path, tmp_path: Path) -> None:
    tokenizer = AutoTokenizer.from_pretrained(smollm2)
    model = AutoModelForCausalLM.from_pretrained(smollm2)
    path = tmp_path / MODEL_FILE
    write_gguf_model(model, tokenizer, path, GgufType.F16, name="smollm2")
    with llama_cpp(path) as server:
        for text in TEXTS:
            asked = {"content": text, "add_special": False, "parse_special": True}
            answer = httpx.post(f"{server.listening_address}/tokenize", json=asked).json()
            assert answer["tokens"] == tokenizer.encode(text)
        question = {"role": "user", "content": "What is the capital of France?"}
        told: Any = server.handle_chat_completions(
            {"messages": [question], "max_tokens": 12, "temperature": 0}
        )
    assert told["choices"][0]["message"]["content"] == "The capital of France is Paris."
    text = modelfile(tokenizer, FROM=MODEL_FILE)
    assert text.startswith(f"FROM ./{MODEL_FILE}\nTEMPLATE") and "named SmolLM" in text


@pytest.mark.parametrize("name", ["llama", "qwen3", "gemma3-sliding"])
def test_a_merged_model_is_a_plain_model_with_the_trained_weights(
    settings: Settings, runs: Runs, tmp_path: Path, name: str
) -> None:
    run = runs(name)
    done = export(run, Form.MERGED, tmp_path / "out", settings)
    assert done.check.largest_nats < 1e-3
    merged = AutoModelForCausalLM.from_pretrained(tmp_path / "out").eval()
    expected = logprobs_after(trained(run), PROMPT)
    torch.testing.assert_close(logprobs_after(merged, PROMPT), expected, atol=1e-4, rtol=1e-4)
    names = {path.name for path in (tmp_path / "out").iterdir()}
    assert {"README.md", "chat_template.jinja", "tokenizer.json", "model.safetensors"} <= names


def test_an_adapter_names_its_base_model_and_no_path_of_this_machine(
    settings: Settings, runs: Runs, tmp_path: Path
) -> None:
    export(runs("llama"), Form.ADAPTER, tmp_path / "out", settings)
    config = json.loads((tmp_path / "out" / "adapter_config.json").read_text())
    assert config["base_model_name_or_path"] == "llama"
    card = (tmp_path / "out" / "README.md").read_text()
    assert "vllm serve llama --enable-lora" in card and "PeftModel.from_pretrained" in card
    assert "Loaded again and compared" in card


@pytest.mark.parametrize("form", list(Form))
def test_an_adapter_that_says_nan_is_refused_and_nothing_is_left(
    settings: Settings, runs: Runs, tmp_path: Path, form: Form
) -> None:
    run = RunFolder(tmp_path / "run")
    shutil.copytree(runs("llama").path, run.path)
    weights = load_file(run.adapter / "adapter_model.safetensors")
    broken = {name: value * float("nan") for name, value in weights.items()}
    save_file(broken, run.adapter / "adapter_model.safetensors")
    with pytest.raises(NotFiniteError, match="NaN"):
        export(run, form, tmp_path / "out", settings)
    assert [path.name for path in tmp_path.iterdir() if "out" in path.name] == []


def test_what_was_written_wrongly_is_found_and_nothing_is_left(
    settings: Settings, runs: Runs, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(Names, "laid_out", lambda _names, _parameter, tensor: tensor)
    for form in (Form.GGUF, Form.GGUF_ADAPTER):
        with pytest.raises(CheckpointError, match="does not say what the trained model says"):
            export(runs("llama"), form, tmp_path / "out", settings)
    assert list(tmp_path.glob("*out*")) == []


@pytest.mark.parametrize("form", list(Form))
def test_a_disk_that_takes_no_more_is_told_in_words_and_nothing_is_left(
    settings: Settings, runs: Runs, tmp_path: Path, form: Form
) -> None:
    run = runs("llama")
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (FULL_AT_BYTES, before[1]))
    try:
        with pytest.raises(StorageError, match=r"cannot be written .*Nothing half is left"):
            export(run, form, tmp_path / "out", settings)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)
    assert list(tmp_path.glob("*out*")) == []


def test_a_file_that_cannot_be_read_again_is_found(
    settings: Settings, runs: Runs, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def write_half(model: Any, tokenizer: Any, path: Path, *_: Any, **__: Any) -> None:
        write_gguf_model(model, tokenizer, path, GgufType.F32, name="x")
        path.write_bytes(path.read_bytes()[:2000])

    monkeypatch.setattr("trainer.export.exporting.write_gguf_model", write_half)
    with pytest.raises(CheckpointError, match="cannot be loaded again"):
        export(runs("llama"), Form.GGUF, tmp_path / "out", settings)


@pytest.mark.parametrize("form", [Form.GGUF, Form.GGUF_ADAPTER])
def test_a_kind_of_model_that_cannot_be_written_is_named_with_another_way(
    settings: Settings, runs: Runs, tmp_path: Path, form: Form
) -> None:
    with pytest.raises(CheckpointError, match=r"gemma3_text.*convert_hf_to_gguf"):
        export(runs("gemma3-sliding"), form, tmp_path / "out", settings)


def test_a_taken_folder_is_left_alone(settings: Settings, runs: Runs, tmp_path: Path) -> None:
    (tmp_path / "out").mkdir()
    with pytest.raises(CheckpointError, match="something already"):
        export(runs("llama"), Form.MERGED, tmp_path / "out", settings)


@pytest.mark.parametrize(
    ("held_out", "said"),
    [
        (None, "the last of 8 steps"),
        ({"best_epoch": 1}, "after epoch 2, the best on held-out"),
        ({"best_epoch": None}, "no epoch did better"),
    ],
)
def test_the_card_says_which_epoch_was_kept(
    tmp_path: Path, held_out: dict[str, Any] | None, said: str
) -> None:
    folder = RunFolder(tmp_path)
    write_json(folder.summary, {"steps": 8, "held_out": held_out})
    assert said in kept_epoch(folder)


def test_a_run_of_the_database_is_exported_by_its_number(
    settings: Settings, runs: Runs, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    shutil.copytree(runs("llama").path, read_settings().run_dir(5))
    arguments = ["export", "5", "--to", "gguf", "--type", "q8_0", "--out", str(tmp_path / "out")]
    assert main(arguments) == 0
    assert "differ by" in capsys.readouterr().err
    assert TrainConfig.from_json(read_json(runs("llama").config)).base_model
