"""Conversations out: every form in which they can be taken away."""

import csv
import io
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any, BinaryIO

from db.formats import (
    completions,
    csv_writer,
    dataset_folder,
    kto,
    native_writer,
    openai,
    preference,
    sharegpt,
)
from db.formats.early_types import typed_early
from db.records import Conversation
from db.text import clean_json

Write = Callable[[Iterable[Conversation], BinaryIO], None]


@dataclass(frozen=True, slots=True, kw_only=True)
class Writer:
    """One form of export.

    Attributes:
        name: What people call it on the command line.
        title: What it is, in a few words.
        about: What it keeps and what it does not, for people (Markdown).
        suffix: How the file's name ends.
        media_type: What a browser is told about it.
        write: Writes conversations one after another; raises ValueError for numbers that are
            not finite.
    """

    name: str
    title: str
    about: str
    suffix: str
    media_type: str
    write: Write


def _lines(rows: Callable[[Iterable[Conversation]], Iterable[dict[str, Any]]]) -> Write:
    """Return what writes the rows of a JSON-lines format."""

    def write(conversations: Iterable[Conversation], stream: BinaryIO) -> None:
        for line in typed_early(map(clean_json, rows(conversations))):
            stream.write(line)

    return write


def _each(to_row: Callable[[Conversation], dict[str, Any]]) -> Write:
    """Return what writes a line for each conversation."""
    return _lines(lambda conversations: map(to_row, conversations))


def _write_native(conversations: Iterable[Conversation], stream: BinaryIO) -> None:
    for conversation in conversations:
        stream.write(native_writer.write_row(conversation).encode() + b"\n")


def _write_csv(conversations: Iterable[Conversation], stream: BinaryIO) -> None:
    stream.write(b"\xef\xbb\xbf")  # without it spreadsheets take UTF-8 for something else
    line = io.StringIO()
    writer = csv.writer(line)
    for record in csv_writer.records(conversations):
        writer.writerow(record)
        stream.write(line.getvalue().encode())
        line.seek(0)
        line.truncate()


_JSON_LINES = "application/jsonl"

WRITERS: dict[str, Writer] = {
    writer.name: writer
    for writer in (
        Writer(
            name="native",
            title="EveryTurn (nothing is lost)",
            about="Everything: scores of every rater, notes, times, tags, groups, sampled tokens. "
            "Importing it gives the same conversations.",
            suffix=".jsonl",
            media_type=_JSON_LINES,
            write=_write_native,
        ),
        Writer(
            name="openai",
            title="OpenAI messages (without scores)",
            about="What was said, with tools and their calls. No scores, titles or tags.",
            suffix=".jsonl",
            media_type=_JSON_LINES,
            write=_each(openai.to_row),
        ),
        Writer(
            name="sharegpt",
            title="ShareGPT (without scores)",
            about="What was said. The ids of tool calls are lost, and a reply that says something "
            "and calls a tool becomes two.",
            suffix=".jsonl",
            media_type=_JSON_LINES,
            write=_each(sharegpt.to_row),
        ),
        Writer(
            name="kto",
            title="Thumbs up and down (TRL's KTO)",
            about="A line for each scored reply: `prompt`, `completion`, `label`. The label is true "
            f"where the raters' mean is at least {kto.GOOD_FROM:g}. `tools`, where there are any, as "
            "JSON text.",
            suffix=".jsonl",
            media_type=_JSON_LINES,
            write=_lines(kto.rows),
        ),
        Writer(
            name="preference",
            title="Preference pairs (TRL's DPO and reward trainers)",
            about="A line for each two replies to the same prompt of which one is scored higher: "
            "`prompt`, `chosen`, `rejected`, `score_chosen`, `score_rejected`. The replies are "
            "those of branches, groups and conversations that happen to begin with the same words. "
            "`tools`, where there are any, as JSON text.",
            suffix=".jsonl",
            media_type=_JSON_LINES,
            write=_lines(preference.rows),
        ),
        Writer(
            name="completions",
            title="Scored completions (TRL's SFT and others)",
            about="A line for each scored reply: `prompt`, `completion`, `score` (the raters' mean). "
            "`tools`, where there are any, as JSON text.",
            suffix=".jsonl",
            media_type=_JSON_LINES,
            write=_lines(completions.rows),
        ),
        Writer(
            name="csv",
            title="CSV (a row for each turn)",
            about="For spreadsheets: UTF-8 with a mark, cells that could be taken for a formula "
            "begin with an apostrophe. Title, group, tool calls and one score a reply (the mean of "
            "several); no tools, tags, outcomes, times or tokens.",
            suffix=".csv",
            media_type="text/csv",
            write=_write_csv,
        ),
        Writer(
            name="datasets",
            title="Hugging Face data set (a folder, packed)",
            about="A zip archive with a folder that `datasets.load_dataset` reads: Parquet and a "
            "card. Everything that the native form has.",
            suffix=".zip",
            media_type="application/zip",
            write=dataset_folder.write_zip,
        ),
    )
}
"""Every form of export, by name."""
