"""A run's life in the database: one claim, one end, and figures that can be measured again."""

from dataclasses import replace
from typing import Any

import pytest

from db import commands, queries
from db.engine import Database
from db.enums import ArtifactKind, ErrorKind, RunStatus
from db.errors import ConflictError, DataError, NotFoundError
from tests.db.backends import ON_EVERY_DATABASE
from tests.db.building import queued_run, step_metric, turn_metric

pytestmark = ON_EVERY_DATABASE


def status(database: Database, run_id: int) -> RunStatus:
    return queries.run(database, run_id).status


def start(database: Database, name: str = "run") -> int:
    """Bring a new run to running."""
    run_id = queued_run(database, name).id
    assert commands.claim_next_run(database) is not None
    commands.record_process(database, run_id, pid=4711, process_started_at=1234.5)
    commands.begin_run(database, run_id)
    return run_id


def test_two_clicks_on_start_make_one_run(database: Database) -> None:
    first, second = queued_run(database), queued_run(database)
    assert first.id == second.id
    assert len(queries.runs(database)) == 1
    assert first.config == {"epochs": 2}
    assert first.status is RunStatus.QUEUED


def test_runs_start_first_come_first_served_and_one_at_a_time(database: Database) -> None:
    a, b, unready = (
        queued_run(database, "a"), queued_run(database, "b"), queued_run(database, "c", snapshot="")
    )  # fmt: skip
    assert [queries.queue_position(database, run.id) for run in (a, b, unready)] == [0, 1, 2]
    claimed = commands.claim_next_run(database)
    assert claimed is not None and claimed.id == a.id and claimed.status is RunStatus.STARTING
    assert claimed.heartbeat_at is not None
    assert queries.queue_position(database, a.id) is None
    assert commands.claim_next_run(database) is None
    commands.end_run(database, a.id, RunStatus.FINISHED)
    claimed = commands.claim_next_run(database)
    assert claimed is not None and claimed.id == b.id
    commands.end_run(database, b.id, RunStatus.FINISHED)
    assert commands.claim_next_run(database) is None  # the third has no data yet
    commands.set_snapshot(database, unready.id, "ab")
    claimed = commands.claim_next_run(database)
    assert claimed is not None and claimed.id == unready.id


def test_from_start_to_finish(database: Database) -> None:
    run_id = start(database)
    running = queries.run(database, run_id)
    assert (running.status, running.pid) == (RunStatus.RUNNING, 4711)
    assert running.process_started_at == 1234.5
    assert running.started_at is not None
    assert not commands.heartbeat(database, run_id, progress=0.5, message="half")
    half = queries.run(database, run_id)
    assert (half.progress, half.message) == (0.5, "half")
    assert commands.end_run(database, run_id, RunStatus.FINISHED)
    ended = queries.run(database, run_id)
    assert (ended.status, ended.pid) == (RunStatus.FINISHED, None)
    assert ended.ended_at is not None
    assert not commands.end_run(database, run_id, RunStatus.FAILED, error_text="too late")
    assert queries.run(database, run_id) == ended


def test_a_stop_is_a_request_to_a_running_run_and_an_end_to_a_waiting_one(
    database: Database,
) -> None:
    running = start(database, "a")
    waiting = queued_run(database, "b").id
    assert commands.request_stop(database, waiting).status is RunStatus.STOPPED
    first = commands.request_stop(database, running)
    assert first.status is RunStatus.STOPPING
    assert commands.request_stop(database, running).stop_requested_at == first.stop_requested_at
    commands.begin_run(database, running)
    assert status(database, running) is RunStatus.STOPPING  # the request is not forgotten
    assert commands.heartbeat(database, running, progress=0.1, message="")
    commands.end_run(database, running, RunStatus.STOPPED)
    assert commands.request_stop(database, running).status is RunStatus.STOPPED


def test_a_run_that_was_declared_dead_is_told_to_stop(database: Database) -> None:
    run_id = start(database)
    commands.end_run(
        database, run_id, RunStatus.FAILED, error_kind=ErrorKind.KILLED, error_text="gone"
    )
    assert commands.heartbeat(database, run_id, progress=0.9, message="I live")
    dead = queries.run(database, run_id)
    assert (dead.status, dead.message) == (RunStatus.FAILED, "")
    with pytest.raises(ConflictError):
        commands.begin_run(database, run_id)


def test_a_failed_run_goes_on_as_its_next_attempt(database: Database) -> None:
    run_id = start(database, "a")
    commands.request_stop(database, run_id)
    commands.end_run(
        database, run_id, RunStatus.FAILED, error_kind=ErrorKind.DISK_FULL, error_text="full"
    )
    other = queued_run(database, "b")
    again = commands.requeue_run(database, run_id)
    assert (again.status, again.attempt) == (RunStatus.QUEUED, 2)
    assert (again.error_kind, again.error_text, again.stop_requested_at) == (None, "", None)
    assert again.ended_at is None
    assert [r.id for r in queries.runs_with_status(database, RunStatus.QUEUED)] == [
        other.id,
        run_id,
    ]  # it queues behind those that waited meanwhile
    with pytest.raises(ConflictError):
        commands.requeue_run(database, run_id)


