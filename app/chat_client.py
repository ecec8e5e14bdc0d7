"""Asking the chat's server: one reply as a stream of tokens, with their ids and log-probabilities."""

import json
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import httpx2

from app.chat_tree import Ending, Reply, Sampling
from db.errors import EveryTurnError
from trainer.data.sampled import prompt_mark
from trainer.serving.address import Address

CONNECT_S = 10.0
SILENCE_S = 180.0
"""How long the server may say nothing: a long prompt is read, or others are served."""

GIVEN_UP = "device_given_up"
"""The endpoint's word for replies that end because a run, or somebody, needed the device."""


class LostError(EveryTurnError):
    """The server went away in the middle of a reply."""


class RefusedError(EveryTurnError):
    """The server says why it cannot answer; `code` is its own name for the reason."""

    def __init__(self, what: str, *, code: str) -> None:
        """Keep the code beside the words."""
        super().__init__(what, where="chat")
        self.code = code


@dataclass(slots=True, kw_only=True)
class Growing:
    """A reply while it grows; one thread writes it, pages read it.

    Attributes:
        asked_at: When it was asked, by `time.monotonic`.
    """

    lane: str
    text: str = ""
    token_ids: list[int] = field(default_factory=list)
    logprobs: list[float] = field(default_factory=list)
    fingerprint: str = ""
    prompt_mark: str = ""
    asked_at: float = field(default_factory=time.monotonic)
    first_s: float = 0.0
    ending: Ending | None = None
    problem: str = ""

    def take(self, chunk: Mapping[str, Any]) -> None:
        """Take one chunk of the stream.

        Raises:
            RefusedError: if it tells an error.
        """
        if "error" in chunk:
            raise refusal(chunk)
        self.fingerprint = chunk.get("system_fingerprint") or self.fingerprint
        if "prompt_token_ids" in chunk:
            self.prompt_mark = prompt_mark(chunk["prompt_token_ids"])
        for choice in chunk["choices"]:
            logprobs = choice.get("logprobs")
            if logprobs is not None:
                if not self.token_ids:
                    self.first_s = time.monotonic() - self.asked_at
                self.logprobs += [entry["logprob"] for entry in logprobs["content"]]
                self.token_ids += [entry["token_id"] for entry in logprobs["content"]]
            self.text += choice["delta"].get("content") or ""
            if choice["finish_reason"] is not None:
                self.ending = Ending(choice["finish_reason"])

    def finished(self, ending: Ending, *, base_model: str, sampling: Sampling) -> Reply:
        """Return what has come as a reply that ends so."""
        return Reply(
            lane=self.lane,
            text=self.text,
            base_model=base_model,
            ending=ending,
            sampling=sampling,
            token_ids=tuple(self.token_ids),
            logprobs=tuple(self.logprobs),
            fingerprint=self.fingerprint,
            prompt_mark=self.prompt_mark,
            seconds=time.monotonic() - self.asked_at,
            first_s=self.first_s,
            problem=self.problem,
        )


async def stream_reply(
    address: Address,
    messages: list[dict[str, Any]],
    sampling: Sampling,
    growing: Growing,
    *,
    tools: Sequence[dict[str, Any]] = (),
) -> None:
    """Let a reply grow until its end; to cancel this hangs up, and the server stops computing.

    Args:
        address: The server.
        messages: What is said before, in OpenAI's form.
        sampling: How to draw; its seed is given.
        growing: Takes the tokens; its lane says which model is asked.
        tools: The functions that the model may call.

    Raises:
        RefusedError: if the server says that it cannot.
        LostError: if the server went away.
    """
    body: dict[str, Any] = {
        "model": growing.lane,
        "messages": messages,
        "temperature": sampling.temperature,
        "top_p": sampling.top_p,
        "top_k": sampling.top_k or -1,
        "max_tokens": sampling.max_tokens,
        "seed": sampling.seed,
        "stream": True,
        "logprobs": True,
        "return_token_ids": True,
    }
    if tools:
        body["tools"] = list(tools)
    timeout = httpx2.Timeout(SILENCE_S, connect=CONNECT_S)
    growing.asked_at = time.monotonic()
    try:
        # The environment's proxies are for the world outside, not for this machine's own server.
        async with (
            httpx2.AsyncClient(timeout=timeout, trust_env=False) as client,
            client.stream(
                "POST",
                f"{address.url}/v1/chat/completions",
                json=body,
                headers={"Authorization": f"Bearer {address.token}"},
            ) as answer,
        ):
            if answer.status_code != 200:
                raise refusal(_body(await answer.aread()))
            async for line in answer.aiter_lines():
                told = line.removeprefix("data: ")
                if told and told != "[DONE]" and told != line:
                    growing.take(json.loads(told))
    except httpx2.TransportError as error:
        raise LostError(_lost(error), where="chat") from error
    if growing.ending is None:
        raise LostError("the model's process ended in the middle of the reply", where="chat")


async def is_busy(address: Address) -> bool:
    """Return whether the server answers somebody at this moment.

    Raises:
        LostError: if it cannot be reached.
    """
    try:
        async with httpx2.AsyncClient(timeout=CONNECT_S, trust_env=False) as client:
            health = (await client.get(f"{address.url}/health")).json()
        return bool(health["active"] or health["waiting"])
    except (httpx2.TransportError, ValueError, KeyError) as error:
        raise LostError("the model's process does not answer", where="chat") from error


def refusal(body: Mapping[str, Any]) -> RefusedError:
    """Return the error that an answer of the server tells."""
    error = body.get("error") or {}
    return RefusedError(
        str(error.get("message") or "the model's process refuses to answer"),
        code=str(error.get("code") or ""),
    )


def _body(content: bytes) -> dict[str, Any]:
    try:
        return dict(json.loads(content))
    except (ValueError, TypeError):
        return {}


def _lost(error: httpx2.TransportError) -> str:
    if isinstance(error, httpx2.TimeoutException):
        return "the model's process has said nothing for too long"
    return "the model's process ended in the middle of the reply"
