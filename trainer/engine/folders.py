"""Where saved states and adapters lie, and how they get there whole or not at all."""

import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from db.settings import Settings


@contextmanager
def new_folder(path: Path) -> Iterator[Path]:
    """Yield a folder that becomes `path` when the block ends, and vanishes if it raises.

    A folder that is there already is replaced. The run's checkpoints, which must survive a power
    cut, are wrapped once more by their owner.
    """
    path.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(prefix=f".{path.name}-", dir=path.parent) as scratch:
        unfinished = Path(scratch) / path.name
        unfinished.mkdir()
        yield unfinished
        if path.exists():
            path.rename(Path(scratch) / "replaced")
        unfinished.rename(path)


def saved_folder(settings: Settings, name: str) -> Path:
    """Return where a saved state or adapter lies: a path as it is, a bare name in the home."""
    path = Path(name).expanduser()
    is_bare = path.name == name
    return settings.home / "adapters" / name if is_bare else path.resolve()
