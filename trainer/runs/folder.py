"""The folder of one run: where each file is, and how it is written so that it is never half."""

import hashlib
import json
import os
import shutil
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar

from trainer.errors import CheckpointError, FolderGoneError

T = TypeVar("T")

OLD_LOGS = 2
"""How many full log files stay beside the one that is being written."""


@dataclass(frozen=True, slots=True)
class RunFolder:
    """Names of everything that a run reads and writes."""

    path: Path

    @property
    def config(self) -> Path:
        """The frozen configuration, as JSON."""
        return self.path / "config.json"

    @property
    def data(self) -> Path:
        """The frozen copy of the conversations, in the native format."""
        return self.path / "data.jsonl"

    @property
    def log(self) -> Path:
        """What the run's process printed last."""
        return self.path / "run.log"

    @property
    def logs(self) -> list[Path]:
        """The log files that there are, oldest first (see `trainer.runs.log`)."""
        old = [self.path / f"{self.log.name}.{age}" for age in range(OLD_LOGS, 0, -1)]
        return [path for path in (*old, self.log) if path.exists()]

    @property
    def metrics(self) -> Path:
        """One JSON object per turn and epoch."""
        return self.path / "metrics.jsonl"

    @property
    def steps(self) -> Path:
        """One JSON object per optimiser step."""
        return self.path / "steps.jsonl"

    @property
    def events(self) -> Path:
        """Folder of the files that TensorBoard reads."""
        return self.path / "tensorboard"

    @property
    def held_out(self) -> Path:
        """One JSON object per epoch: how it did on the held-out conversations."""
        return self.path / "held_out.jsonl"

    @property
    def samples(self) -> Path:
        """Answers to a few prompts before and after training."""
        return self.path / "samples.json"

    @property
    def evaluation(self) -> Path:
        """The run's own copy of the fixed set that it is evaluated by, in the native format."""
        return self.path / "evaluation.jsonl"

    @property
    def changes(self) -> Path:
        """How likely scored replies that are not trained on are, before and after training."""
        return self.path / "changes.json"

    @property
    def judgements(self) -> Path:
        """What an automatic judge says of the samples."""
        return self.path / "judge.json"

    @property
    def summary(self) -> Path:
        """Totals of the finished run."""
        return self.path / "summary.json"

    @property
    def adapter(self) -> Path:
        """The trained adapter in PEFT's layout, with tokenizer and model card."""
        return self.path / "adapter"

    @property
    def start(self) -> Path:
        """The run's own copy of the adapter that it started from, if it started from one."""
        return self.path / "start"

    @property
    def checkpoints(self) -> Path:
        """One folder a checkpoint, named by its optimiser step."""
        return self.path / "checkpoints"

    def require(self) -> None:
        """Raise FolderGoneError unless the folder is there with what a run begins from."""
        for file in (self.config, self.data):
            if not file.exists():
                raise FolderGoneError(
                    f"{file.name} is missing: this is not the folder of a run, or part of it "
                    "was deleted",
                    where=str(self.path),
                    remedy="Launch the run anew.",
                )

    def sweep(self) -> None:
        """Remove what a killed process left half-written, and bring back what it was replacing.

        Only for the process that holds the run.
        """
        for parent in (self.path, self.checkpoints):
            if not parent.is_dir():
                continue
            for retired in parent.glob(".*.old"):
                replaced = parent / retired.name[1 : -len(".old")]
                if not replaced.exists():
                    retired.rename(replaced)
            for leftover in [*parent.glob(".*.tmp*"), *parent.glob(".*.old")]:
                if leftover.is_dir():
                    shutil.rmtree(leftover)
                else:
                    leftover.unlink()

    def log_tail(self, lines: int = 20, limit_bytes: int = 64_000) -> str:
        """Return the last lines of the log, empty if there is none."""
        tail = b""
        for path in reversed(self.logs):
            if len(tail) >= limit_bytes or tail.count(b"\n") > lines:
                break
            with suppress(FileNotFoundError), path.open("rb") as file:
                file.seek(0, os.SEEK_END)
                file.seek(max(0, file.tell() + len(tail) - limit_bytes))
                tail = file.read() + tail
        return "\n".join(tail.decode("utf-8", errors="replace").splitlines()[-lines:])

    def whole_log(self) -> bytes:
        """Return all that is kept of what the run printed, oldest first."""
        return b"".join(path.read_bytes() for path in self.logs)


