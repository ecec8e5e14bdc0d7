"""The schema's history leads from nothing, and from every earlier revision, to the models."""

import sqlite3
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
from alembic.autogenerate import compare_metadata
from alembic.runtime.migration import MigrationContext
from alembic.script import ScriptDirectory
from sqlalchemy import Connection, create_engine

from db import queries
from db.engine import open_database
from db.enums import LabelAction, ScoreScale
from db.errors import SettingsError
from db.migrations.upgrade import alembic_config, upgrade_schema
from db.models import Base
from db.settings import Settings, read_settings

REVISIONS = [
    script.revision
    for script in reversed(list(ScriptDirectory.from_config(alembic_config()).walk_revisions()))
]

FIRST_ROWS = [
    "INSERT INTO users (id, name, role, created_at)"
    " VALUES (1, 'local', 'admin', '2026-01-01 10:00:00.000000')",
    "INSERT INTO conversations"
    " (id, title, system, source, content_hash, archived, created_at, updated_at)"
    " VALUES (7, 'old', 'be kind', 'typed', 'h', 0,"
    " '2026-01-01 10:00:00.000000', '2026-01-01 10:00:00.000000')",
    "INSERT INTO conversation_tags (conversation_id, tag) VALUES (7, 'kept')",
    "INSERT INTO messages (id, conversation_id, position, role, content)"
    " VALUES (1, 7, 0, 'user', 'hello'), (2, 7, 1, 'assistant', 'hi')",
    "INSERT INTO scores (message_id, user_id, value, note, created_at, updated_at)"
    " VALUES (2, 1, 0.0, 'so so',"
    " '2026-01-01 10:00:00.000000', '2026-01-01 10:00:00.000000')",
    "INSERT INTO runs (id, name, status, config, base_model, conversations, turns, start_token,"
    " snapshot_sha256, attempt, progress, message, error_text, created_at, queued_at)"
    " VALUES (3, 'first', 'finished', '{}', 'tiny', 1, 1, 't', 'ab', 1, 1.0, 'done', '',"
    " '2026-01-01 10:00:00.000000', '2026-01-01 10:00:00.000000')",
    "INSERT INTO turn_metrics (run_id, step, conversation, turn, epoch, tokens, response_tokens,"
    " reward, advantage, loss_mean, loss_sum, ratio_mean, clipfrac, clipfrac_binding, kl_mean,"
    " logprob_mean) VALUES (3, 0, 0, 0, 0, 9, 4, 0.5, 0.5, -0.5, -2.0, 1.0, 0.0, 0.0, 0.0, -1.5)",
    "INSERT INTO step_metrics (run_id, step, epoch, loss, grad_norm, lr, kl, tokens_per_s,"
    " memory_bytes, seconds) VALUES (3, 0, 0, -0.5, 1.0, 0.0001, 0.0, 50.0, 1, 0.2)",
]

ROWS_SINCE: dict[str, list[str]] = {
    "0001": FIRST_ROWS,
    "0002": [
        "UPDATE turn_metrics SET kl_base = 0.125",
        "UPDATE step_metrics SET kl_base = 0.125",
    ],
    "0003": [
        "UPDATE users SET may_sign_in = true",
        "INSERT INTO project_settings (id, content, updated_at)"
        ' VALUES (1, \'{"scale": "stars", "blind": true}\', \'2026-01-01 10:00:00.000000\')',
        "INSERT INTO user_settings (user_id, content, updated_at)"
        ' VALUES (1, \'{"keys": {"skip": "K"}}\', \'2026-01-01 10:00:00.000000\')',
    ],
    "0004": [
        "INSERT INTO adjudications (message_id, user_id, value, note, created_at, updated_at)"
        " VALUES (2, 1, 0.5, '', '2026-01-01 10:00:00.000000', '2026-01-01 10:00:00.000000')",
        "INSERT INTO message_versions (id, message_id, role, content, scores_kept, replaced_at)"
        " VALUES (4, 2, 'assistant', 'hey', true, '2026-01-01 10:00:00.000000')",
        "UPDATE conversations SET turns = 1, scored_turns = 1, score_count = 1, mean_score = 0.0",
        "INSERT INTO reviews (conversation_id, user_id, state, scored_turns, updated_at)"
        " VALUES (7, 1, 'open', 1, '2026-01-01 10:00:00.000000')",
        "INSERT INTO events (id, user_id, conversation_id, message_id, new_value, old_note,"
        " new_note, undoable, adjudicates, undoes_id, at) VALUES"
        " (50, 1, 7, 2, 0.25, '', '', true, true, NULL, '2026-01-01 10:00:00.000000'),"
        " (51, 1, 7, 2, NULL, '', '', true, true, 50, '2026-01-01 11:00:00.000000')",
    ],
    "0005": [],
    "0006": [
        "UPDATE runs SET queue_place = 7, metric_rows = 5, device = 'cuda'",
        "UPDATE turn_metrics SET number = 5",
        "UPDATE step_metrics SET attempt = 2, cpu_percent = 12.5",
    ],
    "0007": [
        "UPDATE messages SET sampling = '{\"temperature\": 0.5}' WHERE id = 2",
        "INSERT INTO collections (id, state, user_id, start_token, plan, prompts, prompt_count,"
        " device, process, progress, message, error_text, created_at, changed_at) VALUES (5, 'done',"
        " 1, 't', '{}', '', 1, 'cpu', '', 1.0, '', '',"
        " '2026-01-01 10:00:00.000000', '2026-01-01 10:00:00.000000')",
        "INSERT INTO collected_prompts (collection_id, prompt, conversations, repeats)"
        " VALUES (5, 0, 4, 0)",
    ],
    "0008": [
        "UPDATE runs SET parent_id = 2,"
        ' ancestors = \'[{"run_id": 2, "name": "deleted since", "mean_score": 0.25}]\'',
    ],
    "0009": [
        "INSERT INTO endpoints (name, base_url, key_variable, created_at)"
        " VALUES ('cluster', 'https://c.example.com', 'KEY', '2026-01-01 10:00:00.000000')",
    ],
    "0010": ['UPDATE conversations SET tools = \'[{"type": "function"}]\' WHERE id = 7'],
    "0011": ["UPDATE events SET is_undo = true WHERE id = 51"],
}
"""What each revision lets a database hold besides the rows of those before it.

A new revision adds its own here.
"""


