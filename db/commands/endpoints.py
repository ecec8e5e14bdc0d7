"""Naming and forgetting training services on other machines."""

import re

from db.engine import Database
from db.errors import DataError
from db.models import EndpointTable
from db.records import Endpoint
from db.web_address import address_problem

NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9 ._-]{0,39}")
VARIABLE = re.compile(r"[A-Za-z_][A-Za-z0-9_]{0,99}")


def set_endpoint(db: Database, name: str, *, base_url: str, key_variable: str) -> Endpoint:
    """Add an endpoint, or change the one of this name.

    Args:
        db: The database.
        name: What people call it.
        base_url: Where it answers.
        key_variable: Name of the environment variable that holds its key; may be empty.

    Raises:
        DataError: if one of the three cannot be used; the first one is told.
    """
    endpoint = Endpoint(
        name=name.strip(), base_url=base_url.strip().rstrip("/"), key_variable=key_variable.strip()
    )
    _check(endpoint)
    with db.session() as session:
        row = session.get(EndpointTable, endpoint.name)
        if row is None:
            row = EndpointTable(name=endpoint.name)
            session.add(row)
        row.base_url, row.key_variable = endpoint.base_url, endpoint.key_variable
    return endpoint


def forget_endpoint(db: Database, name: str) -> None:
    """Forget an endpoint; runs that were sent there keep its name. None of that name is no error."""
    with db.session() as session:
        row = session.get(EndpointTable, name)
        if row is not None:
            session.delete(row)


def _check(endpoint: Endpoint) -> None:
    if not NAME.fullmatch(endpoint.name):
        raise DataError(
            "this cannot be an endpoint's name",
            where="name",
            remedy="Give 1 to 40 letters, digits, spaces, dots, hyphens or underscores.",
        )
    problem = address_problem(endpoint.base_url)
    if problem:
        raise DataError(
            problem, where="address", remedy="Give it like https://cluster.example.com:8000."
        )
    if endpoint.key_variable and not VARIABLE.fullmatch(endpoint.key_variable):
        raise DataError(
            "this is no name of an environment variable",
            where="variable with the key",
            remedy="Give a name such as TINKER_API_KEY, never the key itself.",
        )
