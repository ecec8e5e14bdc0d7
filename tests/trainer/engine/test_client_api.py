"""What scripts written for the remote API rely on: order, malformed data, losses, coercions."""

import asyncio
import inspect
import math
import re
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

import trainer.engine.api as mint
from db.settings import Settings
from trainer.engine.futures import Line
from trainer.engine.loss_config import LossConfig
from trainer.engine.losses import token_losses
from trainer.errors import BadDataError, ConfigError, EveryTurnError, NotFiniteError

DOCS = Path(__file__).parents[3] / "docs"
ADAM = mint.AdamParams(learning_rate=1e-2)
PROMPT = [7, 30, 41, 52, 12]
LENGTH = 7


def datum(advantage: float = 1.0, reply: tuple[int, ...] = (60, 61, 62)) -> mint.Datum:
    ids = [*PROMPT, *reply]
    context = [0.0] * (len(PROMPT) - 1)
    inputs: dict[str, Any] = {
        "target_tokens": ids[1:],
        "weights": context + [1.0] * len(reply),
        "advantages": context + [advantage] * len(reply),
        "logprobs": context + [-6.0] * len(reply),
    }
    return mint.Datum(mint.ModelInput.from_ints(ids[:-1]), inputs)


def changed(field: str, values: Any) -> mint.Datum:
    """A datum with other values in one field; None leaves the field out."""
    inputs = dict(datum().loss_fn_inputs)
    inputs.pop(field, None)
    return replace(datum(), loss_fn_inputs=inputs | ({} if values is None else {field: values}))


def create(settings: Settings, folder: Path, seed: int = 3) -> mint.TrainingClient:
    service = mint.ServiceClient(device="cpu", settings=settings)
    return service.create_lora_training_client(str(folder), rank=4, seed=seed)


def grad_norm(client: mint.TrainingClient) -> float:
    return client.optim_step(ADAM).result().metrics["grad_norm:last"]


FLOATS = [0.0] * (LENGTH - 1)
MALFORMED = {
    "length": (changed("weights", [1.0, 1.0]), r"field 'weights'.*shape is \(2,\).*7 tokens"),
    "missing": (changed("advantages", None), r"field 'advantages'.*missing.*'ppo'"),
    "no targets": (changed("target_tokens", None), r"field 'target_tokens'.*missing"),
    "unknown field": (changed("mask", [1.0] * LENGTH), r"field 'mask'.*no such field"),
    "high id": (changed("target_tokens", [1] * 6 + [4000]), r"field 'target_tokens'.*id 4000"),
    "low id": (changed("target_tokens", [-100] + [1] * 6), r"field 'target_tokens'.*id -100"),
    "input id": (
        replace(datum(), model_input=mint.ModelInput.from_ints([4000] * LENGTH)),
        r"field 'model_input'.*id 4000",
    ),
    "NaN": (changed("advantages", [*FLOATS, math.nan]), r"field 'advantages'.*nan.*position 6"),
    "Inf": (changed("logprobs", [*FLOATS, -math.inf]), r"field 'logprobs'.*inf.*position 6"),
    "dtype": (
        changed("target_tokens", np.ones(LENGTH)),
        r"field 'target_tokens'.*whole numbers",
    ),
    "empty": (mint.Datum(mint.ModelInput.empty(), {}), r"field 'model_input'.*no token"),
}


def test_a_malformed_datum_fails_its_future_by_name_and_leaves_the_gradient(settings, tiny_llama):
    client, untouched = create(settings, tiny_llama), create(settings, tiny_llama)
    for one in (client, untouched):
        one.forward_backward([datum()], "ppo").result()
    for kind, (bad, message) in MALFORMED.items():
        future = client.forward_backward([datum(), bad], "ppo")
        with pytest.raises((BadDataError, NotFiniteError), match=message) as told:
            future.result()
        assert "datum 1" in str(told.value), kind
    with pytest.raises(ConfigError, match="no loss 'dpo'"):
        client.forward_backward([datum()], "dpo").result()
    assert grad_norm(client) == grad_norm(untouched) > 0


