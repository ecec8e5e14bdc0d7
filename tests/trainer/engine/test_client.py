"""The in-process training API on a tiny model: what it promises to loops written for it."""

import asyncio
import json
from pathlib import Path
from typing import Any

import pytest
import torch
from peft import PeftModel
from safetensors.torch import load_file
from transformers import AutoModelForCausalLM

from db.settings import Settings
from trainer.engine.client import ServiceClient, TrainingClient
from trainer.engine.types import AdamParams, Datum, ModelInput, SamplingParams
from trainer.errors import (
    BadDataError,
    CheckpointError,
    ConfigError,
    ModelError,
    NotFiniteError,
    OutOfMemoryError,
)

ADAM = AdamParams(learning_rate=1e-2)
PROMPT = (7, 30, 41, 52, 12)


def turn(
    reply: tuple[int, ...] = (60, 61, 62),
    *,
    prompt: tuple[int, ...] = PROMPT,
    advantage: float = 1.0,
) -> Datum:
    ids = prompt + reply
    context = [0.0] * (len(prompt) - 1)
    inputs: dict[str, Any] = {
        "target_tokens": list(ids[1:]),
        "weights": context + [1.0] * len(reply),
        "advantages": context + [advantage] * len(reply),
        "logprobs": context + [-6.0] * len(reply),
    }
    return Datum(ModelInput.from_ints(ids[:-1]), inputs)


TWO_TURNS = (turn(), turn((70, 71), advantage=-0.5))


def create(settings: Settings, folder: Path, **changes: Any) -> TrainingClient:
    service = ServiceClient(device="cpu", settings=settings)
    arguments = {"rank": 4, "seed": 3, "train_unembed": False, "alpha": 8.0} | changes
    return service.create_lora_training_client(str(folder), **arguments)


@pytest.fixture
def client(settings: Settings, tiny_llama: Path) -> TrainingClient:
    return create(settings, tiny_llama)


def train(client: TrainingClient, steps: int = 1) -> list[float]:
    """Take some steps on two turns and return the loss before each."""
    found: list[float] = []
    for _ in range(steps):
        output = client.forward_backward(TWO_TURNS, "importance_sampling").result()
        found.append(output.metrics["loss:sum"])
        client.optim_step(ADAM).result()
    return found


def logprobs(client: TrainingClient, datum: Datum) -> list[float]:
    output = client.forward([datum], "cross_entropy").result()
    return output.loss_fn_outputs[0]["logprobs"].tolist()


def grad_norm(client: TrainingClient, params: AdamParams = ADAM) -> float:
    """Take a step and return the norm of the gradient that it used."""
    return client.optim_step(params).result().metrics["grad_norm:last"]


def plain_logprobs(model: Any, datum: Datum) -> list[float]:
    """The logprob of each target, by plain transformers."""
    ids = torch.tensor([datum.model_input.to_ints()])
    targets = datum.loss_fn_inputs["target_tokens"].tolist()
    with torch.no_grad():
        scores_TV = model(ids).logits[0].log_softmax(-1)
    return [scores_TV[position, target].item() for position, target in enumerate(targets)]


def test_training_raises_what_is_rewarded_and_lowers_what_is_not(client: TrainingClient):
    good, bad = TWO_TURNS
    before = sum(logprobs(client, good)), sum(logprobs(client, bad))
    train(client, steps=5)
    assert sum(logprobs(client, good)) > before[0] + 0.1
    assert sum(logprobs(client, bad)) < before[1] - 0.01


def test_gradients_accumulate_over_passes_and_are_used_once(settings, tiny_llama):
    together, apart = create(settings, tiny_llama), create(settings, tiny_llama)
    together.forward_backward(TWO_TURNS, "ppo").result()
    for datum in TWO_TURNS:
        apart.forward_backward([datum], "ppo").result()
    expected = grad_norm(together)
    assert expected > 0
    assert grad_norm(apart) == pytest.approx(expected, rel=1e-5)
    assert grad_norm(apart) == 0.0


def test_forward_leaves_no_gradient_behind(client: TrainingClient):
    client.forward([turn()], "ppo").result()
    assert grad_norm(client) == 0.0


