"""The page about formats, made from what the formats say of themselves."""

from collections.abc import Iterator
from dataclasses import replace

from db.formats.format import Format
from db.formats.scales import Scale
from db.formats.writing import WRITERS

_HEAD = """# Formats: what can be imported and exported

This page is made from the code: `python -m db.formats > docs/formats.md`.

## Files

`.json`, `.jsonl`, `.ndjson`, `.csv`, `.parquet`, each also as `.gz`, or several of them in a `.zip`. What counts is the content, not
the name. A file of any size is read in bounded memory; a row may have up to 64 MB.

| what is wrong | what happens |
|---|---|
| not UTF-8 | read as UTF-16 or UTF-32 if it has their mark (or looks like UTF-16), else as the encoding that fits (mostly Windows-1252); you are told, with the first line concerned, and can choose another encoding; bytes that it does not have are read as Windows-1252, and reported |
| a few bytes that are not UTF-8 in a file that is | they are read as Windows-1252, and the row is reported |
| a byte order mark; line ends LF, CR LF and CR mixed | no matter |
| a line of JSON lines that is no JSON, or too long | that row is skipped, with line and column |
| a JSON document that is malformed in the middle | nothing is imported: where the next row begins cannot be known |
| the file ends in the middle of a row | that row is skipped, those before are imported |
| a gzip archive that ends in the middle | the rows before are imported, and you are told |
| a gzip archive that unpacks to more than 200 times its size (and 64 MB) | refused: no conversations pack so well |
| more than 16 MB of nothing but blanks or empty lines | refused |
| a zip archive: locked, damaged, with more than 200 files of rows, or unpacking like that | refused, with the reason; pictures, pages and hidden files in it are passed over, a file that is none of the formats is left out and named |
| a Parquet file that unpacks like that | refused |
| a CSV record that breaks the rules of quoting, or has more cells than the header | that row is skipped |
| a quotation mark that is never closed | the row in which it opens is skipped, with all that it swallowed |
| NUL characters and lone surrogates | replaced by U+FFFD, and reported |
| NaN and Infinity in JSON; nesting of more than 64 levels | that row is skipped |
| JSON in a text cell where a list or an object belongs | read as such |
| a field that has no place in a conversation | left out, and reported once for all rows |

## Conversations

Any order of turns is kept: two user messages in a row, a reply that comes first, a question at the
end. Roles go by many names (`human`, `gpt`, `bot`, `prompter`, `developer` ...); capitals do not
matter; an unknown role is an error that names it. Every assistant turn can be scored, a tool call
as well; a conversation without any is imported and reported.

Conversations that answer the same prompt (branches of a tree, the two sides of a pair) share a
**group**: training can compare them, and the export of preference pairs puts them beside each other.

## Scores

A score is a number from -1 to 1. **0 is a score, null is none**; so are an empty cell, "N/A" and
"none". How a file's own scores become that is a rule with a line for each kind of score, which the
import page shows and lets you change:

- **number**: from the worst to the best value, a straight line. Numbers may be written as text,
  with a percent sign or as stars. Numbers from -1 to 1 are taken as they are; for others a customary
  scale is suggested (0 to 4, 1 to 5, 1 to 10, 0 to 100 ...).
- **yes or no**: true and false, chosen and rejected, thumbs up and down, yes and no, good and bad.
- **rank**: the place among the replies to one prompt; the best becomes the best score.

Of several kinds that are used for one reply the mean counts. A value outside its scale, or one that
something else in the row contradicts, is not trusted: the score is left out and reported. A value
that is read as it is and lies outside -1 to 1 skips the row.

Some scores are suspicious as a whole, and the report says so:

| among the first rows | what happens |
|---|---|
| three or more of one kind, all the same number, on a scale that had to be guessed (every `rating` is 1: the best, or one star?) | left out until you say which scale they are on |
| the same where their scale is known (`reward`, `score` and `value` from -1 to 1, yes or no, a scale that the format defines) | used and reported: they set no reply apart from another |
| some in percent and others not | left out until you say which scale they are on |
| most are no plain numbers ("4/5", "3 stars") | left out; write them as numbers |

EveryTurn's own form is read as it is, without such doubts: its scores were given here.

## Imports

Where two formats fit a file equally, the first of this list is taken. Tables in Parquet and CSV can
hold any of them.
"""

_EXPORTS = """
## Exports

| name | file | what it keeps |
|---|---|---|
"""


_TRL = """
`kto`, `preference` and `completions` are what TRL's `KTOTrainer`, `DPOTrainer`, `RewardTrainer` and
`SFTTrainer` take: `make trl` loads each with `datasets` and trains a batch on it. With TRL 1.16.0,
datasets 5.2 and transformers 5.24 it printed `5 passed`.

`datasets` takes the types of all columns from the first 10 MB of a file. So in all of these exports but
`native` the first row of each new shape (with tools, with a tool call, with a null) that would come after
4 MB is moved up to there; the others keep their order.
"""


def page(formats: dict[str, Format]) -> str:
    """Return `docs/formats.md`."""
    return _HEAD + "".join(_sections(formats)) + _EXPORTS + "".join(_export_lines()) + _TRL


def _sections(formats: dict[str, Format]) -> Iterator[str]:
    for format in formats.values():
        kind = "csv" if "," in format.example.split("\n")[0].split('"')[0] else "json"
        yield f"\n### `{format.name}`\n\n**{format.title}.** {format.about}\n"
        yield f"\n```{kind}\n{format.example}```\n"
        if format.scales:
            yield "\nScores: " + "; ".join(map(_scale, format.scales)) + ".\n"


def _scale(scale: Scale) -> str:
    words = replace(scale, used=True).words
    return f"`{scale.name}` {words}{'' if scale.used else ' (if you switch it on)'}"


def _export_lines() -> Iterator[str]:
    for writer in WRITERS.values():
        yield f"| `{writer.name}` | `{writer.suffix}` | {writer.about} |\n"
