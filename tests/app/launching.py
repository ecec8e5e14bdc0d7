"""What several tests of the launch page share: its widgets, and children that stand for counts."""

import json
import subprocess
import sys
import tempfile
from pathlib import Path

from app import token_counts
from app.token_counts import CountJob
from trainer import catalog


def button(page, label: str):
    return next(b for b in page.button if b.label == label)


def texts(elements) -> str:
    return "\n".join(str(element.value) for element in elements)


def child(script: str) -> CountJob:
    folder = tempfile.TemporaryDirectory()
    root = Path(folder.name)
    with (root / "out.json").open("wb") as out, (root / "err.txt").open("wb") as err:
        process = subprocess.Popen([sys.executable, "-c", script], stdout=out, stderr=err)
    return CountJob(process=process, folder=folder)


def done(document: dict) -> CountJob:
    job = child(f"print({json.dumps(document)!r})")
    job.process.wait()
    return job


def given(monkeypatch, counting: CountJob, estimating: CountJob) -> None:
    """Let these jobs stand for the children, and the model pass for being on this machine."""
    monkeypatch.setattr(catalog, "is_model_folder", lambda folder: True)
    monkeypatch.setattr(
        token_counts,
        "_start",
        lambda text, config, *, estimate: estimating if estimate else counting,
    )
