"""A run's adapter as one file for the browser. No torch."""

import io
import zipfile
from pathlib import Path

from trainer.errors import CheckpointError
from trainer.runs.folder import RunFolder


def zip_adapter(run_dir: Path) -> bytes:
    """Return a zip of the adapter folder (weights, tokenizer, chat template, card), with the
    run's configuration and summary beside it.

    Raises:
        CheckpointError: if the run has no adapter.
    """
    folder = RunFolder(run_dir)
    if not folder.adapter.is_dir():
        raise CheckpointError(
            "this run has no adapter (yet)", where=f"run {run_dir.name}", remedy="Let it finish."
        )
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", zipfile.ZIP_DEFLATED) as archive:
        for file in sorted(folder.adapter.rglob("*")):
            archive.write(file, file.relative_to(folder.adapter))
        for file in (folder.config, folder.summary):
            if file.exists():  # the adapter is whole without them
                archive.write(file, f"everyturn_{file.name}")
    return buffer.getvalue()


def zip_folder(folder: Path) -> bytes:
    """Return a zip of a folder's files; weights hardly shrink, so nothing is compressed."""
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", zipfile.ZIP_STORED) as archive:
        for file in sorted(file for file in folder.rglob("*") if file.is_file()):
            archive.write(file, file.relative_to(folder))
    return buffer.getvalue()
