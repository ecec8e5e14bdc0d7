"""A run that starts from an earlier adapter: what fits, what is refused, and what it then measures."""

import io
import json
import shutil
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from db.enums import Role
from db.records import Conversation
from db.settings import Settings
from tests.conftest import TinyModels
from tests.runs import run, scored
from trainer.__main__ import main
from trainer.config import TrainConfig
from trainer.data.rendering import render_prompt
from trainer.engine.client import ServiceClient
from trainer.engine.types import ModelInput, SamplingParams
from trainer.errors import CheckpointError, ConfigError
from trainer.remote.fitting import ALPHA, unfit
from trainer.runs.folder import RunFolder, read_json, sha256_of, write_json
from trainer.starting import find_start

WEIGHTS = "adapter_model.safetensors"

TALKS = [
    scored(("Hi", "Good day!", 1.0), ("The price?", "Ten per cent off.", 0.5), system="Be kind."),
    scored(("Where is my order?", "I am sorry, let me look.", 0.8), ("And?", "No.", -1.0)),
    scored(("Hello", "What now", -1.0)),
]


def config_for(model: Path, **changes: Any) -> TrainConfig:
    settings = {
        "base_model": str(model), "device": "cpu", "sample_prompts": 0, "max_kl": 100.0,
        "learning_rate": 0.01, "epochs": 2, "warmup_steps": 0,
    }  # fmt: skip
    return TrainConfig.from_json({**settings, **changes})


@pytest.fixture(scope="module")
def first_round(tmp_path_factory: pytest.TempPathFactory, tiny_llama: Path) -> RunFolder:
    """A run from the base model that has moved it a good deal."""
    home = tmp_path_factory.mktemp("first")
    settings = Settings(home=home, database_url=f"sqlite:///{home / 'everyturn.db'}")
    run(home / "run", TALKS, config_for(tiny_llama), settings)
    return RunFolder(home / "run")


def sampled_by(folder: Path, settings: Settings, *, temperature: float = 1.0) -> list[Conversation]:
    """Conversations whose replies a saved adapter has just sampled, with its log-probabilities."""
    sampler = ServiceClient(device="cpu", settings=settings).create_sampling_client(str(folder))
    tokenizer = sampler._policy.tokenizer
    found: list[Conversation] = []
    for number, talk in enumerate(TALKS):
        asked = talk.messages[0].content
        prompt = render_prompt([{"role": "user", "content": asked}], tokenizer, "template")  # type: ignore[arg-type]
        params = SamplingParams(max_tokens=12, seed=number, temperature=temperature)
        (reply,) = sampler.sample(ModelInput.from_ints(prompt), 1, params).result().sequences
        text = tokenizer.decode(list(reply.tokens), skip_special_tokens=True)
        (plain,) = [
            replace(message, content=str(text), token_ids=tuple(reply.tokens),
                    logprobs=tuple(reply.logprobs))
            for message in scored((asked, "", (1.0, -0.5, 0.3)[number])).messages
            if message.role is Role.ASSISTANT
        ]  # fmt: skip
        found.append(Conversation(messages=(talk.messages[0], plain), title=f"sampled {number}"))
    return found


def test_replies_of_the_policy_it_starts_from_have_ratio_1_and_the_kl_is_that_to_the_base(
    first_round: RunFolder, settings: Settings, tiny_llama: Path, tmp_path: Path
) -> None:
    talks = sampled_by(first_round.adapter, settings)
    config = config_for(tiny_llama, start_from=str(first_round.path), batch_conversations=0)
    folder = RunFolder(tmp_path / "second")
    folder.path.mkdir()
    shutil.copytree(first_round.adapter, folder.start)
    rows = begin(folder, talks, config, settings)
    first = [row for row in rows if row["step"] == 0]
    assert len(first) == 3
    for row in first:
        assert row["ratio_mean"] == pytest.approx(1.0, abs=1e-4)
        assert row["kl_mean"] == pytest.approx(0.0, abs=1e-4)
        assert row["kl_base"] > 0.01  # the base stays the base, however far the adapter is from it
    # Under the base model, the same stored numbers give the ratios of another policy, exactly.
    config = config_for(tiny_llama, batch_conversations=0)
    rows = run(tmp_path / "base", talks, config, settings)
    base = [row for row in rows if row["step"] == 0]
    assert all(row["kl_mean"] > 0.01 for row in base)
    for row, stored in zip(base, talks, strict=True):
        known = stored.messages[1].logprobs or ()
        gap = row["logprob_mean"] - sum(known) / len(known)
        assert row["kl_mean"] == pytest.approx(row["ratio_mean"] - 1.0 - gap, abs=1e-4)
        assert row["kl_base"] == 0.0


