"""Opening the database: connections, transactions and the schema's upgrade."""

import sqlite3
from collections.abc import Generator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any

from sqlalchemy import Connection, Engine, NullPool, create_engine, event, select
from sqlalchemy.engine import make_url
from sqlalchemy.exc import (
    ArgumentError,
    DataError,
    DBAPIError,
    IntegrityError,
    NoSuchModuleError,
    TimeoutError,
)
from sqlalchemy.orm import Session

from db.enums import UserRole
from db.errors import NotFoundError, SettingsError, StorageError
from db.migrations.upgrade import upgrade_schema
from db.models import UserTable
from db.settings import Settings, read_settings
from db.turnstile import Turnstile

LOCAL_USER = "local"
BUSY_TIMEOUT_S = 60
"""How long a writer waits for its turn: longer than the import of a large file takes."""

MAX_CONNECTIONS = 40
"""How many threads of a process may read at once; others wait for their turn."""

_KEPT_CONNECTIONS = 5

_OWN_TABLES = {"alembic_version", "conversation_tags", "turn_metrics"}
"""Tables that every version's schema has, and hardly any other program's."""

_WRITES = {"everyturn_writes": True}
_POSTGRES_WRITER_LOCK = 0x45_76_65_72_79  # any constant will do, it only has to be ours


class Database:
    """The database of one EVERYTURN_HOME; safe to share between threads.

    There is one writer at a time: a write transaction takes SQLite's write lock as it begins
    (an advisory lock on PostgreSQL). So a command may read, decide and write without a second
    process coming in between, and none ever fails half-way with "database is locked". The threads
    of this process take turns before that, so that everybody's turn comes and those who wait hold
    no connection.
    """

    def __init__(self, settings: Settings, engine: Engine) -> None:
        """Wrap an engine made by `open_database`."""
        self.settings = settings
        self._turnstile = Turnstile()
        self._reader = engine
        self._writer = engine.execution_options(**_WRITES)

    @contextmanager
    def session(self) -> Generator[Session]:
        """Run a short write transaction: commits at the end of the block, or rolls back.

        Raises:
            StorageError: if the database cannot be written.
        """
        with (
            self._turnstile.turn(),
            _storage_errors(),
            Session(self._writer) as session,
            session.begin(),
        ):
            yield session

    @contextmanager
    def read_session(self) -> Generator[Session]:
        """Run queries that all see one moment of the database; never waits for a writer.

        Raises:
            StorageError: if the database cannot be read.
        """
        with _storage_errors(), Session(self._reader) as session:
            yield session

    @property
    def sqlite_file(self) -> Path | None:
        """The file that holds the database, None where it is not SQLite."""
        return _sqlite_file(self._reader)

    def close(self) -> None:
        """Close the pooled connections."""
        self._reader.dispose()


def open_database(settings: Settings | None = None, *, migrate: bool = True) -> Database:
    """Open the database, creating folder, file, schema and local user where they are missing.

    Args:
        settings: Where it is; the environment decides if None.
        migrate: Whether to bring an older schema up to date. Several processes may do so at once.

    Raises:
        SettingsError: if the address is wrong, the folder cannot be written, or the database is
            another program's or was written by a newer version.
        StorageError: if the database cannot be used.
    """
    settings = settings or read_settings()
    engine = _create_engine(
        settings.database_url,
        max_overflow=MAX_CONNECTIONS - _KEPT_CONNECTIONS,
        pool_size=_KEPT_CONNECTIONS,
        pool_pre_ping=True,  # a server that was started anew has closed the ones kept
    )
    file = _sqlite_file(engine)
    if file is not None:
        _create_home(settings.home)
        _refuse_foreign(file)
    database = Database(settings, engine)
    if migrate:
        with _storage_errors():
            _migrate(settings.database_url)
        _ensure_local_user(database)
    return database


def _create_engine(url: str, **options: Any) -> Engine:
    try:
        engine = create_engine(url, **options)
    except (ArgumentError, NoSuchModuleError, ImportError) as error:
        raise SettingsError(
            f"the database address cannot be used ({error})",
            where="DATABASE_URL",
            remedy="Unset it to use the SQLite file in EVERYTURN_HOME, or give an address such "
            "as postgresql+psycopg://user@host/name and install its driver.",
        ) from None
    if engine.dialect.name == "sqlite":
        event.listen(engine, "connect", _prepare_sqlite)
    event.listen(engine, "begin", _begin)
    return engine


