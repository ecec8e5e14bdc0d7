"""An exception becomes what the run's page shows: its kind, and words that a person can act on."""

import errno
import os
from dataclasses import dataclass

from db.enums import ErrorKind
from db.errors import DataError, EveryTurnError
from trainer.errors import TrainerError


@dataclass(frozen=True, slots=True)
class Failure:
    """Why a run failed."""

    kind: ErrorKind
    text: str


EVERYDAY = (
    *(errno.ENOENT, errno.ENOTDIR, errno.EISDIR, errno.EEXIST, errno.ENOTEMPTY),
    *(errno.EACCES, errno.EPERM, errno.EROFS, errno.ENAMETOOLONG, errno.EINVAL),
)
"""What the system says of a wrong path: nothing that anybody should report."""


def is_disk_full(error: BaseException) -> bool:
    """Return whether the disk was full; libraries that wrap the system's error keep its words."""
    words = os.strerror(errno.ENOSPC)
    return (isinstance(error, OSError) and error.errno == errno.ENOSPC) or words in str(error)


def explain(error: BaseException) -> Failure:
    """Sort an exception into the kinds that a person can do something about."""
    if isinstance(error, TrainerError):
        return Failure(error.kind, str(error))
    if isinstance(error, DataError):
        return Failure(ErrorKind.BAD_DATA, str(error))
    if isinstance(error, EveryTurnError):
        return Failure(ErrorKind.UNEXPECTED, str(error))
    if isinstance(error, ImportError):
        return Failure(
            ErrorKind.UNEXPECTED,
            f"A package that training needs is missing or broken: {error}. Install what "
            "requirements.txt names (`make run` does it), then resume the run.",
        )
    if isinstance(error, MemoryError):
        return Failure(
            ErrorKind.OUT_OF_MEMORY,
            "The machine ran out of memory. Halve the setting token_budget (Tokens a pass), or "
            "leave out the longest conversations.",
        )
    if is_disk_full(error):
        return Failure(
            ErrorKind.DISK_FULL,
            "No space is left on the disk that holds the run's folder. Free some space, then "
            "resume the run or launch it again.",
        )
    if isinstance(error, OSError) and error.errno in EVERYDAY:
        return Failure(
            ErrorKind.UNEXPECTED,
            f"{error.filename or 'A file'}: {(error.strerror or 'it cannot be used').lower()}. "
            "Check the name, that it exists, and its permissions.",
        )
    return Failure(
        ErrorKind.UNEXPECTED,
        f"{type(error).__name__}: {error}. This should not happen: the log has the details; "
        "please report it.",
    )
