"""Ids for rows that are about to be inserted, so that nothing has to be read back afterwards."""

from collections.abc import Sequence
from typing import cast

from sqlalchemy import Table, func, select, text
from sqlalchemy.orm import Session

from db.models import Base


def reserve_ids(session: Session, table: type[Base], count: int) -> Sequence[int]:
    """Return the next `count` ids of a table whose ids are never used again.

    On SQLite they are free as long as the caller's transaction, which holds the write lock, inserts
    them before anything else into that table. On PostgreSQL its sequence has moved on for good.
    """
    name = cast(Table, table.__table__).name
    if session.get_bind().dialect.name == "postgresql":
        sequence = func.pg_get_serial_sequence(name, "id")
        series = func.generate_series(1, count).table_valued("number")
        return session.scalars(select(func.nextval(sequence)).select_from(series)).all()
    last = session.scalar(
        text("SELECT seq FROM sqlite_sequence WHERE name = :name"), {"name": name}
    )
    first = (last or 0) + 1
    return range(first, first + count)
