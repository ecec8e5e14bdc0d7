"""The end of a run's traces: its row with all figures, and its folder. No torch."""

import shutil

from db import commands
from db.engine import Database


def remove_run(database: Database, run_id: int) -> None:
    """Delete a run that has no process, with its figures, samples, checkpoints and adapter.

    The row goes first: a folder without a row is only wasted space, a row without its folder
    would be a broken page.

    Raises:
        NotFoundError: if the run does not exist (any more).
        ConflictError: while it has a process.
    """
    commands.delete_run(database, run_id)
    shutil.rmtree(database.settings.run_dir(run_id), ignore_errors=True)
