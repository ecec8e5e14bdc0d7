"""The data layer's command line: conversations in and out, copies of all there is, people."""

import argparse
import os
import sys
from pathlib import Path

from db.archive import write_archive
from db.backup import backup
from db.engine import open_database
from db.errors import EveryTurnError
from db.export_command import add_export_arguments, run_export
from db.import_command import (
    add_import_arguments,
    add_undo_arguments,
    run_import,
    run_imports,
    run_job,
    run_undo,
)
from db.restoring import restore
from db.settings import read_settings
from db.user_commands import add_user_parser, run_user_command


def main(arguments: list[str] | None = None) -> int:
    """Run one command; return 0, or 1 after one line on standard error. Wrong usage exits with 2."""
    options = build_parser().parse_args(arguments)
    try:
        return _run(options)
    except EveryTurnError as error:
        print(f"error: {' '.join(str(error).split())}", file=sys.stderr)
        return 1
    except KeyboardInterrupt:
        return 130
    except BrokenPipeError:  # the reader of our output has gone: nobody is left to tell
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 1


def build_parser() -> argparse.ArgumentParser:
    """Return the parser of all commands."""
    parser = argparse.ArgumentParser(prog="python -m db", description=__doc__)
    commands = parser.add_subparsers(dest="command", required=True)
    commands.add_parser("upgrade", help="create the database, or bring its schema up to date")
    add_import_arguments(commands.add_parser("import", help="import files, all of them or none"))
    commands.add_parser("imports", help="list the imports, the latest first")
    add_undo_arguments(commands.add_parser("undo", help="take an import back as a whole"))
    job = commands.add_parser("import-job", help="what the import page starts; not for people")
    job.add_argument("id", type=int, metavar="ID")
    add_export_arguments(commands.add_parser("export", help="write conversations into a file"))
    saver = commands.add_parser("backup", help="copy the database, also while it is in use")
    saver.add_argument("file", type=Path, metavar="FILE")
    packer = commands.add_parser("archive", help="pack database and runs into one file")
    packer.add_argument("file", type=Path, metavar="FILE")
    opener = commands.add_parser("restore", help="open an archive or a backup in an empty home")
    opener.add_argument("file", type=Path, metavar="FILE")
    add_user_parser(commands.add_parser("user", help="say who may sign in (docs/team.md)"))
    return parser


def _run(options: argparse.Namespace) -> int:
    match options.command:
        case "upgrade":
            database = open_database()
            print(f"up to date: {database.sqlite_file or 'the database of DATABASE_URL'}")
            return 0
        case "import":
            return run_import(options)
        case "imports":
            return run_imports()
        case "undo":
            return run_undo(options.id, confirmed=options.yes)
        case "import-job":
            return run_job(options.id)
        case "export":
            return run_export(options)
        case "archive":
            packed = write_archive(open_database(), options.file)
            print(f"wrote {options.file} (runs {packed.runs}, {packed.size_bytes} bytes)")
            return 0
        case "restore":
            opened = restore(read_settings(), options.file)
            print(f"restored: conversations {opened.conversations}, runs {opened.runs}")
            return 0
        case "user":
            print(run_user_command(open_database(), options))
            return 0
        case _:
            size_bytes = backup(open_database(), options.file)
            print(f"wrote {options.file} ({size_bytes} bytes)")
            return 0


if __name__ == "__main__":
    sys.exit(main())