def test_calls_that_nobody_waits_for_are_computed_in_order(settings, tiny_llama):
    plain, hasty = create(settings, tiny_llama), create(settings, tiny_llama)

    async def run() -> tuple[list[float], list[float | None]]:
        futures: list[Any] = []
        for _ in range(3):
            futures.append(await hasty.forward_backward_async([datum()], "importance_sampling"))
            futures.append(await hasty.optim_step_async(ADAM))
        sampler = await hasty.save_weights_and_get_sampling_client_async()
        losses = [(await future).metrics["loss:sum"] for future in futures[::2]]
        return losses, await sampler.compute_logprobs_async(mint.ModelInput.from_ints(PROMPT))

    expected: list[float] = []
    for _ in range(3):
        output = plain.forward_backward([datum()], "importance_sampling").result()
        expected.append(output.metrics["loss:sum"])
        plain.optim_step(ADAM).result()
    sampler = plain.save_weights_and_get_sampling_client()
    scores = sampler.compute_logprobs(mint.ModelInput.from_ints(PROMPT)).result()
    assert asyncio.run(run()) == (expected, scores)
    assert len(set(expected)) == 3


def test_two_clients_at_once_never_mix_gradients(settings, tiny_llama):
    async def norms(clients: list[mint.TrainingClient]) -> list[float]:
        good, bad = clients
        await good.forward_backward_async([datum(2.0)], "importance_sampling")
        await bad.forward_backward_async([datum(-0.5)], "importance_sampling")
        steps = [await client.optim_step_async(ADAM) for client in clients]
        return [(await step).metrics["grad_norm:last"] for step in steps]

    alone: list[float] = []
    for advantage in (2.0, -0.5):
        client = create(settings, tiny_llama)
        client.forward_backward([datum(advantage)], "importance_sampling").result()
        alone.append(grad_norm(client))
    assert asyncio.run(norms([create(settings, tiny_llama) for _ in range(2)])) == alone


def test_an_error_in_line_is_its_own_callers_and_a_timeout_takes_nobody_out():
    line = Line()

    def fail() -> None:
        raise ConfigError("no")

    async def run() -> int:
        gate = asyncio.Event()
        loop = asyncio.get_running_loop()
        slow = line.soon(lambda: asyncio.run_coroutine_threadsafe(gate.wait(), loop).result())
        broken, last = line.soon(fail), line.soon(lambda: 3)
        with pytest.raises(TimeoutError):
            await last.result_async(timeout=0.01)
        gate.set()
        assert await slow
        with pytest.raises(ConfigError):
            await broken
        return await last

    assert asyncio.run(run()) == 3


def test_a_custom_loss_has_the_gradient_of_the_built_in_one(settings, tiny_llama):
    built_in, custom = create(settings, tiny_llama), create(settings, tiny_llama)
    data = [datum(), datum(-0.5, (70, 71))]
    expected = built_in.forward_backward(data, "importance_sampling").result()

    def loss_fn(given: list[mint.Datum], logprobs: list[torch.Tensor]) -> Any:
        total = torch.zeros(())
        for one, logprobs_T in zip(given, logprobs, strict=True):
            fields = {name: value.to_torch() for name, value in one.loss_fn_inputs.items()}
            ratios_T = (logprobs_T - fields["logprobs"]).exp()
            total = total - (ratios_T * fields["advantages"] * fields["weights"]).sum()
        return total, {"mine:sum": float(total)}

    output = custom.forward_backward_custom(data, loss_fn).result()
    assert output.metrics["mine:sum"] == pytest.approx(expected.metrics["loss:sum"], rel=1e-5)
    assert output.metrics["loss:sum"] == output.metrics["mine:sum"]
    assert 0.0 not in output.loss_fn_outputs[0]["logprobs"].tolist()
    assert grad_norm(custom) == pytest.approx(grad_norm(built_in), rel=1e-5)
    with pytest.raises(ConfigError, match="one number"):
        custom.forward_backward_custom(data, lambda _, __: (torch.ones(()), {})).result()
    assert grad_norm(custom) == 0.0


