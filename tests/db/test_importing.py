"""Imports: all or nothing, nothing twice, and a dry run that says what would happen."""

import json
from dataclasses import replace
from unittest.mock import patch

import pytest

from db import commands, queries
from db.engine import Database
from db.errors import DataError
from db.formats import write
from db.importing import import_bytes
from db.records import Conversation, ConversationFilter, ImportReport, Score
from tests.db.backends import ON_EVERY_DATABASE
from tests.db.building import queued_run, scored_talk, talk

pytestmark = ON_EVERY_DATABASE

RECIPE = json.dumps(
    [
        {"turns": [{"user": "a", "assistant": "b", "reward": 0}]},
        {"turns": [{"user": "c", "assistant": "d", "reward": 7}]},
        {"turns": [{"user": "e", "assistant": "f"}, {"user": "g", "assistant": "h", "reward": 1}]},
    ]
).encode()


def everything(database: Database) -> list[Conversation]:
    ids = queries.conversation_ids(database, ConversationFilter(order="oldest"), user_id=1)
    return queries.conversations(database, ids)


def bring(database: Database, data: bytes, *, dry_run: bool = False) -> ImportReport:
    return import_bytes(database, data, source="import:file.json", dry_run=dry_run)


def test_an_import_reports_what_it_did(database: Database) -> None:
    report = bring(database, RECIPE)
    assert (report.format, report.conversations, report.messages) == ("recipe", 2, 6)
    assert (report.scores, report.duplicates) == (2, 0)
    (issue,) = report.skipped
    assert (issue.row, issue.field) == (2, "turns[0].reward")
    first, second = everything(database)
    assert first.source == second.source == "import:file.json"
    (score,) = first.messages[1].scores
    assert (score.rater, score.value) == ("imported", 0.0)
    assert [len(turn.scores) for turn in second.assistant_messages] == [0, 1]


def test_importing_twice_adds_nothing(database: Database) -> None:
    bring(database, RECIPE)
    before = everything(database)
    report = bring(database, RECIPE)
    assert (report.conversations, report.messages, report.scores) == (0, 0, 0)
    assert report.duplicates == 2
    assert everything(database) == before


def test_a_dry_run_says_the_same_and_changes_nothing(database: Database) -> None:
    planned = bring(database, RECIPE, dry_run=True)
    assert everything(database) == []
    assert bring(database, RECIPE) == planned


def test_duplicates_within_a_file_and_their_scores(database: Database) -> None:
    rows = [
        scored_talk(("a", 0.5), rater="ann"),
        scored_talk(("a", -0.5), rater="bob"),
        scored_talk(("a", 1.0), rater="ann"),
    ]
    report = bring(database, write(rows, "native").encode())
    assert (report.conversations, report.duplicates, report.scores) == (1, 2, 2)
    assert report.warnings == (
        "rows 2, 3: the same conversation stands in a row before it",
        "1 score added to conversations that are already there",
        "1 score left out: the same rater has given that turn another score, which stays",
    )
    (stored,) = everything(database)
    assert [(s.rater, s.value) for s in stored.messages[1].scores] == [("ann", 0.5), ("bob", -0.5)]


def test_the_import_of_an_export_is_identical(database: Database, user_id: int) -> None:
    run = queued_run(database)
    original = replace(
        scored_talk(("a", 0.5), ("b", None), rater="ann"),
        title="t",
        system="s",
        tags=("x",),
        source="typed",
        outcomes=(Score(rater="bob", value=-1.0, note="n"),),
    )
    sampled = replace(original.messages[3], run_id=run.id, token_ids=(1,), logprobs=(-0.5,))
    id = commands.add_conversation(
        database, replace(original, messages=(*original.messages[:3], sampled))
    )
    exported = write([queries.conversation(database, id)], "native")
    before = queries.conversation(database, id)
    commands.delete_conversations(database, [id])
    bring(database, exported.encode())
    (after,) = everything(database)
    bare = [replace(m, id=None, run_id=None) for m in before.messages]
    assert [replace(m, id=None) for m in after.messages] == bare  # run ids stay behind
    assert replace(after, id=None, messages=()) == replace(before, id=None, messages=())


def test_a_malformed_file_imports_nothing(database: Database) -> None:
    good = json.dumps({"messages": [{"role": "user", "content": "x"}]})
    with pytest.raises(DataError, match="line 2, column 2: the JSON is malformed"):
        bring(database, f"[{good},\n{{oops}}, {good}]".encode())
    assert everything(database) == []


def test_an_import_that_breaks_off_leaves_nothing_behind(database: Database) -> None:
    def break_off(*_: object) -> None:
        raise RuntimeError("power cut")

    data = write([scored_talk(("a", 0.5), rater="new rater"), talk("b")], "native").encode()
    with (
        patch("db.commands.storing._insert_scores", break_off),
        pytest.raises(RuntimeError, match="power cut"),
    ):
        bring(database, data)
    assert everything(database) == []
    assert bring(database, data).conversations == 2
