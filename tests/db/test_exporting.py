"""Exports: chosen as in the table, one after another, and a native one loses nothing."""

import io
import json
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path

import pytest

from db import commands, queries
from db.__main__ import main
from db.engine import Database
from db.enums import Role
from db.exporting import chosen_ids, export
from db.formats import WRITABLE
from db.importing import import_bytes
from db.records import Conversation, ConversationFilter, Message, Score
from tests.db.backends import ON_EVERY_DATABASE
from tests.db.building import scored_talk, talk

AT = datetime(2026, 1, 2, 3, 4, 5, 678901, tzinfo=UTC)

RICH = Conversation(
    title="all of it",
    system="be kind",
    source="typed",
    group="prompt-1",
    tools=({"type": "function", "function": {"name": "f", "parameters": {"n": [2**70, None]}}},),
    tags=("a", "ü"),
    created_at=AT,
    updated_at=AT,
    archived=True,
    messages=(
        Message(role=Role.USER, content="two\nlines \u0000 and \U0001f600"),
        Message(role=Role.USER, content="again"),
        Message(
            role=Role.ASSISTANT,
            content="",
            tool_calls=({"id": "c1", "function": {"name": "f", "arguments": "{}"}, "n": 2**70},),
        ),
        Message(role=Role.TOOL, content="42", tool_call_id="c1"),
        Message(
            role=Role.ASSISTANT,
            content="done",
            model="tiny",
            token_ids=(5, 6),
            logprobs=(-0.1234567890123, -2e-17),
            scores=(
                Score(rater="ann", value=0.0, note="zero, not none", at=AT),
                Score(rater="bob", value=-1.0, at=AT),
            ),
            adjudicated=Score(rater="judge", value=0.1, note="so", at=AT),
        ),
        Message(role=Role.USER, content="a question at the end"),
    ),
    outcomes=(Score(rater="ann", value=0.3, note="o", at=AT),),
)


def exported(database: Database, ids: list[int], format: str = "native") -> bytes:
    stream = io.BytesIO()
    export(database, ids, format, stream)
    return stream.getvalue()


def bare(conversation: Conversation) -> Conversation:
    """Return a conversation without the ids of its rows."""
    messages = tuple(replace(message, id=None) for message in conversation.messages)
    return replace(conversation, id=None, messages=messages)


@ON_EVERY_DATABASE
def test_a_native_export_brings_everything_back(database: Database, backend: str) -> None:
    id = commands.add_conversation(database, RICH)
    before = queries.conversation(database, id)
    lines = exported(database, [id])
    commands.delete_conversations(database, [id])
    import_bytes(database, lines, source="import:x")
    (after,) = chosen_ids(database, ConversationFilter(), user_id=1, archived=True)
    assert bare(queries.conversation(database, after)) == bare(before)
    assert before.messages[4].adjudicated is not None
    report = import_bytes(database, exported(database, [after]), source="import:y")
    assert (report.conversations, report.scores, report.duplicates) == (0, 0, 1)


def test_an_export_is_chosen_as_in_the_table(database: Database, tmp_path: Path) -> None:
    commands.add_conversations(
        database,
        [
            scored_talk(("a", 0.5), rater="ann"),
            talk("b", "b", tags=("x",)),
            scored_talk(("c", 1.0), rater="bob"),
        ],
    )
    commands.set_archived(database, [3], True)

    def replies(*options: str) -> list[str]:
        target = tmp_path / "out.jsonl"
        assert main(["export", str(target), "--format", "openai", *options]) == 0
        rows = [json.loads(line) for line in target.read_text().splitlines()]
        return [row["messages"][-1]["content"] for row in rows]

    assert replies() == ["a", "b", "c"]
    assert replies("--archived", "no") == ["a", "b"]
    assert replies("--tag", "x") == ["b"]
    assert replies("--scored", "fully") == ["a", "c"]
    assert replies("--rater", "bob") == ["c"]
    assert replies("--least-raters", "2") == []
    assert replies("--score-range", "0.4", "0.6") == ["a"]
    assert replies("--text", "ask for c", "--archived", "yes") == ["c"]


@pytest.mark.parametrize("format", WRITABLE)
def test_every_form_writes_what_is_there_and_nothing_where_nothing_is(
    database: Database, format: str
) -> None:
    worse = Message(role=Role.ASSISTANT, content="worse", scores=(Score(rater="ann", value=-1.0),))
    twin = replace(RICH, messages=(*RICH.messages[:4], worse))
    ids = [commands.add_conversation(database, conversation) for conversation in (RICH, twin)]
    assert exported(database, ids, format)
    exported(database, [], format)


def test_what_was_deleted_meanwhile_is_left_out(database: Database) -> None:
    ids, _ = commands.add_conversations(database, [talk("a", "b"), talk("c", "d")])
    commands.delete_conversations(database, ids[:1])
    assert exported(database, ids).count(b"\n") == 1
