"""Raters by name."""

from collections.abc import Iterable

from sqlalchemy import select
from sqlalchemy.orm import Session

from db.enums import UserRole
from db.models import UserTable
from db.text import clean


def user_ids(session: Session, names: Iterable[str]) -> dict[str, int]:
    """Return the id of each (cleaned) name; names that are new become annotators."""
    wanted = sorted({clean(name) for name in names})
    found: dict[str, int] = {}
    for start in range(0, len(wanted), 500):
        chunk = wanted[start : start + 500]
        statement = select(UserTable.name, UserTable.id).where(UserTable.name.in_(chunk))
        found.update((name, id) for name, id in session.execute(statement))
    for name in wanted:
        if name not in found:
            user = UserTable(name=name, role=UserRole.ANNOTATOR)
            session.add(user)
            session.flush()
            found[name] = user.id
    return found
