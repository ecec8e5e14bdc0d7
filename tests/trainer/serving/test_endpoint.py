"""The endpoint through the official openai client: the same text, tokens and numbers as training."""

import concurrent.futures
from pathlib import Path
from typing import Any

import openai
import pytest
import torch
from openai import OpenAI
from openai.types.chat import ChatCompletion
from transformers import AutoModelForCausalLM

from tests.trainer.serving.conftest import Endpoint
from trainer.engine.types import ModelInput

QUESTION: list[Any] = [{"role": "user", "content": "What is the capital of France?"}]
EXACT: dict[str, Any] = {"logprobs": True, "extra_body": {"return_token_ids": True}}


@pytest.fixture(scope="module")
def client(endpoint: Endpoint) -> OpenAI:
    return endpoint.client()


def ask(client: OpenAI, model: str = "base", messages: Any = QUESTION, **more: Any) -> Any:
    options: dict[str, Any] = {"max_tokens": 12, "temperature": 0} | more
    return client.chat.completions.create(model=model, messages=messages, **options)


def extra(told: Any) -> dict[str, Any]:
    """The fields beside those of the API."""
    assert told.model_extra is not None
    return told.model_extra


def ids_of(answer: ChatCompletion, choice: int = 0) -> list[int]:
    return extra(answer.choices[choice])["token_ids"]


def logprobs_of(answer: ChatCompletion, choice: int = 0) -> list[float]:
    logprobs = answer.choices[choice].logprobs
    assert logprobs is not None and logprobs.content is not None
    return [entry.logprob for entry in logprobs.content]


def plain_logprobs(folder: Path, prompt: list[int], reply: list[int]) -> list[float]:
    """What transformers alone says, without any adapter in the process."""
    model = AutoModelForCausalLM.from_pretrained(folder)
    with torch.no_grad():
        logits = model(torch.tensor([prompt + reply])).logits[0, len(prompt) - 1 : -1]
    return logits.log_softmax(-1).gather(1, torch.tensor(reply)[:, None])[:, 0].tolist()


def test_models_lists_base_and_adapters_of_finished_runs(client: OpenAI) -> None:
    assert [model.id for model in client.models.list().data][:2] == ["base", "run-7"]


def test_the_base_says_what_transformers_says(client: OpenAI, tiny_llama: Path) -> None:
    answer = ask(client, **EXACT)
    prompt = extra(answer)["prompt_token_ids"]
    model = AutoModelForCausalLM.from_pretrained(tiny_llama)
    expected = model.generate(torch.tensor([prompt]), max_new_tokens=12, do_sample=False)
    assert ids_of(answer) == expected[0, len(prompt) :].tolist()
    assert answer.usage.prompt_tokens == len(prompt)
    assert answer.usage.completion_tokens == len(ids_of(answer))


def test_the_base_stays_the_base_beside_an_adapter_in_the_same_steps(
    client: OpenAI, tiny_llama: Path
) -> None:
    def one(name: str) -> ChatCompletion:
        return ask(client, name, temperature=1, seed=5, **EXACT)

    with concurrent.futures.ThreadPoolExecutor(6) as pool:
        answers = list(pool.map(one, ["base", "run-7"] * 3))
    for answer in answers[::2]:
        prompt, reply = extra(answer)["prompt_token_ids"], ids_of(answer)
        expected = plain_logprobs(tiny_llama, prompt, reply)
        assert logprobs_of(answer) == pytest.approx(expected, abs=1e-5)
    with_adapter = answers[1]
    prompt, reply = extra(with_adapter)["prompt_token_ids"], ids_of(with_adapter)
    difference = torch.tensor(logprobs_of(with_adapter)) - torch.tensor(
        plain_logprobs(tiny_llama, prompt, reply)
    )
    assert difference.abs().max() > 0.01


@pytest.mark.parametrize(
    "sampling",
    [
        {"temperature": 0},
        {"temperature": 0.6},
        {"temperature": 1},
        {"temperature": 1.7, "top_p": 0.9},
        {"temperature": 1, "extra_body": {"top_k": 5, "return_token_ids": True}},
    ],
)
def test_sampled_logprobs_are_the_trainers_whatever_the_temperature(
    endpoint: Endpoint, client: OpenAI, sampling: dict[str, Any]
) -> None:
    answer = ask(client, "run-7", **({"seed": 2} | EXACT | sampling))
    prompt, reply = extra(answer)["prompt_token_ids"], ids_of(answer)
    sampler = endpoint.trainer.save_weights_and_get_sampling_client()
    scores = sampler.compute_logprobs(ModelInput.from_ints(prompt + reply)).result()
    assert logprobs_of(answer) == pytest.approx(scores[len(prompt) :], abs=1e-4)


