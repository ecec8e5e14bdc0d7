"""The process of a run: load the model, train, leave the result where the app finds it."""

import os
import signal
import sys
import time
import traceback
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager, suppress
from functools import partial
from types import FrameType

from filelock import FileLock, Timeout

from db import commands, queries
from db.engine import Database
from db.enums import ArtifactKind, ErrorKind, RunStatus
from db.errors import ConflictError
from db.formats import parse
from db.records import Run
from db.settings import Settings
from trainer.config import TrainConfig
from trainer.engine.client import ServiceClient
from trainer.engine.ranks import ALONE, Ranks
from trainer.engines import Engine
from trainer.errors import BadDataError
from trainer.evaluating.judging import start_judging
from trainer.loop import Ending, train
from trainer.remote.engine import open_access, open_client, persistently
from trainer.runs.database_recorder import DatabaseRecorder, patiently
from trainer.runs.failure import Failure, explain
from trainer.runs.folder import RunFolder, read_json, sha256_of, size_of
from trainer.runs.launch import start_waiting
from trainer.runs.log import kept_small
from trainer.runs.notice import tell
from trainer.runs.process import is_alive, own_machine, own_start_time
from trainer.runs.recorder import FileRecorder, Recorder
from trainer.runs.shared_recorder import SharedRecorder
from trainer.serving.worker import make_room
from trainer.starting import start_name

OpenEngine = Callable[[], AbstractContextManager[Engine]]

FOLDER_GONE = Failure(
    ErrorKind.FOLDER_GONE, "The run's folder was deleted while it ran. Launch the run anew."
)

ENDINGS = {
    Ending.FINISHED: RunStatus.FINISHED,
    Ending.EARLY: RunStatus.FINISHED,
    Ending.STOPPED: RunStatus.STOPPED,
}


def run_folder(
    folder: RunFolder, recorder: Recorder, settings: Settings, ranks: Ranks = ALONE
) -> Ending:
    """Train what the folder's `config.json` and `data.jsonl` say, or go on with it.

    Args:
        folder: The run's folder.
        recorder: Takes the figures; of several ranks, the leader's does.
        settings: Where the base models are.
        ranks: The processes that train together; each calls this.
    """
    with _locked(folder, ranks):
        return _run(folder, SharedRecorder(recorder, ranks), settings, ranks)


def _run(folder: RunFolder, recorder: Recorder, settings: Settings, ranks: Ranks) -> Ending:
    config = TrainConfig.from_json(read_json(folder.config))
    parsed = parse(folder.data.read_bytes(), format="native")
    if parsed.skipped:
        raise BadDataError(
            f"row {parsed.skipped[0].row} of the run's own copy of the data is damaged",
            where=str(folder.data),
            remedy="Launch the run anew.",
        )
    conversations = parsed.conversations
    if config.endpoint:
        access = open_access(settings, config)
        recorder.note(f"{config.base_model} at {config.endpoint}, {access.endpoint.base_url}")
        open_engine: OpenEngine = partial(open_client, access, config, settings)
    else:
        open_engine = partial(_load_engine, config, folder, recorder, settings, ranks)

    def attempt() -> Ending:
        recorder.progress(0.0, f"loading {config.base_model}")
        started = time.perf_counter()
        with open_engine() as engine:
            load_s = time.perf_counter() - started
            return train(conversations, config, engine, folder, recorder, settings, load_s=load_s)

    return persistently(attempt, recorder, stopped=Ending.STOPPED)


@contextmanager
def _load_engine(
    config: TrainConfig, folder: RunFolder, recorder: Recorder, settings: Settings, ranks: Ranks
) -> Iterator[Engine]:
    """Load the model on this machine, with the adapter that the run starts from."""
    service = ServiceClient(device=config.device, settings=settings, ranks=ranks)
    client = service.create_lora_training_client(
        config.base_model,
        rank=config.lora_rank,
        seed=config.seed,
        train_unembed=False,
        alpha=config.lora_alpha,
        token_budget=config.token_budget,
        memory_limit_gb=config.memory_limit_gb,
        base_precision=config.base_precision,
    )
    recorder.note(f"{config.base_model} on {client.device}: {client.path_reason}")
    if config.start_from:
        client.load_adapter(str(folder.start)).result()
        recorder.note(f"it starts from the adapter of {start_name(config)}")
    yield client


@contextmanager
def _locked(folder: RunFolder, ranks: Ranks) -> Iterator[None]:
    """Keep every other run out of the folder while the block runs; the leader holds the lock."""
    lock = FileLock(folder.path / ".lock")

    def acquire() -> None:
        folder.require()
        try:
            lock.acquire(timeout=0)
        except Timeout as error:
            raise ConflictError(
                "another process is at work on this run",
                where=str(folder.path),
                remedy="Wait for its end, or stop it.",
            ) from error
        folder.sweep()

    try:
        ranks.lead(acquire)
        yield
    finally:
        lock.release()