def test_forward_scores_every_target_where_no_weight_asks_for_one(settings, tiny_llama):
    client = create(settings, tiny_llama)
    silent = changed("weights", [0.0] * LENGTH)
    output = client.forward([silent, datum()], "cross_entropy").result()
    every, trained = (one["logprobs"].tolist() for one in output.loss_fn_outputs)
    assert 0.0 not in every
    assert trained[:4] == [0.0] * 4
    assert trained[4:] == pytest.approx(every[4:], abs=1e-5)
    assert output.metrics["num_tokens:sum"] == 3


def losses(name: Any, config: LossConfig, logprobs_T: torch.Tensor) -> torch.Tensor:
    old_T, advantages_T = torch.tensor([-1.0, -1.0]), torch.tensor([2.0, -1.0])
    flags_T = torch.tensor([True, True])
    return token_losses(
        name,
        logprobs_T=logprobs_T,
        old_logprobs_T=old_T,
        advantages_T=advantages_T,
        is_trained_T=flags_T,
        is_off_policy_T=~flags_T,
        config=config,
    )


def test_cispo_and_dro_are_their_formulas():
    logprobs_T = torch.tensor([-0.5, -2.0], requires_grad=True)  # ratios 1.649 and 0.368
    found_T = losses("cispo", LossConfig(), logprobs_T)
    assert found_T.tolist() == pytest.approx([1.2 * 2.0 * 0.5, -0.8 * 2.0])
    (gradient_T,) = torch.autograd.grad(found_T.sum(), logprobs_T)
    assert gradient_T.tolist() == pytest.approx([-2.4, 0.8])
    found_T = losses("dro", LossConfig(dro_beta=0.1), logprobs_T)
    assert found_T.tolist() == pytest.approx([1.0 + 0.05 * 0.25, -2.0 + 0.05])
    (gradient_T,) = torch.autograd.grad(found_T.sum(), logprobs_T)
    assert gradient_T.tolist() == pytest.approx([-2.0 + 0.1 * 0.5, 1.0 - 0.1])


def test_both_spellings_of_the_clip_band_mean_the_same():
    spelled = {"clip_low_threshold": 0.75, "clip_high_threshold": 1.25}
    for key in ("epsilon", "clip_ratio"):
        assert LossConfig.parse({key: 0.25}) == LossConfig.parse(spelled)
    assert LossConfig.parse(LossConfig.parse(spelled).to_numbers()) == LossConfig.parse(spelled)
    for wrong in (
        {"epsilon": 0.2, "clip_low_threshold": 0.9},
        {"epsilon": 1.5},
        {"clip_low_threshold": 1.3},
        {"clip_high_threshold": math.nan},
        {"beta": "much"},
        {"clip": 0.2},
    ):
        with pytest.raises(ConfigError, match="loss_fn_config"):
            LossConfig.parse(wrong)  # pyright: ignore[reportArgumentType]


def test_whatever_holds_numbers_becomes_tensor_data():
    expected = datum().loss_fn_inputs
    ids, weights = expected["target_tokens"].tolist(), expected["weights"].tolist()
    for given in (np.array(ids), torch.tensor(ids), tuple(ids)):
        made = mint.Datum(mint.ModelInput(ids), {"target_tokens": given, "weights": weights})
        assert made.loss_fn_inputs["target_tokens"].tolist() == ids
        assert made.loss_fn_inputs["target_tokens"].dtype == "int64"
    assert made.loss_fn_inputs["weights"].dtype == "float32"
    matrix = mint.TensorData([1.0, 2.0, 3.0, 4.0], "float32", [2, 2])
    assert matrix.tolist() == matrix.to_numpy().tolist() == [[1.0, 2.0], [3.0, 4.0]]
    assert mint.TensorData.from_torch(matrix.to_torch()) == matrix
    chunk = mint.EncodedTextChunk([4, 5])
    assert mint.ModelInput(chunks=[chunk]).append_int(6).to_ints() == [4, 5, 6]
    assert mint.ModelInput.empty().append(chunk).chunks[0].length == chunk.length
    for wrong in ([1.5] * 3, ["a"] * 3, 5):
        with pytest.raises(BadDataError, match="'target_tokens'"):
            mint.Datum(mint.ModelInput([1, 2, 3]), {"target_tokens": wrong})  # pyright: ignore[reportArgumentType]