def test_clipping_bounds_the_step_and_reports_the_norm_before(settings, tiny_llama):
    moved: list[float] = []
    for limit in (0.0, 1e-3):
        client = create(settings, tiny_llama)
        before = sum(logprobs(client, turn()))
        client.forward_backward([turn()], "importance_sampling").result()
        # A large eps lets the gradient's size show in Adam's step.
        params = AdamParams(learning_rate=1e-1, eps=1.0, grad_clip_norm=limit)
        assert grad_norm(client, params) > 1e-2
        moved.append(abs(sum(logprobs(client, turn())) - before))
    assert moved[1] < moved[0] / 5


def test_metrics_have_the_names_and_values_of_the_remote_api(client: TrainingClient):
    output = client.forward_backward([turn(), turn((70,), advantage=0.0)], "ppo").result()
    assert set(output.metrics) == {
        "loss:mean",
        "loss:sum",
        "ratio:mean",
        "clipfrac:mean",
        "num_tokens:sum",
    }
    assert output.metrics["num_tokens:sum"] == 4
    assert output.metrics["loss:sum"] == pytest.approx(4 * output.metrics["loss:mean"])


def test_logprobs_are_those_of_the_plain_model_and_0_on_the_context(client, tiny_llama):
    model = AutoModelForCausalLM.from_pretrained(tiny_llama).eval()
    expected = plain_logprobs(model, turn())
    found = logprobs(client, turn())
    assert found[:4] == [0.0] * 4
    assert found[4:] == pytest.approx(expected[4:], abs=1e-5)


def test_shared_prefixes_are_computed_once(client: TrainingClient):
    longer = turn(prompt=(*PROMPT, 60, 61, 62, 9))
    client.forward([turn(), longer, turn()], "ppo").result()
    assert client.computed_tokens == longer.model_input.length


def test_a_small_budget_gives_the_same_gradient_in_several_passes(settings, tiny_llama):
    data = [turn(), turn((70, 71)), turn((80,), prompt=(3, 4, 5, 6)), turn((81, 82, 83))]
    norms: list[float] = []
    for budget in (2048, 8):
        client = create(settings, tiny_llama, token_budget=budget)
        client.forward_backward(data, "ppo").result()
        norms.append(grad_norm(client))
    assert norms[0] == pytest.approx(norms[1], rel=1e-5)


def test_a_restored_state_goes_on_bit_by_bit(settings, tiny_llama, tmp_path):
    straight = create(settings, tiny_llama)
    train(straight, steps=2)
    straight.save_state(str(tmp_path / "state")).result()
    drawn = torch.rand(3)
    resumed = create(settings, tiny_llama, seed=99)
    assert logprobs(resumed, turn()) != logprobs(straight, turn())
    resumed.load_state_with_optimizer(str(tmp_path / "state")).result()
    assert torch.rand(3).equal(drawn)
    assert train(resumed, steps=3) == train(straight, steps=3)
    assert logprobs(resumed, turn()) == logprobs(straight, turn())


def test_loading_without_the_optimiser_starts_it_afresh(settings, tiny_llama, tmp_path):
    first = create(settings, tiny_llama)
    train(first, steps=3)
    first.save_state(str(tmp_path / "state")).result()
    second = create(settings, tiny_llama)
    second.load_state(str(tmp_path / "state")).result()
    assert logprobs(second, turn()) == logprobs(first, turn())
    assert train(second, steps=2) != train(first, steps=2)


def test_a_state_of_another_adapter_is_refused_and_changes_nothing(settings, tiny_llama, tmp_path):
    create(settings, tiny_llama, rank=2).save_state(str(tmp_path / "state")).result()
    client = create(settings, tiny_llama)
    before = logprobs(client, turn())
    with pytest.raises(CheckpointError, match="rank 2, not 4"):
        client.load_state_with_optimizer(str(tmp_path / "state")).result()
    with pytest.raises(CheckpointError, match=r"state\.json"):
        client.load_state(str(tmp_path / "nothing")).result()
    assert logprobs(client, turn()) == before


def test_the_saved_adapter_is_plain_peft_and_answers_alike(client, tiny_llama, tmp_path):
    train(client, steps=3)
    folder = Path(client.save_weights_for_sampler(str(tmp_path / "adapter")).result().path)
    files = {file.name for file in folder.iterdir()}
    assert files == {"adapter_config.json", "adapter_model.safetensors"}
    base = AutoModelForCausalLM.from_pretrained(tiny_llama)
    loaded = PeftModel.from_pretrained(base, str(folder)).eval()
    expected = plain_logprobs(loaded, turn())
    assert logprobs(client, turn())[4:] == pytest.approx(expected[4:], abs=1e-5)


