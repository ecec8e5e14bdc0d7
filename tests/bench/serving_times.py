"""The chat endpoint and plain `generate`, in turn, so that drift hits both alike."""

import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import torch
from openai import OpenAI
from transformers import AutoModelForCausalLM, PreTrainedModel

from db.settings import Settings
from tests.bench.children import ROOT
from tests.bench.serving import STREAMS, ChatTurn, ServingResults
from tests.bench.timing import load_client, seconds
from trainer.catalog import model_folder
from trainer.compute_environment import COMPUTE_ENVIRONMENT
from trainer.config import EMBEDDED_MODEL

ROUNDS = 3
REPLY_TOKENS = 48
ADAPTER = "fresh"
OPENING = "Write a long story about a lighthouse keeper and the sea."
LATER = (
    "What happened on the morning after that, and who saw it?",
    "Tell me more about the keeper's sister and why she left the island.",
    "Describe the storm as if you had been in the lamp room yourself.",
    "And the ships? Which of them came home, and which did not?",
    "How did the village celebrate when the light was lit again?",
)


@dataclass(frozen=True, slots=True)
class _Reply:
    """One answer of the endpoint as a client sees it."""

    text: str
    tokens: int
    prompt_tokens: int
    cached_tokens: int
    first_token_s: float


def serving_times(settings: Settings) -> dict[str, Any]:
    """Measure and return what `ServingResults` holds."""
    plain = AutoModelForCausalLM.from_pretrained(
        model_folder(settings, EMBEDDED_MODEL), dtype=torch.float32
    )
    with _server(settings) as client:
        prompt = _prompt_ids(client)
        _generate(plain, prompt)
        _ask(client, "base", 0)
        _ask(client, ADAPTER, 0)
        rounds = [_round(client, plain, prompt, number) for number in range(1, ROUNDS + 1)]
        turns = _long_chat(client)
    generate, one, adapter, many, first = map(list, zip(*rounds, strict=True))
    results = ServingResults(
        first_token_s=max(first),
        generate_rate=statistics.median(generate),
        one_rate=statistics.median(one),
        many_rate=statistics.median(many),
        one_of_generate=_median_ratio(one, generate),
        adapter_of_generate=_median_ratio(adapter, generate),
        many_of_one=_median_ratio(many, one),
        turns=turns,
    )
    return asdict(results)


def _median_ratio(above: list[float], below: list[float]) -> float:
    return statistics.median(a / b for a, b in zip(above, below, strict=True))


def _round(
    client: OpenAI, plain: PreTrainedModel, prompt: list[int], number: int
) -> tuple[float, float, float, float, float]:
    """Return the rates of generate, one stream, one adapter's stream, many, and the first token."""
    replies: list[_Reply] = []
    generate_s = seconds(lambda: _generate(plain, prompt))
    one_s = seconds(lambda: replies.append(_ask(client, "base", number)))
    adapter_s = seconds(lambda: replies.append(_ask(client, ADAPTER, number)))
    with ThreadPoolExecutor(STREAMS) as pool:
        many: list[_Reply] = []
        many_s = seconds(
            lambda: many.extend(pool.map(lambda n: _ask(client, "base", number, n), range(STREAMS)))
        )
    return (
        REPLY_TOKENS / generate_s,
        replies[0].tokens / one_s,
        replies[1].tokens / adapter_s,
        sum(reply.tokens for reply in many) / many_s,
        replies[0].first_token_s,
    )


@torch.no_grad()
def _generate(plain: PreTrainedModel, prompt: list[int]) -> None:
    plain.generate(  # pyright: ignore[reportCallIssue]
        torch.tensor([prompt]),
        do_sample=True,
        top_k=0,
        min_new_tokens=REPLY_TOKENS,
        max_new_tokens=REPLY_TOKENS,
        pad_token_id=0,
    )


def _ask(client: OpenAI, model: str, number: int, stream: int = 0) -> _Reply:
    """Ask for a story of its own kind, so that nothing but the system prompt is known before."""
    message = f"({number}.{stream} {model}) {OPENING}"
    return _answer(client, model, [{"role": "user", "content": message}], seed=number)


def _answer(client: OpenAI, model: str, messages: list[Any], **sampling: Any) -> _Reply:
    started = time.perf_counter()
    text, first_token_s, usage = "", 0.0, None
    for chunk in client.chat.completions.create(
        model=model,
        messages=messages,
        max_tokens=REPLY_TOKENS,
        stream=True,
        stream_options={"include_usage": True},
        **sampling,
    ):
        first_token_s = first_token_s or time.perf_counter() - started
        text += "".join(choice.delta.content or "" for choice in chunk.choices)
        usage = chunk.usage or usage
    assert usage is not None and usage.prompt_tokens_details is not None  # asked for
    return _Reply(
        text=text,
        tokens=usage.completion_tokens,
        prompt_tokens=usage.prompt_tokens,
        cached_tokens=usage.prompt_tokens_details.cached_tokens or 0,
        first_token_s=first_token_s,
    )


def _long_chat(client: OpenAI) -> list[ChatTurn]:
    messages: list[Any] = []
    turns: list[ChatTurn] = []
    seen = 0
    for question in (f"(chat) {OPENING}", *LATER):
        messages.append({"role": "user", "content": question})
        reply = _answer(client, "base", messages, temperature=0)
        messages.append({"role": "assistant", "content": reply.text})
        turns.append(
            ChatTurn(
                prompt_tokens=reply.prompt_tokens,
                new_tokens=reply.prompt_tokens - seen,
                computed_tokens=reply.prompt_tokens - reply.cached_tokens,
                first_token_s=reply.first_token_s,
            )
        )
        seen = reply.prompt_tokens + reply.tokens - 1  # the last token was said, not read
    return turns


def _prompt_ids(client: OpenAI) -> list[int]:
    answer = client.chat.completions.create(
        model="base",
        messages=[{"role": "user", "content": f"(0.0 base) {OPENING}"}],
        max_tokens=1,
        extra_body={"return_token_ids": True},
    )
    assert answer.model_extra is not None  # asked for
    return answer.model_extra["prompt_token_ids"]


@contextmanager
def _server(settings: Settings) -> Iterator[OpenAI]:
    """Start the endpoint as a person would, in a home of its own, with a fresh adapter."""
    with tempfile.TemporaryDirectory() as scratch:
        home = Path(scratch) / "home"
        home.mkdir()
        (home / "models").symlink_to(settings.models_dir)
        adapter = str(Path(scratch) / "adapter")
        load_client(settings).save_weights_for_sampler(adapter).result()
        arguments = ["serve", "--port", "0", "--model", EMBEDDED_MODEL, "--device", "cpu"]
        process = subprocess.Popen(
            [sys.executable, "-m", "trainer", *arguments, "--adapter", f"{ADAPTER}={adapter}"],
            cwd=ROOT,
            env={**COMPUTE_ENVIRONMENT, **os.environ, "EVERYTURN_HOME": str(home)},
            stdin=subprocess.DEVNULL,
        )
        try:
            file = home / "serve.json"
            while not file.exists():
                if process.poll() is not None:
                    raise RuntimeError("the server did not come up")
                time.sleep(0.1)
            about = json.loads(file.read_text(encoding="utf-8"))
            yield OpenAI(base_url=f"{about['url']}/v1", api_key=about["token"], timeout=600)
        finally:
            process.terminate()
            process.wait(timeout=60)
