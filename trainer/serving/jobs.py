"""What is asked of the model, and what comes back, token by token."""

import threading
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Literal

from db.errors import EveryTurnError
from trainer.engine.types import SamplingParams
from trainer.serving.sampling import Sampled

FinishReason = Literal["stop", "length"]


@dataclass(frozen=True, slots=True)
class Began:
    """The prompt has been read.

    Attributes:
        cached_tokens: How many of its tokens were known from an earlier request.
        fingerprint: Which weights answer: the base model, and the adapter's file by its hash.
    """

    cached_tokens: int
    fingerprint: str


@dataclass(frozen=True, slots=True)
class Token:
    """One more token of a choice.

    Attributes:
        choice: Which of the choices, from 0.
        sampled: The token.
        text: The text that is certain now.
    """

    choice: int
    sampled: Sampled
    text: str


@dataclass(frozen=True, slots=True)
class Finished:
    """A choice is complete.

    Attributes:
        choice: Which.
        reason: "stop" (end-of-turn token or stop string) or "length".
        text: Text that had been held back.
    """

    choice: int
    reason: FinishReason
    text: str


@dataclass(frozen=True, slots=True)
class Failed:
    """Nothing more will come."""

    error: EveryTurnError


Event = Began | Token | Finished | Failed


@dataclass(slots=True, eq=False)
class Job:
    """One request.

    Attributes:
        name: The model's name: "base" or an adapter's.
        prompt: Token ids, at least one.
        params: How to sample.
        choices: How many replies.
        likeliest: How many of the likeliest tokens to report at each place.
        send: Takes the events; called from the model's thread, must not block.
    """

    name: str
    prompt: tuple[int, ...]
    params: SamplingParams
    choices: int
    likeliest: int
    send: Callable[[Event], None]
    _cancelled: threading.Event = field(default_factory=threading.Event)

    def cancel(self) -> None:
        """Nobody listens any more."""
        self._cancelled.set()

    @property
    def is_cancelled(self) -> bool:
        """Whether nobody listens any more."""
        return self._cancelled.is_set()