def connect(settings: Settings) -> Any:
    settings.home.mkdir(parents=True, exist_ok=True)
    return create_engine(settings.database_url).begin()


def differences(connection: Connection) -> list[Any]:
    context = MigrationContext.configure(connection, opts={"compare_type": True})
    return compare_metadata(context, Base.metadata)


def test_migrations_and_models_agree(settings: Settings) -> None:
    with connect(settings) as connection:
        assert differences(connection) != []  # the comparison sees that nothing is there
        upgrade_schema(connection)
        assert differences(connection) == []


def test_every_revision_has_rows_to_start_from() -> None:
    assert list(ROWS_SINCE) == REVISIONS


@pytest.mark.parametrize("revision", REVISIONS)
def test_upgrading_from_a_revision_keeps_its_rows(settings: Settings, revision: str) -> None:
    with connect(settings) as connection:
        upgrade_schema(connection, revision)
        for earlier in REVISIONS[: REVISIONS.index(revision) + 1]:
            for statement in ROWS_SINCE[earlier]:
                connection.exec_driver_sql(statement)
    database = open_database(settings)
    conversation = queries.conversation(database, 7)
    assert (conversation.title, conversation.system) == ("old", "be kind")
    assert conversation.tags == ("kept",)
    assert [m.content for m in conversation.messages] == ["hello", "hi"]
    score = conversation.assistant_messages[0].scores[0]
    assert (score.rater, score.value, score.note) == ("local", 0.0, "so so")
    assert queries.local_user(database).id == 1
    ((turn,), (step,)) = queries.turn_metrics(database, 3), queries.step_metrics(database, 3)
    assert (turn.logprob_mean, step.lr) == (-1.5, 0.0001)
    assert turn.kl_base == step.kl_base == (None if revision == "0001" else 0.125)
    is_new = revision >= "0006"
    assert (step.attempt, step.cpu_percent) == ((2, 12.5) if is_new else (1, None))
    rows = queries.new_turn_metrics(database, 3)
    assert (rows.rows, rows.mark) == ((turn,), 5 if is_new else 1)
    assert queries.run(database, 3).metric_rows == rows.mark
    sampling = conversation.assistant_messages[0].sampling
    assert sampling == ({"temperature": 0.5} if revision >= "0007" else None)
    decided = [(c.is_undo, c.is_redo) for c in queries.turn_history(database, 2) if c.adjudicates]
    assert decided == ([(True, False), (False, False)] if revision >= "0004" else [])
    known = [round.name for round in queries.ancestors(database, 3)]
    assert known == (["deleted since"] if revision >= "0008" else [])
    assert queries.run(database, 3).parent_id == (2 if revision >= "0008" else None)
    scale = queries.project_settings(database).scale
    assert scale is (ScoreScale.STARS if revision >= "0003" else ScoreScale.UNIT)
    skip = queries.user_settings(database, user_id=1).keys[LabelAction.SKIP]
    assert skip == ("K" if revision >= "0003" else "S")


