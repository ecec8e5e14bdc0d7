"""One process at a time works on a collection, and only while nothing else wants its device."""

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from filelock import FileLock, Timeout

from db import commands, queries
from db.engine import Database
from db.errors import ConflictError
from db.records import Collection
from trainer.collecting.life import folder_of, held_by
from trainer.runs.process import own_mark
from trainer.serving.worker import make_room

WATCH_EVERY_S = 1.0
"""How often it is asked whether somebody else wants the device."""

_HANDING_OVER_S = 5

Report = Callable[[str], None]


@contextmanager
def taken(database: Database, collection_id: int) -> Iterator[Collection]:
    """Make this process the one that works on a collection, while the block runs.

    Raises:
        NotFoundError: if there is no such collection.
        ConflictError: if it has ended, or another process is at work on it.
    """
    collection = queries.collection(database, collection_id)
    folder = folder_of(database.settings, collection_id)
    folder.mkdir(parents=True, exist_ok=True)
    lock = FileLock(folder / ".lock")
    try:
        lock.acquire(timeout=_HANDING_OVER_S)
    except Timeout as error:
        raise ConflictError(
            "another process is at work on this collection",
            where=f"collection {collection_id}",
            remedy="Wait for its end, or cancel it.",
        ) from error
    try:
        if not commands.record_collection_process(database, collection_id, str(own_mark())):
            raise ConflictError(
                f"the collection is {collection.state}",
                where=f"collection {collection_id}",
                remedy="Go on with it from its page, or begin a new one.",
            )
        yield collection
    finally:
        lock.release()


def wait_for_device(database: Database, collection: Collection, report: Report) -> bool:
    """Return True once the device is free; False if the collection is no longer wanted.

    A chat's server that nobody has talked to for a while leaves, as it would for a run.
    """
    said = ""
    while reason := held_by(database, collection):
        if reason != said:
            said = reason
            report(reason)
        if not commands.report_collection(database, collection.id, collection.progress, reason):
            return False
        time.sleep(WATCH_EVERY_S)
    make_room(database.settings, collection.device)
    return True
