"""Many writers at once: nobody is turned away, nothing is lost, nothing happens twice."""

import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from threading import Barrier

from db import commands, queries
from db.engine import Database, open_database
from db.records import Run
from db.settings import Settings
from tests.db.backends import ON_EVERY_DATABASE
from tests.db.building import queued_run, scored_talk

pytestmark = ON_EVERY_DATABASE

THREADS = 8
TURNS = 15


def test_every_score_of_many_writers_is_kept(database: Database, settings: Settings) -> None:
    """Half the writers share a pool, half have connections of their own, as processes would."""
    names = [f"rater {i}" for i in range(THREADS)]
    turns = [(f"reply {i}", None) for i in range(TURNS)]
    id = commands.add_conversation(database, scored_talk(*turns))
    for name in names:
        commands.add_conversation(database, scored_talk(("x", 0.0), rater=name))
    raters = [
        next(iter(queries.score_events(database, conversation_id=id + 1 + i))).user_id
        for i in range(THREADS)
    ]
    message_ids = [m.id for m in queries.conversation(database, id).assistant_messages]
    others = [open_database(settings) for _ in range(THREADS // 2)]

    def score(rater: int, connection: Database) -> None:
        for number, message_id in enumerate(message_ids):
            assert message_id is not None
            value = number / TURNS
            commands.set_score(connection, user_id=rater, message_id=message_id, value=value)

    pools = [*([database] * (THREADS // 2)), *others]
    with ThreadPoolExecutor(THREADS) as pool:
        list(pool.map(score, raters, pools))
    for number, turn in enumerate(queries.conversation(database, id).assistant_messages):
        assert sorted(s.rater for s in turn.scores) == names
        assert {s.value for s in turn.scores} == {number / TURNS}
    logged = queries.score_events(database, conversation_id=id, limit=10_000)
    assert len(logged) == THREADS * TURNS


def test_one_rater_in_two_windows_leaves_one_score_and_a_whole_log(
    database: Database, user_id: int
) -> None:
    id = commands.add_conversation(database, scored_talk(("a", None)))
    message_id = queries.conversation(database, id).messages[1].id
    assert message_id is not None

    def score(window: int) -> None:
        for i in range(25):
            commands.set_score(
                database, user_id=user_id, message_id=message_id, value=(2 * i + window) / 50
            )

    with ThreadPoolExecutor(2) as pool:
        list(pool.map(score, range(2)))
    log = queries.score_events(database)[::-1]
    assert len(log) == 50
    assert [e.old_value for e in log] == [None, *(e.new_value for e in log[:-1])]
    (score_now,) = queries.conversation(database, id).messages[1].scores
    assert score_now.value == log[-1].new_value


def test_a_waiting_run_is_claimed_once(database: Database, settings: Settings) -> None:
    for name in ("a", "b"):
        queued_run(database, name)
    barrier = Barrier(4)

    def claim(connection: Database) -> Run | None:
        barrier.wait()
        return commands.claim_next_run(connection)

    connections = [database, database, open_database(settings), open_database(settings)]
    with ThreadPoolExecutor(4) as pool:
        claimed = [run for run in pool.map(claim, connections) if run is not None]
    assert [run.name for run in claimed] == ["a"]


def test_the_same_start_token_at_once_makes_one_run(database: Database) -> None:
    barrier = Barrier(4)

    def create(_: int) -> int:
        barrier.wait()
        return queued_run(database).id

    with ThreadPoolExecutor(4) as pool:
        assert len(set(pool.map(create, range(4)))) == 1


def test_readers_are_not_kept_waiting_by_a_writer(database: Database, user_id: int) -> None:
    id = commands.add_conversation(database, scored_talk(("a", 0.5)))
    with database.session() as writing:
        writing.connection().exec_driver_sql("DELETE FROM scores")
        (score,) = queries.conversation(database, id).messages[1].scores
    assert score.value == 0.5
    assert queries.conversation(database, id).messages[1].scores == ()


def test_several_processes_may_open_an_empty_home_at_once(settings: Settings) -> None:
    code = "from db.engine import open_database; open_database()"
    processes = [
        subprocess.Popen([sys.executable, "-c", code], stderr=subprocess.PIPE, text=True)
        for _ in range(4)
    ]
    for process in processes:
        _, errors = process.communicate(timeout=120)
        assert (process.returncode, errors) == (0, "")
    assert queries.local_user(open_database(settings)).name == "local"
