"""What Alembic runs for each command; the connection comes from the caller."""

from typing import Any, Literal

from alembic import context
from sqlalchemy import Connection, Enum, TypeDecorator

from db.models import Base


def _plain_type(kind: str, item: object, _context: Any) -> str | Literal[False]:
    """Render our column types as the plain ones below: a revision must not change with the code."""
    if kind != "type":
        return False
    if isinstance(item, Enum):
        return f"sa.String(length={item.length})"
    if isinstance(item, TypeDecorator):
        time_zone = "timezone=True" if item.impl_instance.__visit_name__ == "datetime" else ""
        return f"sa.{type(item.impl_instance).__name__}({time_zone})"
    return False


def _run() -> None:
    connection: Connection = context.config.attributes["connection"]
    context.configure(
        connection=connection,
        target_metadata=Base.metadata,
        render_as_batch=True,
        compare_type=True,
        render_item=_plain_type,
    )
    with context.begin_transaction():
        context.run_migrations()


_run()