def work(database: Database, run_id: int, ranks: Ranks = ALONE) -> RunStatus:
    """Carry out a run of the database and return how it ended; the next waiting run is started.

    Whatever goes wrong is stored on the run: its kind and what to do about it; the traceback goes
    to the log.

    Args:
        database: Where the run is.
        run_id: Which run.
        ranks: The processes that train together; the leader alone touches the database.

    Raises:
        ConflictError: if nobody claimed the run, it has ended, or another process is at work on it.
    """
    folder = RunFolder(database.settings.run_dir(run_id))
    files = FileRecorder(folder.metrics)
    if not ranks.is_leader:
        stop_on_signals(files, ranks)
        return ENDINGS[run_folder(folder, files, database.settings, ranks)]
    recorder = DatabaseRecorder(database, run_id, files)
    stop_on_signals(recorder)
    _claim(database, run_id)
    with kept_small(folder):
        status, failure = _carry_out(database, run_id, folder, recorder, ranks)
        kind, text = (failure.kind, failure.text) if failure else (None, "")
        patiently(
            lambda: commands.end_run(database, run_id, status, error_kind=kind, error_text=text)
        )
    start_waiting(database)
    tell(database, run_id)
    start_judging(database, run_id)
    return queries.run(database, run_id).status


def _carry_out(
    database: Database,
    run_id: int,
    folder: RunFolder,
    recorder: DatabaseRecorder,
    ranks: Ranks,
) -> tuple[RunStatus, Failure | None]:
    """Train; return how it ended and, if it failed, why."""
    run = queries.run(database, run_id)
    try:
        recorder.note(f"attempt {run.attempt} of run {run_id}, process {os.getpid()}")
        folder.require()
        if sha256_of(folder.data) != run.snapshot_sha256:
            raise BadDataError(
                "the run's own copy of the data was changed after the launch",
                where=str(folder.data),
                remedy="Launch the run anew.",
            )
        if make_room(database.settings, run.device):
            recorder.note(f"the chat has left the {run.device} to this run")
        with recorder.recording():
            ending = run_folder(folder, recorder, database.settings, ranks)
        _record_artifacts(database, run_id, folder)
        return ENDINGS[ending], None
    except KeyboardInterrupt:  # told to end twice: at once, without another checkpoint
        return RunStatus.STOPPED, None
    except Exception as error:  # noqa: BLE001 - the process edge: the failure is stored on the run
        with suppress(OSError):  # the log may be on the disk that is full
            traceback.print_exc(file=sys.stderr)
        return RunStatus.FAILED, explain(error) if folder.config.exists() else FOLDER_GONE


def _claim(database: Database, run_id: int) -> None:
    """Make this process the run's own, unless another one is at work on it."""
    run = queries.run(database, run_id)
    pid, started_at = run.pid, run.process_started_at
    if pid not in (None, os.getpid()) and started_at and is_alive(pid, started_at):
        raise _taken(run)
    commands.begin_run(database, run_id)
    is_ours = commands.record_process(
        database,
        run_id,
        pid=os.getpid(),
        process_started_at=own_start_time(),
        machine=own_machine(),
        instead_of=pid,
    )
    if not is_ours:
        raise _taken(queries.run(database, run_id))


def _taken(run: Run) -> ConflictError:
    return ConflictError(
        f"process {run.pid} is at work on it",
        where=f"run {run.id}",
        remedy="Wait for its end, or stop it on its page.",
    )


def stop_on_signals(recorder: DatabaseRecorder | FileRecorder, ranks: Ranks = ALONE) -> None:
    """Turn SIGTERM and Ctrl+C into a stop request, honoured with a checkpoint.

    Where a stop was asked for already, they end the process at once, leaving its last checkpoint.
    Launchers send the signal to every rank; the others wait for the leader to hand it on.
    """
    if not ranks.is_leader:
        signal.signal(signal.SIGTERM, signal.SIG_IGN)
        signal.signal(signal.SIGINT, signal.SIG_IGN)
        return

    def stop(_signal: int, _frame: FrameType | None) -> None:
        if recorder.stop():
            raise KeyboardInterrupt

    signal.signal(signal.SIGTERM, stop)
    signal.signal(signal.SIGINT, stop)
    signal.pthread_sigmask(signal.SIG_UNBLOCK, {signal.SIGTERM})  # the launcher held it back


def _record_artifacts(database: Database, run_id: int, folder: RunFolder) -> None:
    kinds = {
        ArtifactKind.ADAPTER: folder.adapter,
        ArtifactKind.METRICS: folder.metrics,
        ArtifactKind.SAMPLES: folder.samples,
        ArtifactKind.SUMMARY: folder.summary,
    }
    for kind, path in kinds.items():
        if path.exists():
            commands.add_artifact(
                database,
                run_id,
                kind=kind,
                path=path.relative_to(folder.path).as_posix(),
                sha256=sha256_of(path),
                size_bytes=size_of(path),
            )
