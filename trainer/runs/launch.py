"""How a run begins: a row, a frozen copy of its data, then a process of its own. No torch."""

import signal
import subprocess
import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path

from db import commands, queries
from db.engine import Database
from db.enums import ErrorKind, RunStatus
from db.errors import ConflictError
from db.formats import write
from db.records import Conversation, Run
from db.settings import Settings
from trainer.catalog import find_model, has_gpu
from trainer.compute_environment import COMPUTE_ENVIRONMENT
from trainer.config import Device, TrainConfig
from trainer.errors import DiskFullError, TrainerError
from trainer.evaluating.held import freeze_evaluation
from trainer.preview import preview, refuse_blocked
from trainer.remote.access import child_variables, device_name
from trainer.runs.failure import explain
from trainer.runs.folder import RunFolder, sha256_of, write_json, write_text
from trainer.runs.lineage import ancestors_of
from trainer.runs.process import (
    new_claim,
    own_environment,
    own_machine,
    reap_in_time,
    start_time,
)
from trainer.starting import copy_start, find_start, run_of, settled


def start_run(
    database: Database,
    *,
    name: str,
    conversation_ids: Sequence[int],
    config: TrainConfig,
    start_token: str,
    endpoint_key: str = "",
) -> Run:
    """Create a run, freeze its data and start it; it waits if another run holds the device.

    Args:
        database: Where conversations are read and the run is recorded.
        name: What people call the run.
        conversation_ids: The conversations to train on, in this order.
        config: The full configuration, stored before anything else happens.
        start_token: Any string; the same token gives the same run, so two clicks start one.
        endpoint_key: A key typed for this start; only the environment of the run's process gets it.

    Raises:
        BadDataError: if the data cannot be trained on (see `trainer.preview`).
        ConfigError: if the adapter to start from does not fit (see `trainer.starting`).
        DataError: if the name is empty or too long.
        ModelError: if there is no such base model.
        NotFoundError: if the endpoint is not in the settings (any more).
        DiskFullError, TrainerError: if the run's folder cannot be written.
    """
    conversations = queries.conversations(database, list(conversation_ids))
    config = config.replace(base_model=find_model(database.settings, config.base_model).name)
    if config.endpoint:
        queries.endpoint(database, config.endpoint)  # none of that name is told before it starts
    refuse_waiting_key(database, config, endpoint_key)
    start = find_start(database.settings, config)
    config = settled(config, start)
    table = preview(conversations, config)
    refuse_blocked(table)
    claim = new_claim()
    run = commands.create_run(
        database,
        name=name,
        config=config.to_json(),
        base_model=config.base_model,
        conversations=len(conversations),
        turns=len(table.turns),
        start_token=start_token,
        device=device_of(config),
        claimed_by=claim,
        ancestors=ancestors_of(database, run_of(config.start_from)),
    )
    if run.claimed_by != claim:  # another click, tab or process has made it, and prepares it
        return run
    try:
        _freeze(database, run, conversations, config, start)
    except OSError as error:
        failure = explain(error)
        commands.end_run(
            database,
            run.id,
            RunStatus.FAILED,
            error_kind=failure.kind,
            error_text=failure.text,
        )
        kind = DiskFullError if failure.kind is ErrorKind.DISK_FULL else TrainerError
        raise kind(failure.text, where=f"run {run.id}") from error
    start_waiting(database, keys={run.id: endpoint_key})
    return queries.run(database, run.id)


def refuse_waiting_key(database: Database, config: TrainConfig, key: str) -> None:
    """Refuse a typed key that would have to wait in the queue, where nothing may keep it.

    Raises:
        ConflictError: if another run is at the endpoint, or waits for it.
    """
    device = device_of(config)
    others = [run for run in queries.runs(database) if not run.status.has_ended]
    busy = next((run for run in others if run.device == device), None)
    if key and config.endpoint and busy is not None:
        raise ConflictError(
            f"run {busy.id} is {busy.status} there, and a typed key cannot wait: it is kept nowhere",
            where=config.endpoint,
            remedy="Start when that run has ended, or keep the key in an environment variable.",
        )


def device_of(config: TrainConfig) -> str:
    """Return what a run with this configuration will compute on here: "cuda" or "cpu".

    A run on an endpoint holds neither: its device is the endpoint.
    """
    if config.endpoint:
        return device_name(config.endpoint)
    if config.device is Device.AUTO:
        return Device.CUDA.value if has_gpu() else Device.CPU.value
    return config.device.value


def _freeze(
    database: Database,
    run: Run,
    conversations: Sequence[Conversation],
    config: TrainConfig,
    start: Path | None,
) -> None:
    """Write the run's own copy of all it begins from; from then on it can be claimed."""
    folder = RunFolder(database.settings.run_dir(run.id))
    folder.path.mkdir(parents=True, exist_ok=True)
    write_json(folder.config, config.to_json())
    write_text(folder.data, write(conversations, "native"))
    copy_start(start, folder)
    freeze_evaluation(database, folder)
    commands.set_snapshot(database, run.id, sha256_of(folder.data))


