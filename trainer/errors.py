"""What can go wrong in a run, sorted by what a person can do about it."""

import re

from db.enums import ErrorKind
from db.errors import EveryTurnError


def shortened(text: str, limit: int = 80) -> str:
    """Return a text that came from outside, cut so that an error stays one readable line."""
    return text if len(text) <= limit else f"{text[:limit]}…"


class TrainerError(EveryTurnError):
    """Base of the trainer's errors; `kind` is what the run's row and page show."""

    kind = ErrorKind.UNEXPECTED


class ConfigError(TrainerError):
    """A setting is unknown, has the wrong type or lies outside its range."""

    kind = ErrorKind.BAD_CONFIG


class BadDataError(TrainerError):
    """The conversations cannot be trained on as they are."""

    kind = ErrorKind.BAD_DATA


class ModelError(TrainerError):
    """A base model is unknown, not available here, gated, damaged or unsuitable."""

    kind = ErrorKind.MODEL


class ChatTemplateError(ModelError):
    """The model has no chat template, or its template cannot render a conversation."""

    kind = ErrorKind.CHAT_TEMPLATE


class OutOfMemoryError(TrainerError):
    """The pass did not fit into memory."""

    kind = ErrorKind.OUT_OF_MEMORY


SMALLEST_TOKEN_BUDGET = 16
_LOWER_BUDGET = "Lower 'Tokens a pass' (token_budget) to {}"


def pass_too_large(what: str, tokens: int) -> OutOfMemoryError:
    """Return the error that says that a pass over so many tokens needs too much memory."""
    lower = _LOWER_BUDGET.format(max(SMALLEST_TOKEN_BUDGET, tokens // 2))
    return OutOfMemoryError(
        f"a pass over {tokens} tokens {what}",
        where="forward and backward pass",
        remedy=f"{lower}, or shorten the longest conversation, or choose a smaller model.",
    )


def token_budget_of(text: str) -> int | None:
    """Return the setting that the text of such an error asks for; None if it is another text."""
    found = re.search(re.escape(_LOWER_BUDGET).replace(r"\{\}", r"(\d+)"), text)
    return int(found[1]) if found else None


class NotFiniteError(TrainerError):
    """NaN or Inf turned up in a loss, gradient or weight.

    Args:
        what: As in `EveryTurnError`, and so are `where` and `remedy`.
        datum: Which datum of the pass it came from, None if that cannot be told.
    """

    kind = ErrorKind.NOT_A_NUMBER

    def __init__(
        self, what: str, *, where: str = "", remedy: str = "", datum: int | None = None
    ) -> None:
        """Keep the datum's index beside the three parts of the message."""
        super().__init__(what, where=where, remedy=remedy)
        self.datum = datum


class DiskFullError(TrainerError):
    """A file of the run could not be written for want of space."""

    kind = ErrorKind.DISK_FULL


class FolderGoneError(TrainerError):
    """The run's folder, or what it begins from, was deleted."""

    kind = ErrorKind.FOLDER_GONE


class EndpointError(TrainerError):
    """A training service on another machine refuses, or cannot be used as it is."""

    kind = ErrorKind.ENDPOINT


class EndpointLostError(EndpointError):
    """The service was lost or has lost the run's weights: going on from a checkpoint may help."""


class CheckpointError(TrainerError):
    """A checkpoint or adapter folder is missing, incomplete or of another run."""