def test_saving_leaves_training_as_it_was(settings, tiny_llama, tmp_path):
    saving, other = create(settings, tiny_llama), create(settings, tiny_llama)
    for client in (saving, other):
        train(client)
        client.forward_backward([turn()], "importance_sampling").result()
    saving.save_weights_for_sampler(str(tmp_path / "adapter")).result()
    for client in (saving, other):
        client.optim_step(ADAM).result()
    assert logprobs(saving, turn()) == logprobs(other, turn())


def test_only_the_blocks_linear_layers_are_trained(client, tmp_path):
    folder = Path(client.save_weights_for_sampler(str(tmp_path / "adapter")).result().path)
    config = json.loads((folder / "adapter_config.json").read_text())
    attention, feed_forward = "k_proj o_proj q_proj v_proj", "down_proj gate_proj up_proj"
    assert config["target_modules"] == sorted(f"{attention} {feed_forward}".split())
    assert (config["r"], config["lora_alpha"], config["lora_dropout"]) == (4, 8.0, 0.0)
    assert all(".layers." in key for key in load_file(folder / "adapter_model.safetensors"))


def test_parts_of_the_blocks_can_be_left_out(settings, tiny_llama, tmp_path):
    client = create(settings, tiny_llama, train_mlp=False, train_unembed=True)
    folder = Path(client.save_weights_for_sampler(str(tmp_path / "adapter")).result().path)
    keys = load_file(folder / "adapter_model.safetensors")
    assert keys
    assert all("self_attn" in key for key in keys)
    with pytest.raises(ConfigError, match="no layer"):
        create(settings, tiny_llama, train_mlp=False, train_attn=False)


def test_the_seed_fixes_the_adapter_and_a_fresh_one_changes_nothing(settings, tiny_llama):
    one, alike = create(settings, tiny_llama), create(settings, tiny_llama)
    other = create(settings, tiny_llama, seed=4)
    assert logprobs(one, turn()) == logprobs(other, turn())
    losses = train(one, steps=3)
    assert losses == train(alike, steps=3)
    assert losses != train(other, steps=3)


def test_a_datum_that_is_not_finite_is_named_and_spoils_nothing(client: TrainingClient):
    with pytest.raises(NotFiniteError) as caught:
        client.forward_backward([turn(), turn(advantage=float("nan"))], "ppo").result()
    assert caught.value.datum == 1
    assert grad_norm(client) == 0.0
    assert torch.tensor(logprobs(client, turn())).isfinite().all()


def test_an_adapter_that_computes_nan_is_never_saved_as_a_success(client, tmp_path):
    client.forward_backward([turn()], "importance_sampling").result()
    client.optim_step(AdamParams(learning_rate=1e30)).result()
    with pytest.raises(NotFiniteError, match="adapter"):
        client.save_weights_for_sampler(str(tmp_path / "adapter")).result()
    assert list(tmp_path.glob("*adapter*")) == []


def test_running_out_of_memory_splits_the_pass_before_it_fails(settings, tiny_llama, monkeypatch):
    data = [turn(), turn((70, 71)), turn((80, 81), prompt=(3, 4, 5, 6))]
    reference, tight = create(settings, tiny_llama), create(settings, tiny_llama)
    compute = tight._policy.logprobs
    refused: list[int] = []

    def cramped(questions: Any) -> Any:
        tokens = sum(len(question.tokens) for question in questions)
        if tokens > 8:
            refused.append(tokens)
            raise RuntimeError("[enforce fail] DefaultCPUAllocator: can't allocate memory")
        return compute(questions)

    monkeypatch.setattr(tight._policy, "logprobs", cramped)
    reference.forward_backward(data, "ppo").result()
    tight.forward_backward(data, "ppo").result()
    assert refused
    assert grad_norm(tight) == pytest.approx(grad_norm(reference), rel=1e-5)

    with pytest.raises(OutOfMemoryError, match="token_budget"):
        tight.forward_backward([turn(tuple(range(60, 90)))], "ppo").result()