def _prepare_sqlite(connection: sqlite3.Connection, _record: object) -> None:
    """Set a fresh SQLite connection up.

    Transactions are begun by `_begin`, not by the driver. `synchronous` is FULL, where WAL would
    also work with NORMAL: a score that was shown as saved must survive a power cut, not only a
    crash of the process, and one fsync for each click is cheap.
    """
    connection.isolation_level = None
    connection.execute(f"PRAGMA busy_timeout = {BUSY_TIMEOUT_S * 1000}")
    connection.execute("PRAGMA journal_mode = WAL")
    connection.execute("PRAGMA synchronous = FULL")
    connection.execute("PRAGMA foreign_keys = ON")
    connection.create_function("lower", 1, _lower, deterministic=True)


def _lower(value: str | None) -> str | None:
    """Replace SQLite's own `lower`, which knows ASCII only."""
    return None if value is None else value.lower()


def _begin(connection: Connection) -> None:
    writes = connection.get_execution_options().get("everyturn_writes", False)
    if connection.dialect.name == "sqlite":
        connection.exec_driver_sql("BEGIN IMMEDIATE" if writes else "BEGIN")
    elif connection.dialect.name == "postgresql" and writes:
        connection.exec_driver_sql(f"SELECT pg_advisory_xact_lock({_POSTGRES_WRITER_LOCK})")


def _migrate(url: str) -> None:
    """Upgrade the schema inside one write transaction, on a connection of its own.

    Foreign keys are off there: SQLite changes a table by copying and dropping it, and dropping
    a parent would delete its children.
    """
    engine = _create_engine(url, poolclass=NullPool)
    if engine.dialect.name == "sqlite":
        event.listen(engine, "connect", _without_foreign_keys)
    with engine.execution_options(**_WRITES).begin() as connection:
        upgrade_schema(connection)


def _without_foreign_keys(connection: sqlite3.Connection, _record: object) -> None:
    connection.execute("PRAGMA foreign_keys = OFF")


def _ensure_local_user(database: Database) -> None:
    with database.read_session() as session:
        if session.scalar(select(UserTable.id).where(UserTable.name == LOCAL_USER)) is not None:
            return
    with database.session() as session:
        if session.scalar(select(UserTable.id).where(UserTable.name == LOCAL_USER)) is None:
            session.add(UserTable(name=LOCAL_USER, role=UserRole.ADMIN))


def _create_home(home: Path) -> None:
    try:
        home.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise SettingsError(
            f"the folder cannot be created ({error.strerror})",
            where=str(home),
            remedy="Point EVERYTURN_HOME at a folder that you may write to.",
        ) from None


def _refuse_foreign(file: Path) -> None:
    """Refuse a file of another kind, before a connection of ours changes anything in it."""
    if not file.is_file():
        return
    try:
        with closing(sqlite3.connect(file, timeout=BUSY_TIMEOUT_S)) as connection:
            rows = connection.execute("SELECT name FROM sqlite_master WHERE type = 'table'")
            tables = {str(name) for (name,) in rows}
    except sqlite3.OperationalError:
        return  # locked, unreadable, ...: the engine will meet it, too, and say so
    except sqlite3.DatabaseError as error:
        if error.sqlite_errorcode != sqlite3.SQLITE_NOTADB:
            return  # damaged, but a database: that is for the engine to say
        what = "this is not an EveryTurn database: the file is not a database at all"
    else:
        if not tables or tables >= _OWN_TABLES:
            return
        what = "this is not an EveryTurn database: the tables in it are another program's"
    raise SettingsError(
        what, where=str(file), remedy="Point EVERYTURN_HOME (or DATABASE_URL) elsewhere."
    )


def _sqlite_file(engine: Engine) -> Path | None:
    url = make_url(engine.url)
    if url.get_backend_name() != "sqlite" or not url.database:
        return None
    return Path(url.database)


@contextmanager
def _storage_errors() -> Generator[None]:
    """Turn the driver's errors into ones a person can act on; bugs stay what they are."""
    try:
        yield
    except IntegrityError:
        raise
    except (OverflowError, DataError) as error:  # an id from an address bar, too large for a column
        raise NotFoundError(
            "there is no row with such a number",
            where="database",
            remedy="Take a number that a page or a list shows.",
        ) from error
    except (DBAPIError, TimeoutError) as error:
        reason = error.orig if isinstance(error, DBAPIError) else "too many people at once"
        raise StorageError(
            f"the database cannot be used ({reason})",
            where="database",
            remedy="Check that its file or server can be reached and written, that the disk has "
            "space, and that no other program holds it.",
        ) from error
