"""`python -m db export`: conversations into a file, chosen as in the table and the queue."""

import argparse
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import get_args

from db import formats, queries
from db.engine import open_database
from db.enums import ReviewState
from db.errors import StorageError
from db.exporting import chosen_ids, export
from db.records import ConversationFilter, ScoredFilter
from db.targets import refuse_database, replacing
from db.terminal import write_note, write_text

_ARCHIVED = {"yes": True, "no": False, "both": None}


def add_export_arguments(writer: argparse.ArgumentParser) -> None:
    """Give the parser of `export` its arguments."""
    writer.add_argument("file", metavar="FILE|-", help="a file, or - for standard output")
    writer.add_argument("--format", required=True, choices=formats.WRITABLE)
    chosen = writer.add_argument_group("which conversations (all, if nothing is said)")
    chosen.add_argument("--text", default="", help="words in title, system prompt or messages")
    chosen.add_argument("--tag", action="append", default=[], help="a tag; all that are given")
    chosen.add_argument("--source", action="append", default=[], help="one of these sources")
    chosen.add_argument("--scored", choices=get_args(ScoredFilter), default="any")
    chosen.add_argument("--review", choices=[state.value for state in ReviewState])
    chosen.add_argument("--run", type=int, metavar="ID", help="with replies of this run's adapter")
    chosen.add_argument(
        "--score-range", type=float, nargs=2, metavar=("LOW", "HIGH"), help="mean score, ends too"
    )
    chosen.add_argument("--rater", default="", metavar="NAME", help="scored by this person")
    chosen.add_argument(
        "--least-raters", type=int, default=0, metavar="N", help="scored by at least N people"
    )
    chosen.add_argument("--flagged", action="store_true", help="flagged by anybody")
    chosen.add_argument("--archived", choices=_ARCHIVED, default="both")


def run_export(options: argparse.Namespace) -> int:
    """Write the conversations that the options let through.

    Raises:
        SettingsError: if the file is the database itself.
        StorageError: if it cannot be written.
        DataError: if a conversation cannot be written in this format.
    """
    database = open_database()
    user_id = queries.local_user(database).id
    chosen = ConversationFilter(
        text=options.text,
        tags=tuple(options.tag),
        sources=tuple(options.source),
        scored=options.scored,
        review=None if options.review is None else ReviewState(options.review),
        run_id=options.run,
        score_range=None if options.score_range is None else tuple(options.score_range),
        rater=options.rater,
        least_raters=options.least_raters,
        flagged=options.flagged,
    )
    ids = chosen_ids(database, chosen, user_id=user_id, archived=_ARCHIVED[options.archived])
    if options.file == "-":
        export(database, ids, options.format, sys.stdout.buffer)
        sys.stdout.buffer.flush()
        _tell_if_empty(ids)
        return 0
    refuse_database(database, Path(options.file))
    try:
        with replacing(Path(options.file)) as unfinished, unfinished.open("wb") as file:
            count = export(database, ids, options.format, file)
    except OSError as error:
        raise StorageError(
            f"the file cannot be written ({error.strerror})",
            where=options.file,
            remedy="Check that its folder exists, can be written and has space.",
        ) from None
    write_text(f"conversations written to {options.file}: {count}\n")
    _tell_if_empty(ids)
    return 0


def _tell_if_empty(ids: Sequence[int]) -> None:
    if not ids:
        write_note("no conversation passes what was chosen; the export is empty.")
