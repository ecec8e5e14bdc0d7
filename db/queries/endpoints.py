"""Training services on other machines."""

from sqlalchemy import select

from db.engine import Database
from db.errors import NotFoundError
from db.models import EndpointTable
from db.records import Endpoint


def endpoints(db: Database) -> list[Endpoint]:
    """Return all endpoints, by name."""
    with db.read_session() as session:
        return [_record(row) for row in session.scalars(select(EndpointTable).order_by("name"))]


def endpoint(db: Database, name: str) -> Endpoint:
    """Return one endpoint.

    Raises:
        NotFoundError: if there is none of this name (any more).
    """
    with db.read_session() as session:
        row = session.get(EndpointTable, name)
        if row is None:
            raise NotFoundError(
                f"there is no endpoint called {name!r}",
                where="endpoints",
                remedy="Add it under Settings, in the tab Endpoints, or choose another one.",
            )
        return _record(row)


def _record(row: EndpointTable) -> Endpoint:
    return Endpoint(name=row.name, base_url=row.base_url, key_variable=row.key_variable)