def test_a_stream_tells_the_same_as_a_whole_answer(client: OpenAI) -> None:
    sampling: dict[str, Any] = {"temperature": 1, "seed": 8, **EXACT}
    whole = ask(client, **sampling)
    text, ids, logprobs, reasons, usage = "", [], [], [], None
    for chunk in ask(client, stream=True, stream_options={"include_usage": True}, **sampling):
        usage = chunk.usage or usage
        for choice in chunk.choices:
            text += choice.delta.content or ""
            ids += extra(choice).get("token_ids", [])
            reasons.append(choice.finish_reason)
            if choice.logprobs is not None:
                logprobs += [entry.logprob for entry in choice.logprobs.content]
    assert text == whole.choices[0].message.content
    assert ids == ids_of(whole)
    assert logprobs == pytest.approx(logprobs_of(whole), abs=1e-5)
    assert [reason for reason in reasons if reason] == [whole.choices[0].finish_reason]
    assert usage.completion_tokens == whole.usage.completion_tokens


def test_several_choices_follow_from_one_seed(client: OpenAI) -> None:
    first = ask(client, n=4, temperature=1, seed=11, **EXACT)
    again = ask(client, n=4, temperature=1, seed=11, **EXACT)
    replies = [tuple(ids_of(first, choice)) for choice in range(4)]
    assert replies == [tuple(ids_of(again, choice)) for choice in range(4)]
    assert len(set(replies)) == 4
    other = ask(client, n=4, temperature=1, seed=12, **EXACT)
    assert replies != [tuple(ids_of(other, choice)) for choice in range(4)]


def test_requests_at_once_get_what_each_gets_alone(client: OpenAI) -> None:
    questions = [[{"role": "user", "content": f"Tell me about {n}." * (n + 1)}] for n in range(8)]
    names = ["base", "run-7"] * 4

    def one(number: int) -> list[int]:
        return ids_of(ask(client, names[number], questions[number], **EXACT))

    alone = [one(number) for number in range(8)]
    with concurrent.futures.ThreadPoolExecutor(8) as pool:
        assert list(pool.map(one, range(8))) == alone


def test_a_reply_ends_before_a_stop_string(client: OpenAI) -> None:
    whole: str = ask(client, temperature=1, seed=4, max_tokens=30).choices[0].message.content
    stop = whole[5:7]
    answer = ask(client, temperature=1, seed=4, max_tokens=30, stop=[stop, "never said"])
    assert answer.choices[0].message.content == whole[: whole.index(stop)]
    assert answer.choices[0].finish_reason == "stop"


def test_likeliest_tokens_come_with_their_logprobs(client: OpenAI) -> None:
    entry = ask(client, logprobs=True, top_logprobs=3).choices[0].logprobs.content[0]
    found = [other.logprob for other in entry.top_logprobs]
    assert len(found) == 3 and found == sorted(found, reverse=True)
    assert entry.top_logprobs[0].token == entry.token  # temperature 0


def test_a_turn_computes_only_what_is_new(endpoint: Endpoint, client: OpenAI) -> None:
    messages: list[Any] = [{"role": "user", "content": "Explain it at length, please. " * 20}]
    for turn in range(3):
        before = endpoint.model.scheduler.computed_tokens
        answer = ask(client, "run-7", messages, temperature=0, max_tokens=6)
        endpoint.wait_until_quiet()
        computed = endpoint.model.scheduler.computed_tokens - before
        cached = answer.usage.prompt_tokens_details.cached_tokens
        assert computed == answer.usage.prompt_tokens - cached + answer.usage.completion_tokens - 1
        if turn:
            assert computed < 80 < answer.usage.prompt_tokens
        reply = answer.choices[0].message.content
        messages += [{"role": "assistant", "content": reply}, {"role": "user", "content": "More?"}]


def test_what_one_adapter_computed_is_not_used_for_another(client: OpenAI) -> None:
    messages = [{"role": "user", "content": "Only for this test, said to both of them."}]
    ask(client, "run-7", messages)
    first = ask(client, "base", messages)
    assert first.usage.prompt_tokens_details.cached_tokens < 5  # at most the template's beginning
    again = ask(client, "base", messages)
    known = again.usage.prompt_tokens_details.cached_tokens
    assert known == again.usage.prompt_tokens - 1
    assert again.choices == first.choices


@pytest.mark.parametrize("stream", [True, False])
def test_a_prompt_over_the_context_limit_is_a_clear_400(client: OpenAI, stream: bool) -> None:
    messages = [{"role": "user", "content": "too long " * 2000}]
    with pytest.raises(openai.BadRequestError, match=r"context ends at \d+") as refused:
        ask(client, messages=messages, stream=stream)
    assert refused.value.code == "context_length_exceeded"


