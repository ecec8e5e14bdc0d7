"""`python -m db import`, `imports`, `undo` and `import-job`: bring files in, and take them out again."""

import argparse
import dataclasses
import json
import sys
from collections.abc import Sequence
from contextlib import ExitStack
from pathlib import Path

from db import commands, formats, queries
from db.engine import open_database
from db.enums import ImportState
from db.errors import ConflictError, DataError
from db.formats import Scale, ScoreRule, Source
from db.hub import fetched
from db.import_job import run_import_job
from db.import_reading import SourceFile, parts
from db.importing import import_files
from db.records import HubSet, ImportFile, ImportIssue, ImportReport
from db.terminal import write_note, write_text

_OFF = "off"


def add_import_arguments(parser: argparse.ArgumentParser) -> None:
    """Give the parser of `import` its arguments."""
    what = parser.add_mutually_exclusive_group(required=True)
    what.add_argument("files", type=Path, nargs="*", default=[], metavar="FILE")
    what.add_argument("--hub", metavar="NAME", help="a data set of the Hugging Face Hub instead")
    parser.add_argument("--format", default=formats.AUTO, choices=(formats.AUTO, *formats.READABLE))
    parser.add_argument(
        "--encoding",
        default=formats.AUTO,
        metavar="NAME",
        help="the text's encoding, where it is recognised wrongly: cp1252, cp1251, koi8-r ...",
    )
    parser.add_argument(
        "--scale",
        action="append",
        default=[],
        metavar="NAME=LOW:HIGH",
        help="read the scores of this name from LOW (becomes 0) to HIGH (becomes 1); "
        f"NAME={_OFF} leaves them out",
    )
    parser.add_argument(
        "--dry-run", action="store_true", help="say what it would do, change nothing"
    )
    parser.add_argument("--json", action="store_true", help="print the report as one JSON object")
    hub = parser.add_argument_group("with --hub")
    hub.add_argument("--split", default="train", help="which part of it (default: train)")
    hub.add_argument("--config", default=None, help="which of its configurations")
    hub.add_argument("--limit", type=_count, default=None, metavar="ROWS", help="first rows only")


def add_undo_arguments(parser: argparse.ArgumentParser) -> None:
    """Give the parser of `undo` its arguments."""
    parser.add_argument("id", type=int, metavar="ID", help="number of the import, see `imports`")
    parser.add_argument(
        "--yes", action="store_true", help="also if people have scored what it brought"
    )


def run_import(options: argparse.Namespace) -> int:
    """Import files or a data set, and print the report.

    Raises:
        DataError: if nothing can be imported.
        StorageError: if the database cannot be written.
    """
    with ExitStack() as opened:
        if options.hub is None:
            sources = [Source.of_path(path) for path in options.files]
        else:
            wanted = HubSet(
                name=options.hub, split=options.split, config=options.config, limit=options.limit
            )
            sources = [opened.enter_context(fetched(wanted))]
        files = [file for source in sources for file in _files(source, options)]
        database = open_database()
        user_id = queries.local_user(database).id
        try:
            report = import_files(
                database,
                files,
                dry_run=options.dry_run,
                user_id=user_id,
                progress=_tell if sys.stderr.isatty() else None,
            )
        except DataError as error:
            raise _at(error, sources) from None
    if options.json:
        write_text(json.dumps(report.to_json(), ensure_ascii=False) + "\n")
    else:
        write_text(_describe(report, dry_run=options.dry_run) + "\n")
    if report.skipped and not report.conversations + report.duplicates:
        first = report.skipped[0]
        raise DataError(
            f"none of the file's rows could be imported; the first has: {first.reason}",
            where=f"{first.file or _name(sources)}, row {first.row}, {first.field}",
            remedy=first.remedy,
        )
    return 0


def run_imports() -> int:
    """List the imports that were made."""
    made = queries.imports(open_database(), ImportState.DONE, ImportState.UNDONE)
    if not made:
        write_note("nothing was imported yet.")
    for one in made:
        report = one.report
        counts = "" if report is None else f"{report.conversations} conversations"
        names = ", ".join(file.name for file in one.files)
        write_text(f"{one.id}\t{one.changed_at:%Y-%m-%d %H:%M}\t{one.state}\t{counts}\t{names}\n")
    return 0


