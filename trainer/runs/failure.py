"""An exception becomes what the run's page shows: its kind, and words that a person can act on."""

import errno
from dataclasses import dataclass

from db.enums import ErrorKind
from db.errors import DataError, EveryTurnError
from trainer.errors import TrainerError


@dataclass(frozen=True, slots=True)
class Failure:
    """Why a run failed."""

    kind: ErrorKind
    text: str


def explain(error: BaseException) -> Failure:
    """Sort an exception into the kinds that a person can do something about."""
    if isinstance(error, TrainerError):
        return Failure(error.kind, str(error))
    if isinstance(error, DataError):
        return Failure(ErrorKind.BAD_DATA, str(error))
    if isinstance(error, EveryTurnError):
        return Failure(ErrorKind.UNEXPECTED, str(error))
    if isinstance(error, MemoryError):
        return Failure(
            ErrorKind.OUT_OF_MEMORY,
            "The machine ran out of memory. Halve the setting token_budget (Tokens a pass), or "
            "leave out the longest conversations.",
        )
    if isinstance(error, OSError) and error.errno == errno.ENOSPC:
        return Failure(
            ErrorKind.DISK_FULL,
            f"No space is left on the disk (writing {error.filename or 'a file of the run'}). "
            "Free some space, then resume the run.",
        )
    return Failure(
        ErrorKind.UNEXPECTED,
        f"{type(error).__name__}: {error}. This should not happen: the log has the details; "
        "please report it.",
    )
