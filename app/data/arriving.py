"""Conversations on their way in: imports, and replies that are being collected.

Reads first let dead processes be found, so that nothing is shown as going on that is not.
"""

from app import auth
from app.connection import database
from app.import_jobs import reconcile_imports
from db import queries
from db.records import Collection, Import, UndoEffects
from trainer.collecting.life import reconcile_collections


def import_(import_id: int) -> Import:
    """Return one import as it stands at this moment.

    Raises:
        NotFoundError: if there is none with this id.
    """
    auth.current_user()
    reconcile_imports(database())
    return queries.import_(database(), import_id)


def imports() -> list[Import]:
    """Return the latest imports, newest first."""
    auth.current_user()
    reconcile_imports(database())
    return queries.imports(database(), limit=20)


def undo_effects(import_id: int) -> UndoEffects:
    """Return what undoing an import would take away."""
    auth.current_user()
    return queries.undo_effects(database(), import_id)


def collection(collection_id: int) -> Collection:
    """Return one collection as it stands at this moment.

    Raises:
        NotFoundError: if there is none with this id.
    """
    auth.current_user()
    reconcile_collections(database())
    return queries.collection(database(), collection_id)


def collections() -> list[Collection]:
    """Return the latest collections, newest first."""
    auth.current_user()
    reconcile_collections(database())
    return queries.collections(database(), limit=20)
