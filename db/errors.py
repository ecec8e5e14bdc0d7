"""The root of EveryTurn's exception tree, and the errors that the data layer raises."""


class EveryTurnError(Exception):
    """Something a person can act on: what happened, where, and what to do next.

    Args:
        what: One sentence without a full stop: what happened.
        where: The place a person would look at ("line 3, column 7", "conversation 'x', turn 2").
        remedy: One sentence: what to do next.
    """

    def __init__(self, what: str, *, where: str = "", remedy: str = "") -> None:
        """Keep the three parts; `str()` joins them into one readable line."""
        super().__init__(what, where, remedy)
        self.what = what
        self.where = where
        self.remedy = remedy

    def __str__(self) -> str:
        """Return "where: what. remedy" on one line, leaving out what is empty."""
        sentence = f"{self.where}: {self.what}" if self.where else self.what
        return f"{sentence.rstrip('.')}. {self.remedy}" if self.remedy else sentence


class DataError(EveryTurnError):
    """A conversation, score or file does not have the form it must have."""


class NotFoundError(EveryTurnError):
    """A row that was asked for is not in the database (any more)."""


class ConflictError(EveryTurnError):
    """The row's present state forbids the change (for example: delete a run that is running)."""


class SettingsError(EveryTurnError):
    """An environment variable or a folder that EveryTurn needs cannot be used."""


class StorageError(EveryTurnError):
    """The database itself cannot be read or written (disk full, locked, damaged, unreachable)."""