def test_an_error_waits_for_result_and_says_what_is_wrong(client: TrainingClient):
    foreign = client.forward_backward([turn((4000,))], "ppo")
    unknown = client.forward_backward([turn()], "dpo")
    with pytest.raises(BadDataError, match="vocabulary"):
        foreign.result()
    with pytest.raises(ConfigError, match="'dpo'"):
        unknown.result()


def test_the_async_twins_do_the_same(settings, tiny_llama):
    async def run() -> float:
        service = ServiceClient(device="cpu", settings=settings)
        client = await service.create_lora_training_client_async(str(tiny_llama), rank=4, seed=3)
        future = await client.forward_backward_async([turn()], loss_fn="ppo")
        assert await future == await future.result_async() == future.result()
        step = await client.optim_step_async(ADAM)
        return (await step.result_async()).metrics["grad_norm:last"]

    client = create(settings, tiny_llama, alpha=32.0)
    client.forward_backward([turn()], "ppo").result()
    assert asyncio.run(run()) == grad_norm(client)


def test_a_sampling_client_keeps_the_weights_it_was_made_with(client: TrainingClient):
    prompt = ModelInput.from_ints(PROMPT)
    greedy = SamplingParams(max_tokens=8, temperature=0.0)
    before = client.save_weights_and_get_sampling_client()
    first = before.sample(prompt, 1, greedy).result()
    train(client, steps=8)
    trained = logprobs(client, turn())
    assert before.sample(prompt, 1, greedy).result() == first
    after = client.save_weights_and_get_sampling_client().sample(prompt, 1, greedy).result()
    assert after != first
    assert logprobs(client, turn()) == trained


def test_sampled_logprobs_are_those_of_the_untempered_policy(client: TrainingClient):
    sampler = client.save_weights_and_get_sampling_client()
    params = SamplingParams(max_tokens=6, temperature=0.5, top_k=20, seed=5)
    prompt = ModelInput.from_ints(PROMPT)
    response = sampler.sample(prompt, 3, params).result()
    assert response == sampler.sample(prompt, 3, params).result()
    assert len({tuple(sequence.tokens) for sequence in response.sequences}) > 1
    for sequence in response.sequences:
        whole = ModelInput.from_ints([*PROMPT, *sequence.tokens])
        scores = sampler.compute_logprobs(whole).result()
        assert scores[0] is None
        assert list(sequence.logprobs) == pytest.approx(scores[len(PROMPT) :], abs=1e-4)


def test_a_reply_ends_at_the_end_token_and_keeps_it(client: TrainingClient):
    end = client.get_tokenizer().eos_token_id
    for _ in range(12):
        client.forward_backward([turn((60, end))], "cross_entropy").result()
        client.optim_step(AdamParams(learning_rate=3e-2)).result()
    sampler = client.save_weights_and_get_sampling_client()
    params = SamplingParams(max_tokens=5, temperature=0.0)
    (sequence,) = sampler.sample(ModelInput.from_ints(PROMPT), 1, params).result().sequences
    assert sequence.tokens == [60, end]
    assert sequence.stop_reason == "stop"
    assert len(sequence.logprobs) == 2


def test_a_saved_adapter_can_be_sampled_from(settings, client):
    train(client, steps=3)
    path = client.save_weights_for_sampler("tried").result().path
    assert Path(path) == settings.home / "adapters" / "tried"
    service = ServiceClient(device="cpu", settings=settings)
    sampler = service.create_sampling_client(model_path=path)
    scores = sampler.compute_logprobs(ModelInput.from_ints([*PROMPT, 60, 61, 62])).result()
    assert scores[-3:] == pytest.approx(logprobs(client, turn())[-3:], abs=1e-5)


def test_unknown_models_devices_and_addresses_are_refused_in_words(settings):
    service = ServiceClient(device="cpu", settings=settings)
    with pytest.raises(ModelError, match="Did you mean 'smollm2-135m'"):
        service.create_lora_training_client("smollm-135m")
    with pytest.raises(ConfigError, match="'tpu'"):
        ServiceClient(device="tpu", settings=settings)
    with pytest.raises(ConfigError, match="locally"):
        ServiceClient(base_url="https://example.org", settings=settings)


def test_a_model_with_sliding_windows_goes_turn_by_turn_and_says_so(settings, tiny_sliding):
    client = create(settings, tiny_sliding)
    assert "sliding_attention" in client.path_reason
    client.forward([turn(), turn()], "ppo").result()
    assert client.computed_tokens == 2 * turn().model_input.length
