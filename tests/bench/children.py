"""Measurements in processes of their own, started as a run's process is; no torch here.

A process's peak memory never goes down, so that each is asked once; and malloc reads its settings
only when a process starts.
"""

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

from trainer.compute_environment import COMPUTE_ENVIRONMENT

ROOT = Path(__file__).parents[2]


def in_child(*arguments: str) -> Any:
    """Return what `python -m tests.bench ARGUMENTS` prints as JSON; its progress is passed on.

    Raises:
        subprocess.CalledProcessError: if it fails; it has said why by then.
    """
    done = subprocess.run(
        [sys.executable, "-m", "tests.bench", *arguments],
        cwd=ROOT,
        env={**COMPUTE_ENVIRONMENT, **os.environ},
        stdout=subprocess.PIPE,
        check=True,
    )
    return json.loads(done.stdout)