def start_waiting(database: Database, *, keys: Mapping[int, str] | None = None) -> list[Run]:
    """Start the waiting runs whose device is free, in the order of the queue; return them.

    Args:
        database: Where the runs wait.
        keys: Keys typed for endpoints, by run.
    """
    started: list[Run] = []
    while (run := commands.claim_next_run(database, claimed_by=new_claim())) is not None:
        try:
            _spawn(database, run, (keys or {}).get(run.id, ""))
        except OSError as error:
            failure = explain(error)
            commands.end_run(
                database,
                run.id,
                RunStatus.FAILED,
                error_kind=failure.kind,
                error_text=f"The run's process could not be started. {failure.text}",
            )
        started.append(queries.run(database, run.id))
    return started


def resume_run(
    database: Database, run_id: int, *, attempt: int | None = None, endpoint_key: str = ""
) -> Run:
    """Put a run that ended before its time back into the queue; it goes on from its checkpoint.

    Args:
        database: Where the run is.
        run_id: Which run.
        attempt: The attempt that the person saw end: two clicks, or two tabs, resume it once.
        endpoint_key: As in `start_run`.

    Raises:
        ConflictError: if the run has not ended, or has finished.
        FolderGoneError: if the run's folder is gone.
    """
    RunFolder(database.settings.run_dir(run_id)).require()
    if endpoint_key:
        config = TrainConfig.from_json(queries.run(database, run_id).config)
        refuse_waiting_key(database, config, endpoint_key)
    commands.requeue_run(database, run_id, attempt=attempt)
    start_waiting(database, keys={run_id: endpoint_key})
    return queries.run(database, run_id)


def can_resume(database: Database, run: Run) -> bool:
    """Return whether a run ended before its time and its folder still has what it begins from."""
    folder = RunFolder(database.settings.run_dir(run.id))
    return run.status.can_resume and folder.config.exists() and folder.data.exists()


def resume_here(database: Database, run_id: int) -> None:
    """Claim a stopped or failed run for the processes that a launcher has started for it.

    Raises:
        ConflictError: if the run cannot be resumed, or another one holds the device or waits.
        FolderGoneError: if the run's folder is gone.
    """
    RunFolder(database.settings.run_dir(run_id)).require()
    others = [run for run in queries.runs(database) if not run.status.has_ended]
    if others:
        raise ConflictError(
            f"run {others[0].id} is {others[0].status}",
            where=f"run {run_id}",
            remedy="Wait until no run holds the device or waits for it.",
        )
    commands.requeue_run(database, run_id)
    commands.claim_next_run(database)


def request_stop(database: Database, run_id: int) -> Run:
    """Ask a run to stop after the turn it is at; a waiting run stops at once."""
    return commands.request_stop(database, run_id)


def _spawn(database: Database, run: Run, endpoint_key: str) -> None:
    """Start the run's process and record it, unless it has done so itself by then."""
    pid = start_process(database.settings, run.id, endpoint_key)
    started_at = start_time(pid) or 0.0  # of one that has ended already: found gone at once
    reap_in_time(pid)
    commands.record_process(
        database,
        run.id,
        pid=pid,
        process_started_at=started_at,
        machine=own_machine(),
        claimed_by=run.claimed_by,
    )


def start_process(settings: Settings, run_id: int, endpoint_key: str = "") -> int:
    """Start the run's process in a session of its own, its output in the log; return its id.

    Raises:
        OSError: if it cannot be started.
    """
    folder = RunFolder(settings.run_dir(run_id))
    environment = {
        **COMPUTE_ENVIRONMENT,
        **own_environment(),
        "EVERYTURN_HOME": str(settings.home),
        "DATABASE_URL": settings.database_url,
        "PYTHONUNBUFFERED": "1",
        **child_variables(endpoint_key),
    }
    with folder.log.open("ab") as log, _held_back(signal.SIGTERM):
        return subprocess.Popen(
            [sys.executable, "-m", "trainer", "run", str(run_id)],
            stdin=subprocess.DEVNULL,
            stdout=log,
            stderr=subprocess.STDOUT,
            start_new_session=True,
            cwd=settings.home,
            env=environment,
        ).pid


@contextmanager
def _held_back(sent: signal.Signals) -> Iterator[None]:
    """Let a process that the block starts receive a signal only once it can handle it.

    It inherits what is held back; `trainer.runs.worker.stop_on_signals` lets go. A stop in the
    first second of a run, while Python and torch load, is so honoured like any other.
    """
    before = signal.pthread_sigmask(signal.SIG_BLOCK, {sent})
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)
