"""Where saved states and adapters lie, and how they get there whole or not at all."""

import os
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from enum import StrEnum
from pathlib import Path

from db.settings import Settings
from trainer.adapter_config import CONFIG_FILE
from trainer.errors import CheckpointError, ConfigError, shortened

STATE_FILE = "state.json"
"""What a saved state holds and an adapter alone does not."""

LONGEST_NAME = 255
"""What file systems allow."""


class Saved(StrEnum):
    """What a folder holds; the value is where folders with bare names lie in the home.

    In the remote API the two have names of their own as well: a state and an adapter may both be
    called "final".
    """

    STATE = "states"
    ADAPTER = "adapters"

    def is_in(self, folder: Path) -> bool:
        """Return whether that is what a folder holds."""
        file = STATE_FILE if self is Saved.STATE else CONFIG_FILE
        holds_state = (folder / STATE_FILE).is_file()
        return (folder / file).is_file() and holds_state == (self is Saved.STATE)


@contextmanager
def new_folder(path: Path, kind: Saved) -> Iterator[Path]:
    """Yield a folder that becomes `path` when the block ends, and vanishes if it raises.

    A folder of the same kind that is there already is replaced, and nothing else. The run's
    checkpoints, which must survive a power cut, are wrapped once more by their owner.

    Raises:
        CheckpointError: if something else is there, or the folder cannot be made.
    """
    _require_replaceable(path, kind)
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        scratch_folder = tempfile.TemporaryDirectory(prefix=".saving-", dir=path.parent)
    except OSError as error:
        raise CheckpointError(
            f"the folder cannot be made ({error.strerror})",
            where=str(path),
            remedy="Choose a place that you may write to.",
        ) from error
    with scratch_folder as scratch:
        unfinished = Path(scratch) / "new"
        unfinished.mkdir()
        yield unfinished
        if path.exists():
            path.rename(Path(scratch) / "replaced")
        unfinished.rename(path)


def saved_folder(settings: Settings, name: str, kind: Saved) -> Path:
    """Return where a saved state or adapter lies: a path as it is, a bare name in the home.

    Raises:
        ConfigError: if it is no name and no path.
    """
    try:
        text = os.fspath(name)
        path = Path(text).expanduser()
        if path.name in ("", "..") or "\0" in text or "://" in text:
            raise ValueError("no folder is called so")
        if len(os.fsencode(path.name)) > LONGEST_NAME:
            raise ValueError(f"it is longer than {LONGEST_NAME} bytes")
        folder = settings.home / kind / text if path.name == text else path.resolve()
    except (TypeError, ValueError, RuntimeError, OSError) as error:
        raise ConfigError(
            f"{shortened(repr(name))} is no name and no path of a folder ({error})",
            where="name",
            remedy="Give a name such as 'final', or the path of a folder.",
        ) from error
    return folder


def _require_replaceable(path: Path, kind: Saved) -> None:
    if not path.exists() or kind.is_in(path) or (path.is_dir() and not any(path.iterdir())):
        return
    what = "a saved state" if kind is Saved.STATE else "an adapter"
    raise CheckpointError(
        f"something that is not {what} is there already",
        where=str(path),
        remedy="Choose another name or folder; only what is of the same kind is replaced.",
    )
