"""The model's own thread: every step computes the next tokens of all requests together."""

import logging
import queue
import threading
import time
from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass, field

import torch

from db.errors import EveryTurnError
from trainer.engine.memory import memory_errors
from trainer.errors import NotFiniteError, OutOfMemoryError, TrainerError
from trainer.serving.adapters import Answerer, Shelf, refused
from trainer.serving.jobs import Began, Failed, Finished, Job, Token
from trainer.serving.passes import Passes, Piece
from trainer.serving.sampling import Sampled, choose, generators
from trainer.serving.stores import Memory, Store
from trainer.serving.text import TextOf

logger = logging.getLogger(__name__)

PROMPT_TOKENS = 256
"""Most tokens of prompts in one step, so that a long prompt does not hold up the others for long."""

MOST_STREAMS = 32
"""Most replies that are generated at once; the others wait."""


class LeavingError(TrainerError):
    """The server is about to end: its device is needed, or somebody ended it."""


@dataclass(slots=True, eq=False)
class _Stream:
    """A reply that grows, or a prompt that is being read.

    Attributes:
        job: What it is for.
        answerer: The base model or an adapter.
        store: Keys and values of `tokens` but for the pending ones.
        tokens: All its tokens so far.
        pending: How many of the last tokens have not gone through the model.
        choice: Which of the job's choices; those of a prompt all begin with it.
        generator: Its dice.
        text: Its text.
        sampled: How many tokens were sampled.
    """

    job: Job
    answerer: Answerer
    store: Store
    tokens: list[int]
    pending: int
    text: TextOf
    generator: torch.Generator
    choice: int = 0
    sampled: int = 0
    twins: list["_Stream"] = field(default_factory=list)


