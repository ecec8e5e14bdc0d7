"""Writes the next revision: `python -m db.migrations "what changes"`; for developers."""

import sys

from alembic import command
from alembic.script import ScriptDirectory
from sqlalchemy import create_engine

from db.migrations.upgrade import alembic_config, upgrade_schema


def main(message: str) -> None:
    """Compare the models with what the revisions build, and write the difference down."""
    config = alembic_config()
    config.set_main_option("file_template", "rev_%%(rev)s_%%(slug)s")
    number = 1 + len(list(ScriptDirectory.from_config(config).walk_revisions()))
    with create_engine("sqlite://").begin() as connection:
        upgrade_schema(connection)
        config.attributes["connection"] = connection
        command.revision(config, message, autogenerate=True, rev_id=f"{number:04d}")


if __name__ == "__main__":
    if len(sys.argv) != 2:
        sys.exit('usage: python -m db.migrations "what changes"')
    main(sys.argv[1])
