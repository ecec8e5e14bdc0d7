"""Bringing a database's schema up to date with Alembic, configured in code."""

from alembic import command
from alembic.config import Config
from alembic.runtime.migration import MigrationContext
from alembic.script import ScriptDirectory
from sqlalchemy import Connection

from db.errors import SettingsError


def alembic_config() -> Config:
    """Return the configuration that finds the revisions in the installed package."""
    config = Config()
    config.set_main_option("script_location", "db:migrations")
    config.set_main_option("path_separator", "os")
    return config


def upgrade_schema(connection: Connection, revision: str = "head") -> None:
    """Upgrade to `revision` inside the caller's transaction; does nothing if it is up to date.

    Raises:
        SettingsError: if the database knows a revision that this version does not.
    """
    config = alembic_config()
    script = ScriptDirectory.from_config(config)
    current = MigrationContext.configure(connection).get_current_revision()
    known = {entry.revision for entry in script.walk_revisions()}
    if current is not None and current not in known:
        raise SettingsError(
            f"the database was written by a newer version of EveryTurn (schema {current})",
            where="database",
            remedy="Install that version again, or point EVERYTURN_HOME at another folder.",
        )
    if revision == "head":
        revision = script.get_current_head() or revision
    if current != revision:
        config.attributes["connection"] = connection
        command.upgrade(config, revision)
