"""Requests and answers in the form of the OpenAI API, with the few fields that training needs."""

from collections.abc import Sequence
from typing import Any, Literal

from pydantic import BaseModel, ConfigDict, Field, model_validator

from db.text import clean_json
from trainer.engine.types import SamplingParams


class TextPart(BaseModel):
    """A piece of a message's content."""

    model_config = ConfigDict(extra="forbid")
    type: Literal["text"]
    text: str


class ChatMessage(BaseModel):
    """One message; fields that the chat template may use are passed on."""

    model_config = ConfigDict(extra="ignore")
    role: Literal["system", "developer", "user", "assistant", "tool"]
    content: str | list[TextPart] | None = None
    tool_calls: list[dict[str, Any]] | None = None
    tool_call_id: str | None = None

    def to_template(self) -> dict[str, Any]:
        """Return the message as chat templates take it."""
        parts = self.content if isinstance(self.content, list) else []
        content = "".join(part.text for part in parts) if parts else self.content or ""
        role = "system" if self.role == "developer" else self.role
        entry: dict[str, Any] = {"role": role, "content": content}
        if self.tool_calls:
            entry["tool_calls"] = self.tool_calls
        if self.tool_call_id is not None:
            entry["tool_call_id"] = self.tool_call_id
        return entry


class StreamOptions(BaseModel):
    """What a stream says beside the text."""

    model_config = ConfigDict(extra="forbid")
    include_usage: bool = False


class ChatRequest(BaseModel):
    """What `/v1/chat/completions` takes; anything that would be ignored is refused."""

    model_config = ConfigDict(extra="forbid")
    model: str
    messages: list[ChatMessage] = Field(min_length=1)
    tools: list[dict[str, Any]] = Field(default_factory=list[dict[str, Any]])
    tool_choice: Literal["auto"] = "auto"
    max_tokens: int | None = Field(None, ge=1)
    max_completion_tokens: int | None = Field(None, ge=1)
    temperature: float = Field(1.0, ge=0, le=100, allow_inf_nan=False)
    top_p: float = Field(1.0, gt=0, le=1)
    top_k: int = Field(-1, ge=-1)
    n: int = Field(1, ge=1, le=32)
    seed: int | None = Field(None, ge=-(2**63), lt=2**63)
    stop: str | list[str] | None = None
    stream: bool = False
    stream_options: StreamOptions | None = None
    logprobs: bool = False
    top_logprobs: int | None = Field(None, ge=0, le=20)
    return_token_ids: bool = False
    user: str | None = None
    metadata: dict[str, str] | None = None

    @model_validator(mode="before")
    @classmethod
    def without_nulls(cls, data: Any) -> Any:
        """Take a null for what was left out, as the API does, and only text that can be written."""
        if not isinstance(data, dict):
            return data
        try:
            return clean_json({key: value for key, value in data.items() if value is not None})
        except RecursionError as error:
            raise ValueError("it is nested too deeply") from error

    @model_validator(mode="after")
    def check_together(self) -> "ChatRequest":
        """Refuse what does not go together."""
        if self.top_logprobs is not None and not self.logprobs:
            raise ValueError("top_logprobs needs logprobs: true")
        if len(self.stops) > 8:
            raise ValueError("at most 8 stop strings")
        return self

    @property
    def stops(self) -> tuple[str, ...]:
        """The stop strings."""
        given = [self.stop] if isinstance(self.stop, str) else self.stop or []
        return tuple(stop for stop in given if stop)

    def sampling(self, room: int) -> SamplingParams:
        """Return how to sample where so many tokens are left of the context."""
        wanted = self.max_completion_tokens or self.max_tokens or room
        return SamplingParams(
            max_tokens=min(wanted, room),
            seed=self.seed,
            stop=self.stops,
            temperature=self.temperature,
            top_k=self.top_k,
            top_p=self.top_p,
        )


def error_body(message: str, *, kind: str, code: str, param: str | None = None) -> dict[str, Any]:
    """Return an error as the API's clients read it."""
    return {"error": {"message": message, "type": kind, "param": param, "code": code}}


def model_body(name: str, base_model: str) -> dict[str, Any]:
    """Return one entry of the list of models."""
    return {
        "id": name,
        "object": "model",
        "created": 0,
        "owned_by": "everyturn",
        "root": base_model,
    }


def usage(prompt: int, completion: int, cached: int) -> dict[str, Any]:
    """Return the count of tokens; `cached` of the prompt's were not computed again."""
    return {
        "prompt_tokens": prompt,
        "completion_tokens": completion,
        "total_tokens": prompt + completion,
        "prompt_tokens_details": {"cached_tokens": cached},
    }


def logprob_entry(
    token_id: int, text: str, logprob: float, likeliest: Sequence[tuple[int, str, float]]
) -> dict[str, Any]:
    """Return one sampled token with its log-probability, and its id beside it."""
    return {
        "token": text,
        "token_id": token_id,
        "logprob": logprob,
        "bytes": list(text.encode()),
        "top_logprobs": [
            {"token": other, "token_id": other_id, "logprob": value, "bytes": list(other.encode())}
            for other_id, other, value in likeliest
        ],
    }
