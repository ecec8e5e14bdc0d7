"""What the training API refuses: in words, by name, and before anything is changed or deleted."""

import math
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from safetensors.torch import load_file, save_file

import trainer.engine.api as mint
from db.settings import Settings
from tests.trainer.engine.test_client_api import LENGTH, changed, create, datum, grad_norm
from trainer.engine.folders import STATE_FILE
from trainer.engine.state import OPTIMIZER_FILE, RANDOM_FILE
from trainer.errors import (
    BadDataError,
    CheckpointError,
    ConfigError,
    EveryTurnError,
    NotFiniteError,
)

LOSS = "importance_sampling"
ONES = [1.0] * LENGTH


@pytest.fixture(scope="module")
def client(tmp_path_factory: pytest.TempPathFactory, tiny_llama: Path) -> mint.TrainingClient:
    """One client for all that is refused: afterwards it is as it was."""
    return create(Settings(home=tmp_path_factory.mktemp("home"), database_url=""), tiny_llama)


def tensor(values: list[Any], dtype: Any = "float32", shape: list[int] | None = None) -> Any:
    return mint.TensorData(values, dtype, shape)


def set_later(field: str, value: Any) -> mint.Datum:
    """A datum into which something was put once it was built."""
    made = datum()
    made.loss_fn_inputs[field] = value
    return made


ODD_DATA: dict[str, tuple[mint.Datum, str]] = {
    "shape": (changed("weights", tensor(ONES, shape=[8])), r"'weights'.*shape is \(8,\)"),
    "negative shape": (changed("weights", tensor(ONES, shape=[-1])), r"'weights'.*shape is \(-1,"),
    "letters": (changed("weights", tensor(["a"] * LENGTH)), "'weights'.*no number"),
    "nothing": (changed("weights", tensor([None] * LENGTH)), "'weights'.*no number"),
    "huge": (changed("weights", tensor([10**400] * LENGTH, "int64")), "'weights'.*position 0"),
    "beyond fp32": (changed("logprobs", [0.0] * 6 + [-1e39]), "'logprobs'.*position 6"),
    "dtype": (changed("weights", tensor(ONES, "float64")), "'weights'.*dtype 'float64'"),
    "half an id": (changed("target_tokens", tensor([1.5] * LENGTH, "int64")), "'target_tokens'"),
    "letters as ids": (changed("target_tokens", tensor(["a"] * LENGTH, "int64")), "no number"),
    "large id": (
        changed("target_tokens", np.full(LENGTH, 2**64 - 1, dtype=np.uint64)),
        f"id {2**64 - 1}",
    ),
    "input": (replace(datum(), model_input=[1] * LENGTH), "'model_input'.*is a list"),  # pyright: ignore[reportArgumentType]
    "set later": (set_later("weights", ONES), "'weights'.*is a list"),
    "too long": (
        mint.Datum(mint.ModelInput.from_ints([1] * 5000)),
        "'model_input'.*5000 tokens, and the model sees",
    ),
}


@pytest.mark.parametrize("kind", ODD_DATA)
def test_odd_data_are_refused_by_datum_and_field(client: mint.TrainingClient, kind: str) -> None:
    bad, message = ODD_DATA[kind]
    with pytest.raises((BadDataError, NotFiniteError), match=message) as told:
        client.forward_backward([datum(), bad], "ppo").result()
    assert "datum 1" in str(told.value)
    assert grad_norm(client) == 0


@pytest.mark.parametrize(
    "values",
    [
        b"1111111",
        np.array(["1"] * LENGTH),
        np.ones(LENGTH, complex),
        torch.ones(7, dtype=torch.cfloat),
    ],
    ids=["bytes", "letters", "complex array", "complex tensor"],
)
def test_what_holds_no_numbers_becomes_no_datum(values: Any) -> None:
    with pytest.raises(BadDataError, match="field 'weights'"):
        changed("weights", values)


@pytest.mark.parametrize("batch", [None, 5, datum()], ids=["None", "5", "a datum"])
def test_what_is_no_batch_fails_its_future(client: mint.TrainingClient, batch: Any) -> None:
    future = client.forward_backward(batch, "ppo")
    with pytest.raises(BadDataError, match="list of datums"):
        future.result()


@pytest.mark.parametrize(
    "config",
    [5, [], "x", {"exp_weight_cap": 0}, {"exp_weight_beta": -1}, {"dual_clip_threshold": -3},
     {"beta": -1}, {"kl_weight": 10**400}],
    ids=str,
)  # fmt: skip
def test_a_loss_is_told_sense_or_nothing(client: mint.TrainingClient, config: Any) -> None:
    future = client.forward_backward([datum()], "ppo", config)
    with pytest.raises(ConfigError, match="loss_fn_config"):
        future.result()