def write_json(path: Path, value: Any) -> None:
    """Write JSON so that a reader sees the old file or the new one, never a part."""
    write_text(path, json.dumps(value, indent=2, ensure_ascii=False) + "\n")


def write_json_lines(path: Path, rows: Sequence[Any]) -> None:
    """Write JSON, one value a line, in the same way."""
    write_text(path, "".join(json.dumps(row, ensure_ascii=False) + "\n" for row in rows))


def write_text(path: Path, text: str) -> None:
    """Write text through a temporary file, flushed to disk, then renamed."""
    temporary = path.with_name(f".{path.name}.tmp")
    with temporary.open("w", encoding="utf-8") as file:
        file.write(text)
        file.flush()
        os.fsync(file.fileno())
    temporary.replace(path)


def read_lines(path: Path, build: Callable[..., T]) -> list[T]:
    """Return what the lines of a file say, each a JSON object that `build` takes as keywords.

    A line that a crash cut short, or that another program damaged, is left out; so is a file that
    is not there.
    """
    try:
        lines = path.read_text(encoding="utf-8", errors="replace").splitlines()
    except OSError:
        return []
    found: list[T] = []
    for line in lines:
        with suppress(ValueError, TypeError, RecursionError):
            found.append(build(**json.loads(line)))
    return found


def read_json(path: Path) -> Any:
    """Read a JSON file of a run.

    Raises:
        CheckpointError: if it is missing or not JSON.
    """
    try:
        return json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError, RecursionError) as error:
        raise CheckpointError(
            f"cannot read it ({error})", where=str(path), remedy="Start the run anew."
        ) from error


@contextmanager
def atomic_folder(path: Path) -> Iterator[Path]:
    """Yield a temporary folder that becomes `path`, whole and on disk, when the block ends.

    An existing folder at `path` is replaced. If the block raises, nothing changes.
    """
    temporary = path.with_name(f".{path.name}.tmp")
    shutil.rmtree(temporary, ignore_errors=True)
    temporary.mkdir(parents=True)
    try:
        yield temporary
        for file in temporary.rglob("*"):
            if file.is_file():
                file.chmod(0o644)  # safetensors writes for the owner alone; others copy it too
            _flush(file)
        _flush(temporary)
    except BaseException:
        shutil.rmtree(temporary, ignore_errors=True)
        raise
    if path.exists():
        retired = path.with_name(f".{path.name}.old")
        shutil.rmtree(retired, ignore_errors=True)
        path.rename(retired)
        temporary.rename(path)
        shutil.rmtree(retired)
    else:
        temporary.rename(path)
    _flush(path.parent)


def sha256_of(path: Path) -> str:
    """Return the SHA-256 of a file, or of a folder's files with their names, as hex."""
    digest = hashlib.sha256()
    files = sorted(p for p in path.rglob("*") if p.is_file()) if path.is_dir() else [path]
    for file in files:
        if path.is_dir():
            digest.update(f"{file.relative_to(path)}\0".encode())
        with file.open("rb") as stream:
            while block := stream.read(1 << 20):
                digest.update(block)
    return digest.hexdigest()


def size_of(path: Path) -> int:
    """Return the size of a file, or of all files of a folder, in bytes."""
    files = path.rglob("*") if path.is_dir() else [path]
    return sum(file.stat().st_size for file in files if file.is_file())


def _flush(path: Path) -> None:
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
