"""The endpoint through the official openai client: the same text, tokens and numbers as training."""

import concurrent.futures
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx
import openai
import pytest
import torch
from openai import OpenAI
from openai.types.chat import ChatCompletion
from transformers import AutoModelForCausalLM

from tests.trainer.serving.conftest import TOKEN, Endpoint
from trainer.engine.types import ModelInput
from trainer.serving import scheduler
from trainer.serving.gate import MOST_BODY_BYTES

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


def post(endpoint: Endpoint, content: Any, *, token: str = TOKEN) -> Any:
    """Send bytes as they are."""
    return httpx.post(
        f"{endpoint.url}/v1/chat/completions",
        content=content,
        headers={"Authorization": f"Bearer {token}", "Content-Type": "application/json"},
        timeout=30,
    )


def test_a_body_that_nobody_may_send_or_that_is_too_large_is_not_read(endpoint: Endpoint) -> None:
    def chunks(count: int) -> Iterator[bytes]:
        for _ in range(count):
            sent.append(1)
            yield b" " * 2**20

    sent: list[int] = []
    assert post(endpoint, b"{", token="another").status_code == 401
    assert post(endpoint, b" " * (MOST_BODY_BYTES + 1)).status_code == 413
    answer = post(endpoint, chunks(MOST_BODY_BYTES // 2**20 + 1))
    assert (answer.status_code, answer.json()["error"]["code"]) == (413, "http_413")


@pytest.mark.parametrize(
    ("content", "told"),
    [
        (b"{", "not JSON"),
        (b"[" * 100_000, "cannot be read as JSON"),
        (b'{"n": ' + b"9" * 5_000 + b"}", "cannot be read as JSON"),
        (b"[]", "body"),
        (
            b'{"model": "base", "messages": [{"role": "user"}], "' + b"x" * 9_999 + b'": 1}',
            "does not offer",
        ),
        (
            b'{"model": "base", "messages": [{"role": "user", "content": [{"type": "image_url"}]}]}',
            "messages.0.content: it must be text",
        ),
    ],
)
def test_a_body_that_is_no_request_is_told_in_the_form_that_clients_read(
    endpoint: Endpoint, content: bytes, told: str
) -> None:
    answer = post(endpoint, content)
    error = answer.json()["error"]
    assert (answer.status_code, error["type"]) == (400, "invalid_request_error")
    assert told in error["message"]
    assert len(error["message"]) < 300


@pytest.mark.parametrize(
    ("method", "path"), [("GET", "/v1/nothing"), ("GET", "/v1/chat/completions")]
)
def test_a_path_or_method_that_there_is_not_is_told_in_that_form(
    endpoint: Endpoint, method: str, path: str
) -> None:
    headers = {"Authorization": f"Bearer {TOKEN}"}
    answer = httpx.request(method, f"{endpoint.url}{path}", headers=headers)
    assert answer.status_code in (404, 405)
    assert "/v1/chat/completions" in answer.json()["error"]["message"]


def test_text_that_nothing_can_write_is_read_as_a_sign_for_it(endpoint: Endpoint) -> None:
    def ids(text: str) -> list[int]:
        message = {"role": "user", "content": text}
        body = {"model": "base", "messages": [message], "max_tokens": 1, "return_token_ids": True}
        answer = post(endpoint, json.dumps(body).encode())
        assert answer.status_code == 200
        return answer.json()["prompt_token_ids"]

    assert ids("a \ud800 b") == ids("a \ufffd b")


def test_a_prompt_that_is_far_too_long_is_refused_before_it_is_counted(client: OpenAI) -> None:
    messages: Any = [{"role": "user", "content": "far too long " * 400_000}]
    with pytest.raises(openai.BadRequestError, match=r"more than \d+ tokens") as refused:
        ask(client, messages=messages)
    assert refused.value.code == "context_length_exceeded"


def test_more_choices_than_memory_holds_are_refused_and_the_server_goes_on(
    endpoint: Endpoint, client: OpenAI, monkeypatch: pytest.MonkeyPatch
) -> None:
    with monkeypatch.context() as patch:
        patch.setattr(endpoint.model.scheduler, "_limit_bytes", 1000.0)
        with pytest.raises(openai.InternalServerError, match="fewer choices"):
            ask(client, n=4)
    assert len(ask(client, n=4, max_tokens=1).choices) == 4
    endpoint.wait_until_quiet()


def test_what_nobody_expected_fails_its_own_job_alone(
    endpoint: Endpoint, client: OpenAI, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(*_: object, **__: object) -> Any:
        raise RuntimeError("a bug")

    for place, name in ((endpoint.model.shelf, "answerer"), (scheduler, "choose")):
        with monkeypatch.context() as patch:
            patch.setattr(place, name, fail)
            with pytest.raises(openai.InternalServerError, match="a bug"):
                ask(client)
        assert ask(client).choices[0].finish_reason
    endpoint.wait_until_quiet()


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