@pytest.mark.parametrize(
    ("field", "value"),
    [("learning_rate", math.nan), ("learning_rate", -0.01), ("learning_rate", "x"),
     ("learning_rate", None), ("beta1", 1.0), ("beta1", -1), ("beta2", 2.0), ("beta2", math.nan),
     ("eps", math.nan), ("eps", -1), ("weight_decay", math.inf), ("grad_clip_norm", -1)],
)  # fmt: skip
def test_a_step_with_nonsense_changes_nothing(
    client: mint.TrainingClient, field: str, value: Any
) -> None:
    before = client.forward([datum()], LOSS).result().loss_fn_outputs[0]["logprobs"].data
    client.forward_backward([datum()], LOSS).result()
    with pytest.raises(ConfigError, match=field):
        client.optim_step(replace(mint.AdamParams(), **{field: value})).result()
    assert client.forward([datum()], LOSS).result().loss_fn_outputs[0]["logprobs"].data == before
    still = mint.AdamParams(learning_rate=0.0)
    assert client.optim_step(still).result().metrics["grad_norm:last"] > 0


@pytest.mark.parametrize("params", [None, {"learning_rate": 1e-4}], ids=str)
def test_a_step_wants_its_settings(client: mint.TrainingClient, params: Any) -> None:
    with pytest.raises(ConfigError, match="adam_params"):
        client.optim_step(params).result()


@pytest.mark.parametrize(
    ("params", "samples", "named"),
    [({"temperature": -1}, 1, "temperature"), ({"temperature": math.nan}, 1, "temperature"),
     ({"top_p": 0}, 1, "top_p"), ({"top_p": 2}, 1, "top_p"), ({"top_k": 1.5}, 1, "top_k"),
     ({"max_tokens": 0}, 1, "max_tokens"), ({"max_tokens": 2.5}, 1, "max_tokens"),
     ({"seed": 2**70}, 1, "seed"), ({"stop": ""}, 1, "stop"), ({"stop": [""]}, 1, "stop"),
     ({"stop": 5}, 1, "stop"), ({"stop": [None]}, 1, "stop"), ({"stop": [-1]}, 1, "stop"),
     ({}, 0, "num_samples"), ({}, -1, "num_samples"), ({}, 1.5, "num_samples")],
)  # fmt: skip
def test_sampling_is_told_sense_or_nothing(
    client: mint.TrainingClient, params: dict[str, Any], samples: Any, named: str
) -> None:
    sampler = client.save_weights_and_get_sampling_client()
    prompt = mint.ModelInput.from_ints([7, 30])
    asked: dict[str, Any] = {"max_tokens": 1} | params
    with pytest.raises(ConfigError, match=named):
        sampler.sample(prompt, samples, mint.SamplingParams(**asked)).result()


def test_a_prompt_is_one_that_the_model_sees(client: mint.TrainingClient) -> None:
    sampler = client.save_weights_and_get_sampling_client()
    for prompt in ([7, 30], None, mint.ModelInput.from_ints([1] * 5000)):
        with pytest.raises(BadDataError, match="prompt"):
            sampler.compute_logprobs(prompt).result()  # pyright: ignore[reportArgumentType]


@pytest.mark.parametrize(
    "settings_of_it",
    [{"rank": 0}, {"rank": 2.5}, {"rank": "4"}, {"rank": True}, {"seed": 2**70},
     {"alpha": math.nan}, {"alpha": 0}],
    ids=str,
)  # fmt: skip
def test_an_adapter_is_asked_for_in_numbers(
    settings: Settings, tiny_llama: Path, settings_of_it: dict[str, Any]
) -> None:
    service = mint.ServiceClient(device="cpu", settings=settings)
    with pytest.raises(ConfigError, match=next(iter(settings_of_it))):
        service.create_lora_training_client(str(tiny_llama), **settings_of_it)