def test_lists_of_runs(database: Database) -> None:
    a, b = start(database, "a"), queued_run(database, "b").id
    assert [run.id for run in queries.runs(database)] == [b, a]
    both = queries.runs_with_status(database, RunStatus.RUNNING, RunStatus.QUEUED)
    assert [run.id for run in both] == [a, b]
    commands.rename_run(database, a, "new name")
    assert queries.run(database, a).name == "new name"
    counts = queries.overview(database)
    assert (counts.runs, counts.active_runs, counts.adapters) == (2, 2, 0)


def test_a_run_is_deleted_with_its_figures_but_not_while_it_runs(database: Database) -> None:
    run_id = start(database)
    commands.add_turn_metrics(database, run_id, [turn_metric(step=0)])
    with pytest.raises(ConflictError, match="running"):
        commands.delete_run(database, run_id)
    commands.end_run(database, run_id, RunStatus.STOPPED)
    commands.delete_run(database, run_id)
    assert queries.runs(database) == []
    assert queries.turn_metrics(database, run_id) == []
    assert queued_run(database, "next").id > run_id  # its folder is never mistaken for another's


def test_figures_come_back_in_order_and_only_the_new_ones(database: Database) -> None:
    run_id = start(database)
    rows = [
        turn_metric(step=1, conversation=0),
        turn_metric(step=0, conversation=1, turn=1),
        turn_metric(step=0, conversation=1, turn=0),
        turn_metric(step=0, conversation=0),
    ]
    commands.add_turn_metrics(database, run_id, rows)
    commands.add_step_metric(database, run_id, step_metric(step=1))
    commands.add_step_metric(database, run_id, step_metric(step=0))
    assert queries.turn_metrics(database, run_id) == rows[::-1]
    assert queries.turn_metrics(database, run_id, after_step=0) == rows[:1]
    assert queries.turn_metrics(database, run_id, after_step=1) == []
    assert [row.step for row in queries.step_metrics(database, run_id)] == [0, 1]
    assert queries.step_metrics(database, run_id, after_step=0) == [step_metric(step=1)]


def test_figures_measured_again_replace_the_old_ones(database: Database) -> None:
    run_id = start(database)
    commands.add_turn_metrics(database, run_id, [turn_metric(step=s) for s in range(3)])
    commands.add_turn_metrics(database, run_id, [turn_metric(step=2, loss_mean=9.0)])
    for loss in (0.5, 0.25):
        commands.add_step_metric(database, run_id, step_metric(step=2, loss=loss))
    assert [row.loss_mean for row in queries.turn_metrics(database, run_id)] == [-0.25, -0.25, 9]
    assert [row.loss for row in queries.step_metrics(database, run_id)] == [0.25]
    commands.discard_metrics_after(database, run_id, 0)
    assert [row.step for row in queries.turn_metrics(database, run_id)] == [0]
    assert queries.step_metrics(database, run_id) == []


def test_a_figure_that_is_not_finite_is_refused_by_name(database: Database) -> None:
    run_id = start(database)
    bad = replace(turn_metric(step=3), ratio_mean=float("inf"))
    with pytest.raises(DataError, match=f"run {run_id}, step 3: ratio_mean is inf"):
        commands.add_turn_metrics(database, run_id, [turn_metric(step=2), bad])
    assert queries.turn_metrics(database, run_id) == []
    commands.add_turn_metrics(database, run_id, [])


def test_artifacts_are_replaced_by_kind_and_path(database: Database) -> None:
    run_id = start(database)
    for size in (1, 5 * 2**30):
        commands.add_artifact(
            database,
            run_id,
            kind=ArtifactKind.ADAPTER,
            path="adapter",
            sha256="ab",
            size_bytes=size,
        )
    (artifact,) = queries.artifacts(database, run_id)
    assert (artifact.kind, artifact.path) == (ArtifactKind.ADAPTER, "adapter")
    assert artifact.size_bytes == 5 * 2**30
    assert queries.overview(database).adapters == 1


@pytest.mark.parametrize(
    ("command", "arguments"),
    [
        (commands.request_stop, {}),
        (commands.requeue_run, {}),
        (commands.begin_run, {}),
        (commands.delete_run, {}),
        (commands.heartbeat, {"progress": 0.0, "message": ""}),
        (commands.record_process, {"pid": 1, "process_started_at": 1.0}),
        (commands.add_step_metric, {"row": step_metric(step=0)}),
        (queries.run, {}),
    ],
)
def test_a_run_that_is_not_there(
    database: Database, command: Any, arguments: dict[str, Any]
) -> None:
    with pytest.raises(NotFoundError, match="no run 99"):
        command(database, 99, **arguments)
