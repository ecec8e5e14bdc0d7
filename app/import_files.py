"""What the import page reads from files that wait: their format, and their first conversations."""

import json
from dataclasses import dataclass, replace
from itertools import islice

import streamlit as st

from app.connection import database, settings
from db.formats import Detection, Parsed, ScoreRule, detect, read
from db.import_job import source_of
from db.records import Conversation, Import, ImportFile

PREVIEWED = 5
RAW_CHARS = 3000
_LOOKED_AT = 200


@dataclass(frozen=True, slots=True)
class Preview:
    """A conversation as it would be stored, and the row of the file that it comes from.

    Attributes:
        row: Its number in the file, from 1.
        raw: The row as JSON, cut off where it is very long.
        is_cut: Whether it was cut off.
    """

    conversation: Conversation
    row: int
    raw: str
    is_cut: bool


def detection(job: Import, index: int) -> Detection:
    """Return what the beginning of a file tells.

    Raises:
        DataError: if it cannot be read at all.
    """
    file = job.files[index]
    return _detection(str(settings().home), job.id, index, replace(file, rule=None))


def rule_of(job: Import, index: int) -> ScoreRule:
    """Return how a file's scores are read: as somebody said, or as suggested.

    Raises:
        DataError: as `detection`.
    """
    rule = job.files[index].rule
    return detection(job, index).rule if rule is None else ScoreRule.from_json(rule)


def previews(job: Import, index: int) -> list[Preview]:
    """Return the first conversations of a file.

    Raises:
        DataError: as `detection`.
    """
    file = job.files[index]
    rule = json.dumps(rule_of(job, index).to_json())
    return _previews(str(settings().home), job.id, index, replace(file, rule=None), rule)


@st.cache_data(max_entries=50, show_spinner=False)
def _detection(home: str, import_id: int, index: int, file: ImportFile) -> Detection:
    del home  # a part of the cache's key
    source = source_of(database().settings, import_id, index, file)
    return detect(source, file.format, file.encoding)


@st.cache_data(max_entries=50, show_spinner=False)
def _previews(home: str, import_id: int, index: int, file: ImportFile, rule: str) -> list[Preview]:
    found = _detection(home, import_id, index, file)
    source = source_of(database().settings, import_id, index, file)
    items = read(source, rule=ScoreRule.from_json(json.loads(rule)), detection=found)
    shown = (item for item in islice(items, _LOOKED_AT) if isinstance(item, Parsed))
    return [_preview(item) for item in islice(shown, PREVIEWED)]


def _preview(item: Parsed) -> Preview:
    raw = json.dumps(item.raw, indent=2, ensure_ascii=False, default=str)
    return Preview(item.conversation, item.row, raw[:RAW_CHARS], len(raw) > RAW_CHARS)
