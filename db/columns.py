"""Column types that keep what enters the database well-formed."""

from datetime import UTC, datetime
from enum import StrEnum
from typing import Any

from sqlalchemy import JSON, DateTime, Dialect, Enum, Text, TypeDecorator

from db.text import clean, clean_json


class UtcDateTime(TypeDecorator[datetime]):
    """An aware datetime, stored in UTC; a naive one is refused rather than guessed at."""

    impl = DateTime(timezone=True)
    cache_ok = True

    def process_bind_param(self, value: datetime | None, dialect: Dialect) -> datetime | None:
        """Convert to UTC; SQLite has no time zones, so it gets the bare UTC time."""
        if value is None:
            return None
        if value.tzinfo is None:
            raise ValueError(f"{value!r} has no time zone")
        utc = value.astimezone(UTC)
        return utc.replace(tzinfo=None) if dialect.name == "sqlite" else utc

    def process_result_value(self, value: datetime | None, dialect: Dialect) -> datetime | None:
        """Return the time as an aware UTC datetime."""
        if value is None:
            return None
        return value.replace(tzinfo=UTC) if value.tzinfo is None else value.astimezone(UTC)


class CleanText(TypeDecorator[str]):
    """Text without NUL characters and lone surrogates (see `db.text.clean`)."""

    impl = Text
    cache_ok = True

    def process_bind_param(self, value: str | None, dialect: Dialect) -> str | None:
        """Replace what no database can store."""
        return None if value is None else clean(value)


class CleanJson(TypeDecorator[Any]):
    """JSON data whose texts are clean; Python's None is SQL's NULL."""

    impl = JSON(none_as_null=True)
    cache_ok = True

    def process_bind_param(self, value: Any, dialect: Dialect) -> Any:
        """Replace what no database can store."""
        return clean_json(value)


def enum_column(kind: type[StrEnum]) -> Enum:
    """Return the type of a column that holds one of an enumeration's values as text.

    There is no database-side check: a new member needs no migration.
    """
    return Enum(
        kind,
        native_enum=False,
        create_constraint=False,
        length=32,
        values_callable=_values,
    )


def _values(members: type[StrEnum]) -> list[str]:
    return [member.value for member in members]