@pytest.mark.parametrize(
    "name", ["", ".", "..", "../", "/", "~nobody-here/x", "a\0b", "x" * 300, "tinker://a/b", None, 5]
)  # fmt: skip
def test_a_save_wants_a_name_of_its_own(
    settings: Settings, tiny_llama: Path, name: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    inside = tmp_path / "folder" / "inside"
    inside.mkdir(parents=True)
    monkeypatch.chdir(inside)
    (inside / "thesis.txt").write_text("mine")
    (inside.parent / "notes.txt").write_text("mine")
    client = create(settings, tiny_llama)
    kept = client.save_state("kept").result().path
    for save in (client.save_state, client.save_weights_for_sampler):
        with pytest.raises(EveryTurnError):
            save(name).result()
    assert sorted(path.name for path in inside.parent.rglob("*.txt")) == ["notes.txt", "thesis.txt"]
    client.load_state_with_optimizer(kept).result()


def test_a_save_replaces_its_own_kind_and_nothing_else(
    settings: Settings, tiny_llama: Path, tmp_path: Path
) -> None:
    client = create(settings, tiny_llama)
    adapter, state = tmp_path / "adapter", tmp_path / "state"
    for _ in range(2):  # the second time there is one
        client.save_weights_for_sampler(str(adapter)).result()
        client.save_state(str(state)).result()
    (tmp_path / "file").write_text("mine")
    (tmp_path / "folder").mkdir()
    (tmp_path / "folder" / "thesis.txt").write_text("mine")
    (tmp_path / "link").symlink_to(tmp_path / "folder")
    for name in ("file", "folder", "link"):
        for save in (client.save_state, client.save_weights_for_sampler):
            with pytest.raises(CheckpointError, match="is there already"):
                save(str(tmp_path / name)).result()
    with pytest.raises(CheckpointError, match="not a saved state"):
        client.save_state(str(adapter)).result()
    with pytest.raises(CheckpointError, match="not an adapter"):
        client.save_weights_for_sampler(str(state)).result()
    assert (tmp_path / "folder" / "thesis.txt").read_text() == "mine"
    client.load_state_with_optimizer(str(state)).result()


def test_a_state_and_an_adapter_may_have_the_same_name(
    settings: Settings, tiny_llama: Path
) -> None:
    client = create(settings, tiny_llama)
    state = client.save_state("final").result().path
    adapter = client.save_weights_for_sampler("final").result().path
    assert state != adapter
    client.load_state_with_optimizer("final").result()
    client.load_adapter("final").result()


@pytest.mark.parametrize("form", ["load_state", "load_state_with_optimizer", "load_adapter"])
def test_a_gradient_of_other_weights_is_forgotten(
    settings: Settings, tiny_llama: Path, form: str
) -> None:
    client = create(settings, tiny_llama)
    client.save_state("one").result()
    client.save_weights_for_sampler("one").result()
    client.forward_backward([datum()], LOSS).result()
    getattr(client, form)("one").result()
    assert grad_norm(client) == 0


def cut(file: Path) -> None:
    file.write_bytes(file.read_bytes()[:100])


def changing(change: Callable[[dict[str, Any]], None]) -> Callable[[Path], None]:
    def apply(file: Path) -> None:
        tensors = load_file(file)
        change(tensors)
        save_file(tensors, file)

    return apply


def first(tensors: dict[str, Any], end: str) -> str:
    return next(key for key in sorted(tensors) if key.endswith(end))


DAMAGE: dict[str, tuple[str, Callable[[Path], object]]] = {
    "cut off": (OPTIMIZER_FILE, cut),
    "a moment is missing": (OPTIMIZER_FILE, changing(lambda t: t.pop(first(t, ":exp_avg")))),  # pyright: ignore[reportArgumentType]
    "a moment of another shape": (
        OPTIMIZER_FILE,
        changing(lambda t: t.update({first(t, ":exp_avg"): torch.ones(2)})),
    ),
    "a moment is NaN": (
        OPTIMIZER_FILE,
        changing(lambda t: t[first(t, ":exp_avg")].fill_(math.nan)),  # pyright: ignore[reportArgumentType]
    ),
    "a moment of whole numbers": (
        OPTIMIZER_FILE,
        changing(lambda t: t.update({first(t, ":exp_avg"): t[first(t, ":exp_avg")].int()})),
    ),
    "no random numbers": (RANDOM_FILE, Path.unlink),
    "other random numbers": (
        RANDOM_FILE, changing(lambda t: t.update({"gpu": t.pop("cpu")}))
    ),
    "few random numbers": (RANDOM_FILE, changing(lambda t: t.update({"cpu": t["cpu"][:9].clone()}))),
    "the adapter is NaN": (
        "adapter_model.safetensors",
        changing(lambda t: t[first(t, ".weight")].fill_(math.nan)),  # pyright: ignore[reportArgumentType]
    ),
    "a list of facts": (STATE_FILE, lambda file: file.write_text("[1]")),
    "no facts": (STATE_FILE, lambda file: file.write_text("null")),
}  # fmt: skip


def test_a_damaged_state_is_refused_and_changes_nothing(
    settings: Settings, tiny_llama: Path
) -> None:
    client, twin = create(settings, tiny_llama), create(settings, tiny_llama)
    for one in (client, twin):
        one.forward_backward([datum()], LOSS).result()
        grad_norm(one)
    for number, (kind, (file, damage)) in enumerate(DAMAGE.items()):
        folder = Path(client.save_state(f"state {number}").result().path)
        damage(folder / file)
        for one in (client, twin):
            one.forward_backward([datum(-0.5)], LOSS).result()
        with pytest.raises(CheckpointError):
            client.load_state_with_optimizer(str(folder)).result()
        assert grad_norm(client) == grad_norm(twin) > 0, kind
    outputs = [one.forward([datum()], LOSS).result().loss_fn_outputs[0] for one in (client, twin)]
    assert outputs[0]["logprobs"].data == outputs[1]["logprobs"].data
