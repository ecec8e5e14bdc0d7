"""The way of a question to the chat's server: past a run, another chat's model and its start."""

import asyncio
from contextlib import suppress
from dataclasses import dataclass
from enum import StrEnum

from app.chat_client import LostError, is_busy
from db import queries
from db.engine import Database
from db.enums import RunStatus
from db.errors import StorageError
from db.records import Run
from trainer.runs.reconcile import reconcile
from trainer.serving import worker
from trainer.serving.address import Address

_LOOK_S = 0.2
_WAIT_S = 1.0


class Phase(StrEnum):
    """What a question's job is doing."""

    STARTING = "starting"
    WAITING = "waiting"
    LOADING = "loading"
    ANSWERING = "answering"
    DONE = "done"


@dataclass(slots=True, kw_only=True)
class Progress:
    """How far a question has come, for the pages that look at it.

    Attributes:
        phase: What is being done.
        run: The run that it waits for.
        waits_for: What else it waits for, in words.
        loading: How far the server is.
    """

    phase: Phase = Phase.STARTING
    run: Run | None = None
    waits_for: str = ""
    loading: worker.Worker | None = None


async def reach(database: Database, model: str, progress: Progress) -> Address:
    """Wait for the device, and for a server with this base model, which is started where none is.

    Raises:
        StorageError: if it cannot be started, or ended before it answered.
    """
    settings = database.settings
    started = False
    while True:
        seen = await asyncio.to_thread(worker.look, settings)
        device = seen.address.device if seen.address else worker.chat_device()
        progress.run = await asyncio.to_thread(holder, database, device)
        if progress.run is not None:
            progress.phase = Phase.WAITING
            if started:  # it was asked for in the same moment as the run: the run goes first
                await asyncio.to_thread(worker.make_room, settings, device)
                started = False
            await asyncio.sleep(_WAIT_S)
            continue
        if seen.stage is worker.Stage.OFF:
            if started:
                raise StorageError(
                    seen.problem.rstrip(".") or "the model's process ended as it began",
                    where="chat",
                    remedy="Ask again; its log is serve.log in the data folder.",
                )
            progress.phase = Phase.LOADING
            await _start(database, model)
            started = True
            continue
        if seen.base_model != model:
            await _change_model(database, seen, progress)
            continue
        if seen.address is not None:
            if progress.loading is not None:
                loading_s, progress.loading = progress.loading.loading_s, None
                await asyncio.to_thread(worker.note_loaded, settings, loading_s)
            progress.waits_for = ""
            return seen.address
        progress.phase, progress.loading = Phase.LOADING, seen
        await asyncio.sleep(_LOOK_S)


def holder(database: Database, device: str) -> Run | None:
    """Return the run that holds a device, if one does; dead runs are ended first."""
    reconcile(database)
    active = [status for status in RunStatus if status.has_process]
    found = queries.runs_with_status(database, *active)
    return next((run for run in found if run.device == device), None)


async def _start(database: Database, model: str) -> None:
    try:
        await asyncio.to_thread(worker.start, database.settings, model)
    except OSError as error:
        raise StorageError(
            f"the model's process cannot be started ({error.strerror})",
            where="chat",
            remedy="Check that the data folder can be written and has space.",
        ) from error


async def _change_model(database: Database, seen: worker.Worker, progress: Progress) -> None:
    """Let another base model go, once nobody talks to it."""
    progress.waits_for = f"another chat, which talks to {seen.base_model}"
    progress.phase = Phase.WAITING
    busy = seen.address is None
    if seen.address is not None:
        with suppress(LostError):
            busy = await is_busy(seen.address)
    if busy:
        await asyncio.sleep(_WAIT_S)
    elif seen.address is not None:
        await asyncio.to_thread(worker.make_room, database.settings, seen.address.device)
