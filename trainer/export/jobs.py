"""Exports and uploads that the app asks for: a process each, whose outcome files tell. No torch."""

import os
import shutil
import subprocess
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path

from filelock import FileLock

from db.errors import ConflictError, StorageError
from db.settings import Settings
from trainer.compute_environment import COMPUTE_ENVIRONMENT
from trainer.export.usage import Form, GgufType
from trainer.runs.folder import RunFolder, write_text
from trainer.runs.process import (
    Mark,
    Sign,
    end,
    own_environment,
    own_machine,
    reap_in_time,
    start_time,
)

ERROR = "error: "
UPLOADED = "Uploaded to "
_DIED = (
    "Its process ended without a word: something killed it, most often because the machine's memory "
    "ran out. Nothing half is left; start it again."
)


class JobState(StrEnum):
    """Where an export or an upload stands."""

    NONE = "none"
    UNDER_WAY = "under way"
    DONE = "done"
    FAILED = "failed"


@dataclass(frozen=True, slots=True)
class Job:
    """One export or upload.

    Attributes:
        state: Where it stands.
        message: What it does now, how it was checked, or why it failed.
    """

    state: JobState
    message: str = ""


@dataclass(frozen=True, slots=True)
class Export:
    """One form of a run's model, and where it lies once it is made.

    Attributes:
        run: The run's folder.
        form: What it is.
        gguf_type: How a GGUF file holds its matrices; without effect on other forms.
    """

    run: RunFolder
    form: Form
    gguf_type: GgufType = GgufType.F16

    @property
    def name(self) -> str:
        """The name of its folder."""
        is_gguf = self.form in (Form.GGUF, Form.GGUF_ADAPTER)
        return f"{self.form.value}-{self.gguf_type.value}" if is_gguf else self.form.value

    @property
    def folder(self) -> Path:
        """Where it lies; there only once it is whole and checked."""
        return self.run.path / "exports" / self.name


def export_job(wanted: Export) -> Job:
    """Return where an export stands."""
    if wanted.folder.is_dir():
        return Job(JobState.DONE, _last_line(wanted.folder, "export"))
    return _of_process(wanted.folder, "export")


def upload_job(wanted: Export) -> Job:
    """Return where the latest upload of an export stands."""
    said = _last_line(wanted.folder, "upload")
    if said.startswith(UPLOADED):
        return Job(JobState.DONE, said)
    return _of_process(wanted.folder, "upload")


def start_export(settings: Settings, wanted: Export) -> None:
    """Make an export, unless it is there or under way: two clicks make one.

    Raises:
        StorageError: if its process cannot be started.
    """
    arguments = ["export", str(wanted.run.path), "--to", wanted.form.value]
    arguments += ["--type", wanted.gguf_type.value, "--out", str(wanted.folder)]
    with _alone(wanted):
        if export_job(wanted).state not in (JobState.DONE, JobState.UNDER_WAY):
            _start(settings, wanted.folder, "export", arguments)


def start_upload(
    settings: Settings, wanted: Export, repository: str, token: str, *, public: bool
) -> None:
    """Upload an export to the hub; the token goes to the process through a pipe and is kept nowhere.

    Raises:
        StorageError: if its process cannot be started.
    """
    arguments = ["push", str(wanted.folder), repository, *(["--public"] if public else [])]
    with _alone(wanted):
        if upload_job(wanted).state is not JobState.UNDER_WAY:
            _start(settings, wanted.folder, "upload", arguments, said=f"{token.strip()}\n")


def cancel_export(wanted: Export) -> None:
    """End an export that is under way; what it wrote so far goes."""
    _end(wanted.folder, "export")


def remove_export(wanted: Export) -> None:
    """Delete an export.

    Raises:
        ConflictError: while it is uploaded.
    """
    with _alone(wanted):
        if upload_job(wanted).state is JobState.UNDER_WAY:
            raise ConflictError(
                "it is being uploaded", where=wanted.name, remedy="Wait for the end of that."
            )
        shutil.rmtree(wanted.folder, ignore_errors=True)
        for kind in ("export", "upload"):
            for ending in ("log", "process"):
                _file(wanted.folder, kind, ending).unlink(missing_ok=True)


def _alone(wanted: Export) -> FileLock:
    try:
        wanted.folder.parent.mkdir(exist_ok=True)
    except OSError as error:
        raise _not_started(wanted.folder, error) from error
    return FileLock(wanted.folder.parent / ".lock")


def _start(
    settings: Settings, folder: Path, kind: str, arguments: Sequence[str], *, said: str = ""
) -> None:
    try:
        with _file(folder, kind, "log").open("wb") as log:
            process = subprocess.Popen(
                [sys.executable, "-m", "trainer", *arguments],
                stdin=subprocess.PIPE,
                stdout=log,
                stderr=subprocess.STDOUT,
                start_new_session=True,
                env={
                    **COMPUTE_ENVIRONMENT,
                    **own_environment(),
                    "EVERYTURN_HOME": str(settings.home),
                    "PYTHONUNBUFFERED": "1",
                },
            )
        started_at = start_time(process.pid) or 0.0
        mark = Mark(machine=own_machine(), pid=process.pid, started_at=started_at)
        write_text(_file(folder, kind, "process"), str(mark))
    except OSError as error:
        raise _not_started(folder, error) from error
    assert process.stdin is not None
    with process.stdin as pipe:
        pipe.write(said.encode())
    reap_in_time(process.pid)


def _not_started(folder: Path, error: OSError) -> StorageError:
    return StorageError(
        f"it cannot be started ({error.strerror})",
        where=str(folder.parent),
        remedy="Check that the disk has space and the folder can be written.",
    )


def _of_process(folder: Path, kind: str) -> Job:
    file = _file(folder, kind, "process")
    if not file.exists():
        return Job(JobState.NONE)
    said = _last_line(folder, kind)
    if Mark.from_text(file.read_text(encoding="utf-8")).sign() in (Sign.ALIVE, Sign.ELSEWHERE):
        return Job(JobState.UNDER_WAY, said)
    return Job(JobState.FAILED, said.removeprefix(ERROR) if said.startswith(ERROR) else _DIED)


def _end(folder: Path, kind: str) -> None:
    file = _file(folder, kind, "process")
    if not file.exists():
        return
    mark = Mark.from_text(file.read_text(encoding="utf-8"))
    if mark.machine == own_machine():
        end(mark.pid, mark.started_at, force=True)
    file.unlink(missing_ok=True)
    shutil.rmtree(folder.with_name(f".{folder.name}.tmp"), ignore_errors=True)


def _last_line(folder: Path, kind: str) -> str:
    log = _file(folder, kind, "log")
    if not log.exists():
        return ""
    with log.open("rb") as file:
        file.seek(0, os.SEEK_END)
        file.seek(max(0, file.tell() - 4000))
        lines = file.read().decode("utf-8", errors="replace").splitlines()
    return next((line.strip() for line in reversed(lines) if line.strip()), "")


def _file(folder: Path, kind: str, ending: str) -> Path:
    return folder.with_name(f"{folder.name}.{kind}.{ending}")
