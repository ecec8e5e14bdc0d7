"""Many rows into one table at the driver's own speed, past everything that works row by row.

Whoever calls this hands over values as the columns store them: clean text, JSON as text, times by
`stored_time`, and every column that has no default in the database itself.
"""

from collections.abc import Sequence
from datetime import UTC, datetime
from typing import Any, cast

from sqlalchemy import Table
from sqlalchemy.orm import Session

from db.models import Base


def insert_many(
    session: Session,
    table: type[Base],
    columns: Sequence[str],
    rows: Sequence[tuple[Any, ...]],
) -> None:
    """Insert rows whose values are in the order of `columns`."""
    if not rows:
        return
    mark = "?" if _is_sqlite(session) else "%s"
    statement = (
        f"INSERT INTO {cast(Table, table.__table__).name} ({', '.join(columns)})"
        f" VALUES ({', '.join([mark] * len(columns))})"
    )
    session.connection().exec_driver_sql(statement, list(rows))


def stored_time(session: Session, time: datetime) -> datetime | str:
    """Return a time as its column stores it: SQLite has no times, only texts, all of them UTC."""
    utc = time.astimezone(UTC)
    if _is_sqlite(session):
        return utc.replace(tzinfo=None).isoformat(" ", "microseconds")
    return utc


def _is_sqlite(session: Session) -> bool:
    return session.get_bind().dialect.name == "sqlite"
