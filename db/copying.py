"""Every row of one database into another one, also where one is PostgreSQL and one is SQLite."""

from typing import Any

from sqlalchemy import Connection, Table, delete, func, insert, select, text
from sqlalchemy.orm import Session

from db.engine import Database
from db.models import Base

_ROWS_AT_ONCE = 1000


def copy_rows(source: Database, target: Database) -> None:
    """Replace everything in `target` by what `source` holds at one moment, in one transaction.

    Args:
        source: Where the rows are; others may go on writing to it.
        target: A database of the same schema.

    Raises:
        StorageError: if one of them cannot be used; then the target stays as it was.
    """
    with source.read_session() as reading, target.session() as writing:
        rows = reading.connection(execution_options=_one_moment(reading))
        for table in reversed(Base.metadata.sorted_tables):
            writing.execute(delete(table))
        for table in Base.metadata.sorted_tables:
            _copy_table(rows, writing, table)
            _continue_numbers(writing, table)


def _one_moment(session: Session) -> dict[str, Any]:
    """Return what makes all reads see one moment; a SQLite transaction does so anyway."""
    if session.get_bind().dialect.name == "postgresql":
        return {"isolation_level": "REPEATABLE READ"}
    return {}


def _copy_table(rows: Connection, writing: Session, table: Table) -> None:
    # In the order of their keys, rows come after those of the same table that they point at.
    statement = select(table).order_by(*table.primary_key.columns)
    result = rows.execution_options(yield_per=_ROWS_AT_ONCE).execute(statement)
    for chunk in result.mappings().partitions():
        writing.execute(insert(table), [dict(row) for row in chunk])


def _continue_numbers(writing: Session, table: Table) -> None:
    """Let PostgreSQL's sequence go on after the ids that were written; SQLite does by itself."""
    column = table.autoincrement_column
    if column is None or writing.get_bind().dialect.name != "postgresql":
        return
    highest = writing.scalar(select(func.max(column)))
    if highest is not None:
        writing.execute(
            text("SELECT setval(pg_get_serial_sequence(:table, :column), :highest)"),
            {"table": table.name, "column": column.name, "highest": highest},
        )
