"""What all tables share: the base class, its rules for names, and the clock."""

from datetime import UTC, datetime

from sqlalchemy import (
    MetaData,
)
from sqlalchemy.orm import DeclarativeBase

from db.columns import CleanText, UtcDateTime, enum_column
from db.enums import (
    ArtifactKind,
    CollectionState,
    ErrorKind,
    ImportState,
    ReviewState,
    Role,
    RunStatus,
    StopStage,
    UserRole,
)

NEVER_REUSE_IDS = {"sqlite_autoincrement": True}
"""Addresses and run folders carry ids, so the id of a deleted row must not come back."""


def now() -> datetime:
    """Return the present time (UTC)."""
    return datetime.now(UTC)


class Base(DeclarativeBase):
    """Base of the tables; constraints get names by rule, so that migrations can address them."""

    metadata = MetaData(
        naming_convention={
            "ix": "ix_%(table_name)s_%(column_0_N_name)s",
            "uq": "uq_%(table_name)s_%(column_0_N_name)s",
            "ck": "ck_%(table_name)s_%(constraint_name)s",
            "fk": "fk_%(table_name)s_%(column_0_name)s",
            "pk": "pk_%(table_name)s",
        }
    )
    type_annotation_map = {  # noqa: RUF012 - SQLAlchemy reads it from the class
        str: CleanText(),
        datetime: UtcDateTime(),
        UserRole: enum_column(UserRole),
        Role: enum_column(Role),
        ReviewState: enum_column(ReviewState),
        RunStatus: enum_column(RunStatus),
        StopStage: enum_column(StopStage),
        ImportState: enum_column(ImportState),
        CollectionState: enum_column(CollectionState),
        ErrorKind: enum_column(ErrorKind),
        ArtifactKind: enum_column(ArtifactKind),
    }