def begin(
    folder: RunFolder, talks: list[Conversation], config: TrainConfig, settings: Settings
) -> list[dict[str, Any]]:
    from db.formats import write  # noqa: PLC0415
    from trainer.runs.folder import write_text  # noqa: PLC0415
    from trainer.runs.recorder import FileRecorder  # noqa: PLC0415
    from trainer.runs.worker import run_folder  # noqa: PLC0415

    write_json(folder.config, config.to_json())
    write_text(folder.data, write(talks, "native"))
    run_folder(folder, FileRecorder(folder.metrics, output=io.StringIO()), settings)
    return [json.loads(line) for line in folder.metrics.read_text("utf-8").splitlines()]


def test_typed_replies_are_measured_under_the_adapter_and_the_base_apart(
    first_round: RunFolder, settings: Settings, tiny_llama: Path, tmp_path: Path
) -> None:
    data = tmp_path / "data.json"
    data.write_text(
        json.dumps(
            [{"turns": [{"user": "Hi", "assistant": "Good day!", "reward": 1.0}]},
             {"turns": [{"user": "Hello", "assistant": "What now", "reward": -1.0}]}]
        )
    )  # fmt: skip
    out = tmp_path / "out"
    given = ["--model", str(tiny_llama), "--device", "cpu", "--out", str(out)]
    for setting in ("sample_prompts=0", "max_kl=100", "epochs=1", "batch_conversations=0"):
        given += ["--set", setting]
    start = ["--set", f"start_from={first_round.path}"]
    assert main(["train", "--data", str(data), *given, *start]) == 0
    assert sha256_of(out / "start" / WEIGHTS) == sha256_of(first_round.adapter / WEIGHTS)
    assert read_json(out / "config.json")["start_from"] == str(first_round.adapter.resolve())
    for line in (out / "metrics.jsonl").read_text("utf-8").splitlines():
        row = json.loads(line)
        assert (row["ratio_mean"], row["kl_mean"]) == (1.0, 0.0)
        assert row["kl_base"] > 0.01


def test_what_does_not_fit_is_refused_by_the_name_of_what_differs(
    first_round: RunFolder,
    settings: Settings,
    tiny_models: TinyModels,
    tiny_llama: Path,
    tmp_path: Path,
) -> None:
    fits = config_for(tiny_llama, start_from=str(first_round.adapter))
    assert find_start(settings, fits) == first_round.adapter.resolve()
    assert find_start(settings, config_for(tiny_llama)) is None
    other = config_for(
        tiny_models("qwen3"), start_from=str(first_round.adapter), lora_rank=8, lora_alpha=4.0
    )
    with pytest.raises(ConfigError) as refused:
        find_start(settings, other)
    for named in ("trained on", "llama", "qwen3", "rank is 16", "run's 8", "alpha is 32"):
        assert named in str(refused.value)
    for missing in ("7", str(tmp_path / "nowhere")):
        with pytest.raises(ConfigError, match=r"no adapter \(any more\)"):
            find_start(settings, fits.replace(start_from=missing))
    strange = tmp_path / "strange"
    shutil.copytree(first_round.adapter, strange)
    known = read_json(strange / "adapter_config.json")
    for changed, named in (
        ({"use_dora": True}, "use_dora"),
        ({"layers_to_transform": [0]}, "only some of the model's layers"),
    ):
        write_json(strange / "adapter_config.json", known | changed)
        with pytest.raises(ConfigError, match=named):
            find_start(settings, fits.replace(start_from=str(strange)))


def test_a_run_on_an_endpoint_that_starts_from_an_adapter_is_refused_with_a_word() -> None:
    config = TrainConfig(endpoint="far", start_from="3", lora_alpha=ALPHA)
    (finding,) = unfit(config)
    assert finding.blocking and "starts from the base model" in finding.text
    assert not unfit(config.replace(endpoint="")) and not unfit(config.replace(start_from=""))


def test_an_adapter_of_other_layers_is_refused_by_their_names(
    settings: Settings, tiny_llama: Path, tmp_path: Path
) -> None:
    service = ServiceClient(device="cpu", settings=settings)
    narrow = service.create_lora_training_client(str(tiny_llama), 4, train_mlp=False)
    narrow.save_weights_for_sampler(str(tmp_path / "narrow")).result()
    wide = service.create_lora_training_client(str(tiny_llama), 4)
    with pytest.raises(CheckpointError, match="has nothing for down_proj, gate_proj, up_proj"):
        wide.load_adapter(str(tmp_path / "narrow")).result()
