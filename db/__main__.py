"""The data layer's command line: upgrade, import, export, backup, user."""

import argparse
import dataclasses
import json
import os
import sys
from pathlib import Path

from db import formats, queries
from db.backup import backup
from db.engine import Database, open_database
from db.errors import DataError, EveryTurnError, StorageError
from db.importing import import_bytes
from db.records import ConversationFilter, ImportReport
from db.targets import refuse_database, replacing
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
    reader = commands.add_parser("import", help="import conversations from JSON or JSON lines")
    reader.add_argument("file", type=Path, metavar="FILE")
    reader.add_argument("--format", default=formats.AUTO, choices=(formats.AUTO, *formats.READABLE))
    reader.add_argument(
        "--dry-run", action="store_true", help="say what it would do, change nothing"
    )
    reader.add_argument("--json", action="store_true", help="print the report as one JSON object")
    writer = commands.add_parser("export", help="write all conversations, archived ones included")
    writer.add_argument("file", metavar="FILE|-", help="a file, or - for standard output")
    writer.add_argument("--format", required=True, choices=formats.WRITABLE)
    saver = commands.add_parser("backup", help="copy the database, also while it is in use")
    saver.add_argument("file", type=Path, metavar="FILE")
    add_user_parser(commands.add_parser("user", help="say who may sign in (docs/team.md)"))
    return parser


def _run(options: argparse.Namespace) -> int:
    match options.command:
        case "upgrade":
            database = open_database()
            print(f"up to date: {database.sqlite_file or 'the database of DATABASE_URL'}")
            return 0
        case "import":
            return _import(options)
        case "export":
            _export(open_database(), options.file, options.format)
            return 0
        case "user":
            print(run_user_command(open_database(), options))
            return 0
        case _:
            size_bytes = backup(open_database(), options.file)
            print(f"wrote {options.file} ({size_bytes} bytes)")
            return 0


def _import(options: argparse.Namespace) -> int:
    file: Path = options.file
    try:
        data = file.read_bytes()
    except OSError as error:
        raise DataError(
            f"the file cannot be read ({error.strerror})",
            where=str(file),
            remedy="Check its name and its permissions.",
        ) from None
    try:
        report = import_bytes(
            open_database(),
            data,
            format=options.format,
            source=f"import:{file.name}",
            dry_run=options.dry_run,
        )
    except DataError as error:
        where = f"{file}, {error.where}"
        raise DataError(error.what, where=where, remedy=error.remedy) from None
    if options.json:
        _print(json.dumps(dataclasses.asdict(report), ensure_ascii=False) + "\n")
    else:
        _print(_describe(report, dry_run=options.dry_run) + "\n")
    if report.skipped and not report.conversations + report.duplicates:
        first = report.skipped[0]
        raise DataError(
            f"none of the file's rows could be imported; the first has: {first.reason}",
            where=f"{file}, row {first.row}, {first.field}",
            remedy=first.remedy,
        )
    return 0


def _describe(report: ImportReport, *, dry_run: bool) -> str:
    lines = [
        f"{'would import' if dry_run else 'imported'} as {report.format}: "
        f"conversations {report.conversations}, messages {report.messages}, "
        f"scores {report.scores}, already there {report.duplicates}, "
        f"rows skipped {len(report.skipped)}"
    ]
    for issue in report.skipped:
        lines.append(f"skipped row {issue.row}, {issue.field}: {issue.reason}. {issue.remedy}")
    lines += [f"note: {warning}" for warning in report.warnings]
    return "\n".join(lines)


def _export(database: Database, file: str, format: str) -> None:
    if file != "-":
        refuse_database(database, Path(file))
    user_id = queries.local_user(database).id
    ids = [
        id
        for archived in (False, True)
        for id in queries.conversation_ids(
            database, ConversationFilter(archived=archived), user_id=user_id
        )
    ]
    text = formats.write(queries.conversations(database, sorted(ids)), format)
    if file == "-":
        _print(text)
        return
    try:
        with replacing(Path(file)) as unfinished:
            unfinished.write_bytes(text.encode())
    except OSError as error:
        raise StorageError(
            f"the file cannot be written ({error.strerror})",
            where=file,
            remedy="Check that its folder exists, can be written and has space.",
        ) from None
    print(f"conversations written to {file}: {len(ids)}")


def _print(text: str) -> None:
    """Write UTF-8 to standard output, whatever the terminal's encoding: it may quote any text."""
    sys.stdout.buffer.write(text.encode())
    sys.stdout.buffer.flush()


if __name__ == "__main__":
    sys.exit(main())
