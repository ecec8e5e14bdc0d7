"""The project as a whole: its numbers, its settings and its people."""

from app import auth, permissions
from app.connection import database
from app.data.reading import read
from app.data.runs import reconcile_runs
from db import queries
from db.records import (
    Endpoint,
    Overview,
    Person,
    ProjectSettings,
    Refusal,
    UserSettings,
    Workload,
)


def overview() -> Overview:
    """Return the numbers of the home page."""
    reconcile_runs()
    return read(queries.overview)


def project_settings() -> ProjectSettings:
    """Return what holds for everybody who works on the project."""
    return read(queries.project_settings)


def endpoints() -> list[Endpoint]:
    """Return the endpoints that runs can be sent to, by name."""
    return read(queries.endpoints)


def refusals(*, limit: int) -> list[Refusal]:
    """Return the latest attempts that were refused, newest first; for admins.

    Raises:
        RefusedError: if an annotator asks.
    """
    permissions.require_admin(database(), auth.current_user(), "see the refusals")
    return read(queries.refusals, limit=limit)


def user_settings(*, user_id: int) -> UserSettings:
    """Return what one person has set for themselves."""
    return read(queries.user_settings, user_id=user_id)


def people() -> list[Person]:
    """Return everybody who may sign in or has scored a turn, by name."""
    return read(queries.people)


def workloads() -> list[Workload]:
    """Return how much each person was asked to score and has handled."""
    return read(queries.workloads)
