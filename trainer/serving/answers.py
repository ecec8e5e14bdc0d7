"""A job's events become the body of an answer, or the chunks of a stream."""

import json
import time
import uuid
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

from transformers import PreTrainedTokenizerBase

from trainer.serving.jobs import Began, Finished, Token
from trainer.serving.protocol import ChatRequest, logprob_entry, usage


@dataclass(slots=True)
class _Choice:
    """What one choice has come to."""

    text: str = ""
    ids: list[int] = field(default_factory=list)
    entries: list[dict[str, Any]] = field(default_factory=list)
    reason: str | None = None


class Answer:
    """The answer to one request while its events come in.

    Attributes:
        completion_tokens: Tokens sampled so far, of all choices.
    """

    def __init__(
        self, request: ChatRequest, prompt: tuple[int, ...], tokenizer: PreTrainedTokenizerBase
    ) -> None:
        """Begin an answer."""
        self._request = request
        self._prompt = prompt
        self._tokenizer = tokenizer
        self._choices = [_Choice() for _ in range(request.n)]
        self._head = {
            "id": f"chatcmpl-{uuid.uuid4().hex}",
            "created": int(time.time()),
            "model": request.model,
        }
        self._cached = 0
        self.completion_tokens = 0

    @property
    def is_complete(self) -> bool:
        """Whether every choice is."""
        return all(choice.reason for choice in self._choices)

    def begin(self, event: Began) -> None:
        """Take what is known once the prompt has been looked up."""
        self._cached = event.cached_tokens
        self._head["system_fingerprint"] = event.fingerprint

    def add(self, event: Token | Finished) -> dict[str, Any]:
        """Take an event; return the chunk that tells it."""
        choice = self._choices[event.choice]
        choice.text += event.text
        delta: dict[str, Any] = {"content": event.text}
        told: dict[str, Any] = {"index": event.choice, "delta": delta, "finish_reason": None}
        if isinstance(event, Finished):
            choice.reason = event.reason
            told["finish_reason"] = event.reason
        else:
            if not choice.ids:
                delta["role"] = "assistant"
            self.completion_tokens += 1
            entry = self._entry(event)
            choice.ids.append(event.sampled.token)
            choice.entries.append(entry)
            if self._request.logprobs:
                told["logprobs"] = {"content": [entry], "refusal": None}
            if self._request.return_token_ids:
                told["token_ids"] = [event.sampled.token]
        return self._chunk([told])

    def usage_chunk(self) -> Iterator[dict[str, Any]]:
        """Yield the chunk with the count of tokens, if it was asked for."""
        options = self._request.stream_options
        if options is not None and options.include_usage:
            yield self._chunk([]) | {"usage": self._usage()}

    def body(self) -> dict[str, Any]:
        """Return the whole answer."""
        choices: list[dict[str, Any]] = []
        for index, choice in enumerate(self._choices):
            told: dict[str, Any] = {
                "index": index,
                "message": {"role": "assistant", "content": choice.text, "refusal": None},
                "finish_reason": choice.reason,
                "logprobs": None,
            }
            if self._request.logprobs:
                told["logprobs"] = {"content": choice.entries, "refusal": None}
            if self._request.return_token_ids:
                told["token_ids"] = choice.ids
            choices.append(told)
        return {
            "object": "chat.completion",
            **self._head,
            **self._prompt_ids(),
            "choices": choices,
            "usage": self._usage(),
        }

    def _chunk(self, choices: list[dict[str, Any]]) -> dict[str, Any]:
        first = self._prompt_ids() if self.completion_tokens == 1 else {}
        return {"object": "chat.completion.chunk", **self._head, **first, "choices": choices}

    def _prompt_ids(self) -> dict[str, Any]:
        return {"prompt_token_ids": self._prompt} if self._request.return_token_ids else {}

    def _usage(self) -> dict[str, Any]:
        return usage(len(self._prompt), self.completion_tokens, self._cached)

    def _entry(self, event: Token) -> dict[str, Any]:
        if not self._request.logprobs:
            return {}
        sampled = event.sampled
        likeliest = [(token, self._spelt(token), value) for token, value in sampled.likeliest]
        return logprob_entry(sampled.token, self._spelt(sampled.token), sampled.logprob, likeliest)

    def _spelt(self, token: int) -> str:
        return str(self._tokenizer.decode([token]))


def as_event(body: dict[str, Any]) -> str:
    """Return a chunk as a server-sent event."""
    return f"data: {json.dumps(body, ensure_ascii=False)}\n\n"


END = "data: [DONE]\n\n"