def test_a_reply_is_cut_where_the_context_ends(endpoint: Endpoint, client: OpenAI) -> None:
    words = "a b c d e f " * 80
    answer = ask(client, messages=[{"role": "user", "content": words}], max_tokens=5000)
    assert answer.usage.total_tokens <= endpoint.model.context_tokens


def test_tools_stand_in_the_prompt_as_the_chat_template_shows_them(
    endpoint: Endpoint, client: OpenAI, monkeypatch: pytest.MonkeyPatch
) -> None:
    tokenizer = endpoint.model.tokenizer
    shown = "{%- for tool in tools or [] -%}{{ tool.function.name + ';' }}{%- endfor -%}"
    monkeypatch.setattr(tokenizer, "chat_template", f"{shown}{tokenizer.chat_template}")
    tool = {"type": "function", "function": {"name": "order"}}
    without = extra(ask(client, **EXACT))["prompt_token_ids"]
    given = extra(ask(client, tools=[tool], tool_choice="auto", **EXACT))["prompt_token_ids"]
    assert given == [*tokenizer.encode("order;"), *without]


@pytest.mark.parametrize("name", ["run-8", "../../etc", "run-7/../run-7", "", "run-007", "x" * 999])
def test_a_name_that_nobody_has_is_404(client: OpenAI, name: str) -> None:
    with pytest.raises(openai.NotFoundError, match="no such model"):
        ask(client, name)


def test_a_wrong_token_is_401_and_says_nothing_else(endpoint: Endpoint) -> None:
    with pytest.raises(openai.AuthenticationError):
        endpoint.client("another").models.list()
    with pytest.raises(openai.AuthenticationError):
        ask(endpoint.client("another"))


@pytest.mark.parametrize(
    "more",
    [
        {"temperature": -1},
        {"top_p": 0},
        {"n": 0},
        {"max_tokens": 0},
        {"presence_penalty": 1},
        {"tools": ["f"]},
        {"tools": [], "tool_choice": "required"},
        {"top_logprobs": 3},
        {"messages": []},
        {"messages": [{"role": "wizard", "content": "a"}]},
        {"seed": "x"},
    ],
)
def test_what_cannot_be_done_is_refused_and_never_ignored(
    client: OpenAI, more: dict[str, Any]
) -> None:
    with pytest.raises(openai.BadRequestError):
        ask(client, **more)


@pytest.mark.parametrize("stream", [True, False])
def test_a_client_that_hangs_up_stops_generation(
    endpoint: Endpoint, stream: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    slow_down(endpoint, monkeypatch)
    impatient = endpoint.client().with_options(timeout=None if stream else 0.4)
    messages = [{"role": "user", "content": f"A story without an end, {stream}"}]
    options: dict[str, Any] = {"messages": messages, "max_tokens": 900, "temperature": 1, "seed": 1}
    if stream:
        answer = ask(impatient, stream=True, n=2, **options)
        next(iter(answer))
        assert endpoint.model.scheduler.active == 2
        answer.close()
    else:
        with pytest.raises(openai.APITimeoutError):
            ask(impatient, **options)
    endpoint.wait_until_quiet()


def slow_down(endpoint: Endpoint, monkeypatch: pytest.MonkeyPatch) -> None:
    """Let each step take as long as a real model's, and no reply end by itself."""
    import time  # noqa: PLC0415 - only here

    passes: Any = endpoint.model.scheduler._passes
    run = passes.run

    def slowly(pieces: Any) -> torch.Tensor:
        time.sleep(0.02)
        return run(pieces)

    monkeypatch.setattr(passes, "run", slowly)
    monkeypatch.setattr(endpoint.model.scheduler, "_stop_ids", frozenset())


def test_health_needs_no_token_and_names_the_device(endpoint: Endpoint) -> None:
    health = endpoint.client()._client.get(f"{endpoint.url}/health").json()
    assert (health["status"], health["device"]) == ("ok", "cpu")


def test_a_page_of_another_site_cannot_reach_it_by_a_name_of_its_own(endpoint: Endpoint) -> None:
    answer = endpoint.client()._client.get(
        f"{endpoint.url}/health", headers={"Host": "evil.example"}
    )
    assert answer.status_code == 400


def test_a_failing_step_is_told_and_the_server_goes_on(
    endpoint: Endpoint, client: OpenAI, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(pieces: Any) -> torch.Tensor:
        raise torch.OutOfMemoryError("no memory")

    with monkeypatch.context() as patch:
        patch.setattr(endpoint.model.scheduler._passes, "run", fail)
        with pytest.raises(openai.InternalServerError, match="memory"):
            ask(client)
    assert ask(client).choices[0].finish_reason