def test_several_samples_read_their_prompt_once(settings, tiny_llama, monkeypatch):
    client = create(settings, tiny_llama)
    sampler = client.save_weights_and_get_sampling_client()
    model, seen = client._policy.model, list[int]()

    def count(_: Any, __: Any, given: dict[str, Any]) -> None:
        seen.extend([given["input_ids"].numel()] if "input_ids" in given else [])

    handle = model.register_forward_pre_hook(count, with_kwargs=True)
    prompt = mint.ModelInput.from_ints(range(20, 60))
    for stop in (None, "never said", [9999]):
        seen.clear()
        params = mint.SamplingParams(max_tokens=2, seed=1, stop=stop)
        response = sampler.sample(prompt, 3, params).result()
        assert sum(seen) <= 40 + 2 * 3
        assert [len(sequence.tokens) for sequence in response.sequences] == [2, 2, 2]
        for sequence in response.sequences:
            whole = mint.ModelInput.from_ints(prompt.to_ints() + sequence.tokens)
            scores = sampler.compute_logprobs(whole).result()
            assert sequence.logprobs == pytest.approx(scores[40:], abs=1e-4)
    handle.remove()
    for wrong in ([], [4000]):
        with pytest.raises(BadDataError, match="prompt"):
            sampler.sample(mint.ModelInput(wrong), 1, params).result()


def test_a_client_is_made_from_a_saved_state_alone(settings, tiny_llama):
    client = create(settings, tiny_llama)
    client.forward_backward([datum()], "importance_sampling").result()
    client.optim_step(ADAM).result()
    path = client.save_state("kept", ttl_seconds=3600, overwrite=True).result().path
    service = mint.ServiceClient(device="cpu", settings=settings)
    alike = service.create_training_client_from_state_with_optimizer(path)
    assert alike.get_info().lora_rank == client.get_info().lora_rank == 4
    assert alike.get_info().model_id != client.get_info().model_id
    for one in (client, alike):
        one.forward_backward([datum()], "importance_sampling").result()
        one.optim_step(ADAM).result()
    found, expected = (one.forward([datum()], "ppo").result() for one in (alike, client))
    assert found == expected
    names = [one.model_name for one in service.get_server_capabilities().supported_models]
    assert "smollm2-135m" in names
    with pytest.raises(EveryTurnError, match=r"state\.json"):
        service.create_training_client_from_state("nothing")


PAIRS = [
    (cls, name.removesuffix("_async"))
    for cls in (mint.ServiceClient, mint.TrainingClient, mint.SamplingClient)
    for name in vars(cls)
    if name.endswith("_async")
]


def test_each_async_twin_takes_what_the_plain_call_takes_and_the_page_lists_both():
    page = (DOCS / "client.md").read_text("utf-8")
    listed = dict(re.findall(r"^\| `(\w+\.\w+)` \| `([^`]*)` \|", page, re.MULTILINE))
    for cls, name in PAIRS:
        plain, twin = (inspect.signature(vars(cls)[n]) for n in (name, f"{name}_async"))
        assert plain.parameters == twin.parameters, name
        defaults = ", ".join(
            str(one.replace(annotation=one.empty))
            for one in plain.parameters.values()
            if one.name != "self" and one.kind is one.POSITIONAL_OR_KEYWORD
        )
        assert listed.pop(f"{cls.__name__}.{name}") == f"({defaults})"
    assert {key.split(".")[1] for key in listed} == {"get_tokenizer"}
