"""What the web server does while nobody looks at a page.

It looks after runs, so that the queue moves on and every end is told, and it collects garbage, which
Streamlit would do after every redraw.
"""

import asyncio
import gc
import logging
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager, suppress

from streamlit.starlette import App

from db.engine import Database, open_database
from db.errors import EveryTurnError
from db.settings import read_settings
from trainer.collecting.life import reconcile_collections
from trainer.runs.reconcile import reconcile

LOOK_EVERY_S = 10.0

logger = logging.getLogger(__name__)


@asynccontextmanager
async def watching(_: App) -> AsyncGenerator[None]:
    """Keep house for as long as the web server lives."""
    watch = asyncio.create_task(_watch())
    try:
        yield
    finally:
        watch.cancel()
        with suppress(asyncio.CancelledError):
            await watch


async def _watch() -> None:
    database: Database | None = None
    while True:
        await asyncio.sleep(LOOK_EVERY_S)
        await asyncio.to_thread(gc.collect)
        try:
            database = database or await asyncio.to_thread(open_database, read_settings())
            await asyncio.to_thread(look, database)
        except (EveryTurnError, OSError) as error:  # a page says so as well; the next look may do
            logger.warning("Runs could not be looked after: %s", error)


def look(database: Database) -> None:
    """Make the status of every run and collection true, and start what waits."""
    reconcile(database)
    reconcile_collections(database)