def run_undo(import_id: int, *, confirmed: bool) -> int:
    """Take an import back.

    Raises:
        ConflictError: if people have scored what it brought, unless it is `confirmed`; or if it
            is not done.
        NotFoundError: if there is no such import.
    """
    database = open_database()
    effects = queries.undo_effects(database, import_id)
    if effects.scores_since and not confirmed:
        scores = ", ".join(f"{count} by {name}" for name, count in effects.scores_since)
        raise ConflictError(
            f"people have scored what it brought since ({scores}), and these scores would go, too",
            where=f"import {import_id}",
            remedy="Export them first, or say --yes.",
        )
    deleted = commands.undo_import(database, import_id)
    write_text(
        f"import {import_id} is undone: conversations {deleted}, "
        f"scores of others' conversations {effects.merged_scores}\n"
    )
    return 0


def run_job(import_id: int) -> int:
    """Do an import's work (see `db.import_job`).

    Raises:
        NotFoundError: if there is no such import.
    """
    run_import_job(open_database(), import_id)
    return 0


def _files(source: Source, options: argparse.Namespace) -> list[SourceFile]:
    """Return the file, or those of a zip archive, read as the command line says."""
    encoding = options.encoding
    if encoding != formats.AUTO:
        encoding = formats.encoding_name(encoding)
    file = ImportFile(name=source.name, format=options.format, encoding=encoding)
    chosen = parts(SourceFile(file, source))
    return [_scaled(one, options.scale) for one in chosen] if options.scale else chosen


def _scaled(chosen: SourceFile, scales: Sequence[str]) -> SourceFile:
    found = formats.detect(chosen.source, chosen.file.format, chosen.file.encoding)
    rule = _rule(found.rule, scales).to_json()
    return SourceFile(dataclasses.replace(chosen.file, rule=rule), chosen.source)


def _rule(suggested: ScoreRule, changes: Sequence[str]) -> ScoreRule:
    """Return the suggested rule with what the command line says otherwise."""
    scales = {scale.name: scale for scale in suggested.scales}
    for change in changes:
        name, _, ends = change.partition("=")
        if name not in scales:
            raise DataError(
                f"the file has no scores named {name!r}",
                where="--scale",
                remedy=f"Its scores are named: {', '.join(scales) or '(it has none)'}.",
            )
        scales[name] = _scale(scales[name], ends)
    return ScoreRule(tuple(scales.values()))


def _scale(scale: Scale, ends: str) -> Scale:
    if ends == _OFF:
        return dataclasses.replace(scale, used=False)
    try:
        low, high = (float(end) for end in ends.split(":"))
    except ValueError:
        raise DataError(
            f"{ends!r} is no scale",
            where="--scale",
            remedy="Say it like stars=1:5, or stars=off.",
        ) from None
    changed = dataclasses.replace(
        scale,
        kind=formats.ScaleKind.NUMBER,
        low=low,
        high=high,
        to_low=0.0,
        to_high=1.0,
        used=True,
    )
    changed.check()
    return changed


def _count(text: str) -> int:
    number = int(text)
    if number < 1:
        raise ValueError
    return number


def _at(error: DataError, sources: Sequence[Source]) -> DataError:
    """Return the error with the file's name, which it has already if there are several."""
    where = error.where
    if len(sources) == 1:
        name = _name(sources)
        where = name if where in ("", "file") else f"{name}, {where}"
    return DataError(error.what, where=where, remedy=error.remedy)


def _name(sources: Sequence[Source]) -> str:
    source = sources[0]
    return str(source.path) if source.path is not None else source.name


def _tell(share: float, message: str) -> None:
    """Say how far it is, on one line that is written over."""
    end = "\n" if share >= 1 else ""
    sys.stderr.write(f"\r{message}: {share:.0%}   {end}")
    sys.stderr.flush()


def _describe(report: ImportReport, *, dry_run: bool) -> str:
    lines = [
        f"{'would import' if dry_run else 'imported'} as {report.format}: "
        f"conversations {report.conversations}, messages {report.messages}, "
        f"scores {report.scores}, already there {report.duplicates}, "
        f"rows skipped {sum(issue.count for issue in report.skipped)}"
    ]
    lines += [_skipped(issue) for issue in report.skipped]
    lines += [f"note: {warning}" for warning in report.warnings]
    return "\n".join(lines)


def _skipped(issue: ImportIssue) -> str:
    file = f"{issue.file}, " if issue.file else ""
    more = f" ({issue.count - 1} more like it)" if issue.count > 1 else ""
    place = f"row {issue.row}, {issue.field}" if issue.row else issue.field
    return f"skipped {file}{place}: {issue.reason}{more}. {issue.remedy}"
