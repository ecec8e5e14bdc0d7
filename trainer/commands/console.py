"""What the command line says, on standard error: progress in lines, a failure in one."""

import sys

from trainer.runs.process import is_leader


def say(line: str) -> None:
    """Say a line; of several ranks that run into the same, one says so."""
    if is_leader():
        print(line, file=sys.stderr, flush=True)


def fail(line: str) -> int:
    """Say what went wrong in one line, and return the exit status for it."""
    say(f"error: {' '.join(line.split())}")
    return 1


def is_id(text: str) -> bool:
    """Return whether a text is the id of a run of the database, and not a folder."""
    return text.isascii() and text.isdigit() and len(text) < 19
