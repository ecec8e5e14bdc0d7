"""Replies in the making: each goes on in the background, whichever pages come, go or reload.

A job waits while a run holds the device, sees to it that the server is there, and lets the replies
of all its models grow at once. Pages look at it; when nobody does any more, it ends.
"""

import asyncio
import secrets
import threading
import time
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace

import streamlit as st

from app import chat_store
from app.chat_client import GIVEN_UP, Growing, LostError, RefusedError, stream_reply
from app.chat_server import Phase, Progress, holder, reach
from app.chat_tree import Chat, Ending, Reply, Turn, history, with_replies
from db.engine import Database
from db.errors import ConflictError, EveryTurnError, StorageError
from db.records import Run
from trainer.runs.failure import explain
from trainer.serving.address import Address

UNSEEN_S = 30.0
"""A reply that no page has looked at for so long is stopped; what has come of it is kept."""

WAITING_UNSEEN_S = 3600.0
"""A question that waits for the device is given up after so long without anybody looking."""

_ATTEMPTS = 2


@dataclass(slots=True, kw_only=True)
class Job(Progress):
    """One question to one or several models.

    Attributes:
        chat: The chat when the question was asked.
        turn: The question.
        growing: The replies, by model.
        seen_at: When a page last looked, by `time.monotonic`.
    """

    chat: Chat
    turn: Turn
    growing: dict[str, Growing]
    database: Database
    seen_at: float = field(default_factory=time.monotonic)
    _loop: asyncio.AbstractEventLoop | None = None
    _task: "asyncio.Task[None] | None" = None
    _stopped: bool = False

    def stop(self) -> None:
        """End the replies; what has come of them is kept."""
        self._stopped = True
        if self._loop is not None and self._task is not None:
            with suppress(RuntimeError):  # it has just ended by itself
                self._loop.call_soon_threadsafe(self._task.cancel)

    def run_to_the_end(self) -> None:
        """Do the work and keep the replies; for a thread of its own."""
        try:
            asyncio.run(self._main())
            self._keep(self._replies())
        finally:
            self.phase = Phase.DONE

    async def _main(self) -> None:
        self._loop, self._task = asyncio.get_running_loop(), asyncio.current_task()
        watch = asyncio.create_task(self._watch())
        try:
            if not self._stopped:
                await self._answer()
        except asyncio.CancelledError:
            pass  # stopped
        except EveryTurnError as error:
            self._fail(error)
        except Exception as error:  # noqa: BLE001 - the thread's edge: it is told in the chat
            self._fail(StorageError(explain(error).text, where="chat"))
        finally:
            watch.cancel()

    async def _watch(self) -> None:
        """Stop when nobody looks any more."""
        while True:
            limit = UNSEEN_S if self.phase is Phase.ANSWERING else WAITING_UNSEEN_S
            left = self.seen_at + limit - time.monotonic()
            if left <= 0:
                self.stop()
                return
            await asyncio.sleep(min(left, 5.0) + 0.01)

    async def _answer(self) -> None:
        """Ask every model; those whose server went away before a word are asked once more."""
        waiting = list(self.growing.values())
        for attempt in range(1, _ATTEMPTS + 1):
            address = await reach(self.database, self.chat.base_model, self)
            if self.phase is not Phase.ANSWERING:
                self.phase, self.seen_at = Phase.ANSWERING, time.monotonic()
            lost = await asyncio.gather(
                *(self._one(address, growing, attempt) for growing in waiting)
            )
            waiting = [growing for growing, is_lost in zip(waiting, lost, strict=True) if is_lost]
            if not waiting:
                return

    async def _one(self, address: Address, growing: Growing, attempt: int) -> bool:
        """Let one reply grow; return whether it shall be asked again."""
        messages = history(self.chat, self.turn, growing.lane)
        try:
            await stream_reply(
                address, messages, self.chat.sampling, growing, tools=self.chat.tools
            )
        except LostError as error:
            if not growing.token_ids and attempt < _ATTEMPTS:
                return True
            run = await asyncio.to_thread(holder, self.database, address.device)
            growing.problem = _taken_by(run) if run else _capital(error.what)
        except RefusedError as error:
            if error.code != GIVEN_UP:
                growing.problem = error.what
                growing.ending = Ending.FAILED
                return False
            run = await asyncio.to_thread(holder, self.database, address.device)
            if not growing.token_ids and attempt < _ATTEMPTS:
                return True
            growing.problem = _taken_by(run)
        else:
            return False
        growing.ending = Ending.FAILED
        return False

    def _fail(self, error: EveryTurnError) -> None:
        for growing in self.growing.values():
            if growing.ending is None:
                told = f"{_capital(error.what.rstrip('.'))}. {error.remedy}".strip()
                growing.problem, growing.ending = told, Ending.FAILED

    def _replies(self) -> list[Reply]:
        """Return what came; a model that had not said a word when it was stopped has no reply."""
        chat = self.chat
        return [
            growing.finished(
                growing.ending or Ending.STOPPED,
                base_model=chat.base_model,
                sampling=chat.sampling,
            )
            for growing in self.growing.values()
            if growing.ending is not None or growing.token_ids
        ]

    def _keep(self, replies: Sequence[Reply]) -> None:
        if not replies:
            return
        with suppress(EveryTurnError):  # deleted meanwhile, or the disk is full: nobody can be told
            chat_store.update(
                self.chat.id, lambda chat: with_replies(chat, self.turn.id, list(replies))
            )


def begin(database: Database, chat: Chat, turn: Turn, lanes: Sequence[str]) -> Job:
    """Let models answer a turn in the background.

    Raises:
        ConflictError: if the chat is being answered already.
    """
    seed = chat.sampling.seed if chat.sampling.seed is not None else secrets.randbelow(2**31)
    seeded = replace(chat, sampling=replace(chat.sampling, seed=seed))
    job = Job(
        chat=seeded,
        turn=turn,
        growing={lane: Growing(lane=lane) for lane in lanes},
        database=database,
    )
    jobs = _jobs()
    with jobs.lock:
        before = jobs.by_chat.get(chat.id)
        if before is not None and before.phase is not Phase.DONE:
            raise ConflictError(
                "this chat is being answered already",
                where="chat",
                remedy="Wait for the reply, or stop it.",
            )
        for chat_id in [id for id, job in jobs.by_chat.items() if job.phase is Phase.DONE]:
            del jobs.by_chat[chat_id]
        jobs.by_chat[chat.id] = job
    threading.Thread(target=job.run_to_the_end, name=f"chat {chat.id}", daemon=True).start()
    return job


def job_of(chat_id: str) -> Job | None:
    """Return what is being answered in a chat, if anything; it is now looked at."""
    job = _jobs().by_chat.get(chat_id)
    if job is None or job.phase is Phase.DONE:
        return None
    job.seen_at = time.monotonic()
    return job


@dataclass(slots=True)
class _Jobs:
    by_chat: dict[str, Job] = field(default_factory=dict)
    lock: threading.Lock = field(default_factory=threading.Lock)


@st.cache_resource(show_spinner=False)
def _jobs() -> _Jobs:
    return _Jobs()


def _taken_by(run: Run | None) -> str:
    if run is None:
        return "The model has left the device: a run needed it, or somebody ended it."
    return (
        f"A run needed the device: {run.name!r} goes first. Ask again, and the answer waits for it."
    )


def _capital(text: str) -> str:
    return f"{text[:1].upper()}{text[1:]}."