class Scheduler:
    """Runs jobs on a model, in a thread of its own.

    Attributes:
        quiet_since: When the last job ended, by `time.monotonic`; None while there are some.
        computed_tokens: Tokens sent through the model so far.
    """

    def __init__(
        self, passes: Passes, shelf: Shelf, stop_ids: Sequence[int], limit_bytes: float
    ) -> None:
        """Prepare; `start` begins.

        Args:
            passes: How the model is run.
            shelf: The adapters.
            stop_ids: Tokens that end a reply; the one that was sampled is kept.
            limit_bytes: How much memory keys and values may take.
        """
        self._passes = passes
        self._shelf = shelf
        self._stop_ids = frozenset(stop_ids)
        self._limit_bytes = limit_bytes
        self._memory = Memory(limit_bytes)
        self._inbox: queue.SimpleQueue[Job | None] = queue.SimpleQueue()
        self._waiting: deque[Job] = deque()
        self._streams: list[_Stream] = []
        self._leaving: str | None = None
        self._thread = threading.Thread(target=self._run, name="model", daemon=True)
        self.quiet_since: float | None = time.monotonic()
        self.computed_tokens = 0

    @property
    def active(self) -> int:
        """How many replies are being generated."""
        return len(self._streams)

    @property
    def waiting(self) -> int:
        """How many requests wait."""
        return len(self._waiting) + self._inbox.qsize()

    def start(self) -> None:
        """Begin to take jobs."""
        self._thread.start()

    def submit(self, job: Job) -> None:
        """Take a job; its events follow."""
        self.quiet_since = None
        self._inbox.put(job)

    def leave(self, reason: str) -> None:
        """End every job after the present step and take no more."""
        self._leaving = reason
        self._inbox.put(None)

    def join(self, timeout_s: float) -> None:
        """Wait for the thread's end."""
        self._thread.join(timeout_s)

    def _run(self) -> None:
        while self._leaving is None:
            self._take_in()
            if self._streams:
                self._step()
            elif not self._waiting and self._inbox.empty():
                self.quiet_since = time.monotonic()
                self._accept(self._inbox.get())
        self._leave()

    def _accept(self, job: Job | None) -> None:
        if job is not None:
            self.quiet_since = None
            self._waiting.append(job)

    def _take_in(self) -> None:
        """Let go of what nobody listens to, and begin what waits, as far as there is room."""
        while not self._inbox.empty():
            self._accept(self._inbox.get())
        for stream in [stream for stream in self._streams if stream.job.is_cancelled]:
            self._end(stream)
        while self._waiting and self._has_room(self._waiting[0]):
            job = self._waiting.popleft()
            if job.is_cancelled:
                continue
            try:
                self._streams.append(self._begin(job))
            except Exception as error:  # noqa: BLE001 - one job's failure must not end the server
                job.send(Failed(_told(error)))

    def _has_room(self, job: Job) -> bool:
        if not self._streams:
            return True
        streams = sum(1 + len(stream.twins) for stream in self._streams)
        return (
            streams + job.choices <= MOST_STREAMS and self._active_bytes() < self._limit_bytes / 2
        )

    def _active_bytes(self) -> int:
        return sum(stream.store.size_bytes for stream in self._streams)

    def _begin(self, job: Job) -> _Stream:
        """Return the stream that reads a job's prompt, from where an earlier one got to."""
        answerer = self._shelf.answerer(job.name)
        store = self._memory.recall(answerer, job.prompt) or self._passes.new_store()
        self._memory.shrink(self._active_bytes() + store.size_bytes)
        job.send(Began(store.length, answerer.fingerprint))
        streams = [
            _Stream(
                job=job,
                answerer=answerer,
                store=store,
                tokens=list(job.prompt),
                pending=len(job.prompt) - store.length,
                text=TextOf(self._shelf.tokenizer, job.params.stop_strings),
                generator=generator,
                choice=choice,
            )
            for choice, generator in enumerate(generators(job.params.seed, job.choices))
        ]
        streams[0].twins = streams[1:]
        return streams[0]

    def _step(self) -> None:
        """Send the next tokens of every stream through the model, and sample where it may go on."""
        chosen, pieces = self._next_pieces()
        try:
            with memory_errors(sum(len(piece.tokens) for piece in pieces)):
                logits = self._passes.run(pieces).float().cpu()
            self.computed_tokens += sum(len(piece.tokens) for piece in pieces)
        except Exception as error:  # noqa: BLE001 - one step's failure must not end the server
            self._fail(chosen, error)
            return
        for stream, piece, logits_V in zip(chosen, pieces, logits, strict=True):
            stream.pending -= len(piece.tokens)
            if stream.pending == 0 and stream in self._streams:
                try:
                    self._go_on(stream, logits_V)
                except Exception as error:  # noqa: BLE001 - as above
                    self._fail([stream], error)

    def _next_pieces(self) -> tuple[list[_Stream], list[Piece]]:
        chosen: list[_Stream] = []
        pieces: list[Piece] = []
        room = PROMPT_TOKENS
        for stream in self._streams:
            count = stream.pending if stream.sampled else min(stream.pending, room)
            if count == 0:
                continue
            room -= 0 if stream.sampled else count
            start = len(stream.tokens) - stream.pending
            tokens = tuple(stream.tokens[start : start + count])
            chosen.append(stream)
            pieces.append(Piece(tokens, stream.store, stream.answerer.updates))
        return chosen, pieces

    def _go_on(self, stream: _Stream, logits_V: torch.Tensor) -> None:
        """Sample the next token of a stream, and of those that share its prompt."""
        twins, stream.twins = stream.twins, []
        if len(twins) * stream.store.size_bytes > self._limit_bytes:
            raise OutOfMemoryError(
                f"so long a prompt {len(twins) + 1} times does not fit into memory",
                where="n",
                remedy="Ask for fewer choices at once, or shorten the messages.",
            )
        for twin in twins:
            store = stream.store.prefix(stream.store.length)
            assert store is not None  # the whole can always be copied
            twin.store, twin.pending = store, 0
            self._streams.append(twin)
        for each in (stream, *twins):
            try:
                sampled = choose(
                    logits_V, each.job.params, each.generator, likeliest=each.job.likeliest
                )
            except NotFiniteError as error:
                if each.answerer.updates is None:
                    raise
                raise refused(each.job.name, error.what) from error
            self._add(each, sampled)

    def _add(self, stream: _Stream, sampled: Sampled) -> None:
        job = stream.job
        is_end = sampled.token in self._stop_ids
        stream.tokens.append(sampled.token)
        stream.pending = 1
        stream.sampled += 1
        job.send(Token(stream.choice, sampled, stream.text.add(sampled.token)))
        is_full = job.params.max_tokens is not None and stream.sampled >= job.params.max_tokens
        if is_end or stream.text.stopped or is_full:
            reason = "stop" if is_end or stream.text.stopped else "length"
            job.send(Finished(stream.choice, reason, stream.text.rest()))
            self._end(stream)

    def _end(self, stream: _Stream) -> None:
        """Let go of a stream; what it computed may serve the next turn."""
        self._streams.remove(stream)
        if stream.store.length:
            known = tuple(stream.tokens[: stream.store.length])
            self._memory.keep(stream.answerer, known, stream.store)

    def _fail(self, streams: Sequence[_Stream], error: Exception) -> None:
        """End the jobs of these streams with the reason."""
        told = _told(error)
        jobs = {stream.job for stream in streams}
        self._streams = [stream for stream in self._streams if stream.job not in jobs]
        for job in jobs:
            job.cancel()
            job.send(Failed(told))

    def _leave(self) -> None:
        while not self._inbox.empty():
            self._accept(self._inbox.get())
        error = LeavingError(
            f"the model has left the device: {self._leaving}",
            where="chat",
            remedy="Try again when the device is free.",
        )
        for job in [*dict.fromkeys(stream.job for stream in self._streams), *self._waiting]:
            job.send(Failed(error))
        self._streams, self._waiting = [], deque()


def _told(error: Exception) -> EveryTurnError:
    """Return what a client reads of an error; one that nobody expected goes to the log as well."""
    if isinstance(error, EveryTurnError):
        return error
    logger.error("a job failed", exc_info=error)
    return TrainerError(
        f"{type(error).__name__}: {error}",
        where="generation",
        remedy="Try again; if it happens again, the server's log has the details.",
    )