def test_opening_again_changes_nothing(settings: Settings) -> None:
    first = queries.local_user(open_database(settings))
    assert queries.local_user(open_database(settings)) == first


def test_a_database_of_a_newer_version_is_refused_in_words(settings: Settings) -> None:
    open_database(settings).close()
    with sqlite3.connect(settings.home / "everyturn.db") as connection:
        connection.execute("UPDATE alembic_version SET version_num = '9999'")
    connection.close()
    with pytest.raises(SettingsError, match="newer version"):
        open_database(settings)


def test_a_file_that_is_no_database_is_refused_in_words(settings: Settings) -> None:
    settings.home.mkdir(parents=True)
    (settings.home / "everyturn.db").write_bytes(b"this is not a database " * 100)
    with pytest.raises(SettingsError, match=r"not an EveryTurn database.*EVERYTURN_HOME"):
        open_database(settings)


@pytest.mark.parametrize("tables", [("notes",), ("alembic_version", "users", "conversations")])
def test_another_programs_database_is_refused_and_left_as_it_is(
    settings: Settings, tables: tuple[str, ...]
) -> None:
    settings.home.mkdir(parents=True)
    file = settings.home / "everyturn.db"
    with closing(sqlite3.connect(file)) as connection:
        for table in tables:
            connection.execute(f"CREATE TABLE {table} (id)")
    before = file.read_bytes()
    with pytest.raises(SettingsError, match=r"not an EveryTurn database.*EVERYTURN_HOME"):
        open_database(settings)
    assert file.read_bytes() == before


def test_an_empty_file_becomes_the_database(settings: Settings) -> None:
    settings.home.mkdir(parents=True)
    (settings.home / "everyturn.db").touch()
    assert queries.local_user(open_database(settings)).id == 1


def test_a_relative_address_is_one_database_wherever_a_process_works(
    settings: Settings, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("DATABASE_URL", "sqlite:///rel.db?timeout=7")
    chosen = read_settings()
    assert chosen.database_url == f"sqlite:///{tmp_path / 'rel.db'}?timeout=7"
    open_database(chosen).close()
    settings.home.mkdir(exist_ok=True)
    monkeypatch.chdir(settings.home)
    monkeypatch.setenv("DATABASE_URL", chosen.database_url)
    assert open_database(read_settings()).sqlite_file == tmp_path / "rel.db"
    assert list(settings.home.iterdir()) == []


def test_a_home_of_nobody_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("EVERYTURN_HOME", "~nobody-of-this-name/data")
    with pytest.raises(SettingsError, match="EVERYTURN_HOME"):
        read_settings()


@pytest.mark.parametrize(
    "url", ["sqlite+pysqlite:////srv/a.db", "postgresql+psycopg://me@host/name?sslmode=require"]
)
def test_other_addresses_stay_as_they_are(monkeypatch: pytest.MonkeyPatch, url: str) -> None:
    monkeypatch.setenv("DATABASE_URL", url)
    assert read_settings().database_url == url


@pytest.mark.parametrize(
    "url",
    [
        "sqlite://",
        "sqlite:///",
        "sqlite:///:memory:",
        "sqlite+pysqlite://",
        "sqlite:///file:a?uri=1",
    ],
)
def test_a_database_without_a_file_is_refused(monkeypatch: pytest.MonkeyPatch, url: str) -> None:
    monkeypatch.setenv("DATABASE_URL", url)
    with pytest.raises(SettingsError, match=r"no database file.*Give a file"):
        read_settings()


@pytest.mark.parametrize("url", ["nonsense", "nosuch://host/name"])
def test_an_address_that_cannot_be_used_is_refused_in_words(tmp_path: Path, url: str) -> None:
    with pytest.raises(SettingsError, match="DATABASE_URL"):
        open_database(Settings(home=tmp_path, database_url=url))


def test_a_home_that_cannot_be_created_is_refused_in_words(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    home = tmp_path / "file" / "home"
    with pytest.raises(SettingsError, match="EVERYTURN_HOME"):
        open_database(Settings(home=home, database_url=f"sqlite:///{home / 'everyturn.db'}"))


def test_sqlite_is_set_up_for_many_processes_and_power_cuts(settings: Settings) -> None:
    database = open_database(settings)
    with database.read_session() as session:
        read = {
            name: session.connection().exec_driver_sql(f"PRAGMA {name}").scalar()
            for name in ("journal_mode", "synchronous", "foreign_keys", "busy_timeout")
        }
    full = 2
    assert read == {
        "journal_mode": "wal",
        "synchronous": full,
        "foreign_keys": 1,
        "busy_timeout": 60000,
    }
