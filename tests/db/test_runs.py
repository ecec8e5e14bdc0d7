"""A run's life in the database: one claim, one end, and figures that can be measured again."""

from dataclasses import replace
from typing import Any

import pytest

from db import commands, queries
from db.engine import Database
from db.enums import ArtifactKind, ErrorKind, RunStatus, StopStage
from db.errors import ConflictError, DataError, NotFoundError
from db.records import NewTurnMetrics
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


def test_a_name_is_kept_on_one_line_and_refused_in_words(database: Database) -> None:
    run = queued_run(database, " a\n\tb\u202e\u2028c\x00 \U0001f469\u200d\U0001f680 ")
    assert run.name == "a b c \U0001f469\u200d\U0001f680"
    commands.rename_run(database, run.id, "x" * 100)
    for name in ("", " \u200e\n", "x" * 101):
        with pytest.raises(DataError, match="Give 1 to 100"):
            commands.rename_run(database, run.id, name)
        with pytest.raises(DataError, match="Give 1 to 100"):
            queued_run(database, name)
    assert [run.name for run in queries.runs(database)] == ["x" * 100]


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


def test_a_waiting_run_moves_to_any_place_and_the_others_close_up(database: Database) -> None:
    a, b, c = (queued_run(database, name).id for name in "abc")
    assert commands.move_waiting_run(database, c, position=0) == [c, a, b]
    assert commands.move_waiting_run(database, c, position=1) == [a, c, b]
    assert commands.move_waiting_run(database, a, position=99) == [c, b, a]
    assert commands.move_waiting_run(database, b, position=-5) == [b, c, a]
    assert [queries.queue_position(database, id) for id in (a, b, c)] == [2, 0, 1]
    claimed = commands.claim_next_run(database)
    assert claimed is not None and claimed.id == b
    assert commands.move_waiting_run(database, b, position=1) == [c, a]  # it has left the queue
    assert queries.queue_position(database, queued_run(database, "d").id) == 2


def test_each_device_has_a_run_of_its_own(database: Database) -> None:
    def make(name: str, device: str) -> int:
        run = commands.create_run(
            database,
            name=name,
            config={},
            base_model="tiny",
            conversations=1,
            turns=1,
            start_token=name,
            device=device,
        )
        commands.set_snapshot(database, run.id, "ab")
        return run.id

    ids = [make("a", "cuda"), make("b", "cuda"), make("c", "cpu"), make("d", "cpu")]
    claimed = [commands.claim_next_run(database) for _ in range(3)]
    assert [run and run.id for run in claimed] == [ids[0], ids[2], None]
    assert [queries.queue_position(database, id) for id in ids] == [None, 0, None, 0]
    commands.end_run(database, ids[2], RunStatus.FINISHED)
    claimed = commands.claim_next_run(database)
    assert claimed is not None and claimed.id == ids[3]


def test_a_run_that_was_never_started_goes_back_to_its_place(database: Database) -> None:
    a, b = queued_run(database, "a").id, queued_run(database, "b").id
    commands.claim_next_run(database, claimed_by="web 1")
    assert not commands.release_run(database, a, claimed_by="web 2")
    assert commands.release_run(database, a, claimed_by="web 1")
    assert [queries.queue_position(database, id) for id in (a, b)] == [0, 1]
    commands.claim_next_run(database, claimed_by="web 2")
    process = {"pid": 4711, "process_started_at": 1.0}
    assert not commands.record_process(database, a, **process, claimed_by="web 1")
    assert commands.record_process(database, a, **process, claimed_by="web 2")
    assert not commands.release_run(database, a, claimed_by="web 2")  # it has a process now


def test_of_two_processes_of_one_run_the_first_has_it(database: Database) -> None:
    run_id = start(database)
    second = {"pid": 4712, "process_started_at": 5.0}
    assert not commands.record_process(database, run_id, **second)
    assert queries.run(database, run_id).pid == 4711
    assert commands.record_process(database, run_id, **second, instead_of=4711)
    assert queries.run(database, run_id).pid == 4712


def test_two_clicks_on_resume_make_one_attempt(database: Database) -> None:
    run_id = start(database)
    commands.end_run(database, run_id, RunStatus.INTERRUPTED)
    for _ in range(2):
        assert commands.requeue_run(database, run_id, attempt=1).attempt == 2
    commands.claim_next_run(database)
    assert commands.requeue_run(database, run_id, attempt=1).status is RunStatus.STARTING
    with pytest.raises(ConflictError):
        commands.requeue_run(database, run_id, attempt=2)


def test_whoever_buries_an_earlier_attempt_leaves_the_present_one_alone(
    database: Database,
) -> None:
    run_id = start(database)
    commands.end_run(database, run_id, RunStatus.FAILED)
    commands.requeue_run(database, run_id)
    commands.claim_next_run(database)
    assert not commands.end_run(database, run_id, RunStatus.FAILED, attempt=1)
    assert status(database, run_id) is RunStatus.STARTING


def test_a_stop_goes_from_stage_to_stage(database: Database) -> None:
    run_id = start(database)
    assert commands.advance_stop(database, run_id, StopStage.KILLED).stop_stage is None
    asked = commands.request_stop(database, run_id)
    assert asked.stop_stage is StopStage.ASKED and asked.stop_stage_at == asked.stop_requested_at
    told = commands.advance_stop(database, run_id, StopStage.TERMINATED)
    assert told.stop_stage is StopStage.TERMINATED
    assert told.stop_stage_at is not None and told.stop_requested_at is not None
    assert told.stop_stage_at > told.stop_requested_at
    assert commands.request_stop(database, run_id).stop_stage is StopStage.TERMINATED
    commands.end_run(database, run_id, RunStatus.STOPPED)
    assert commands.requeue_run(database, run_id).stop_stage is None


def test_a_report_stores_figures_and_heartbeat_at_once_and_hears_of_a_stop(
    database: Database,
) -> None:
    run_id = start(database)
    report = {"progress": 0.5, "message": "half"}
    assert not commands.report(
        database, run_id, turns=[turn_metric(step=0)], steps=[step_metric(step=0)], **report
    )
    run = queries.run(database, run_id)
    assert (run.progress, run.message, run.metric_rows) == (0.5, "half", 1)
    assert queries.step_metrics(database, run_id) == [step_metric(step=0)]
    commands.request_stop(database, run_id)
    assert commands.report(database, run_id, turns=[], steps=[], **report)
    bad = replace(step_metric(step=1), loss=float("nan"))
    with pytest.raises(DataError, match="loss is nan"):
        commands.report(database, run_id, turns=[turn_metric(step=1)], steps=[bad], **report)
    assert queries.run(database, run_id).metric_rows == 1


def test_a_reader_gets_each_row_once_in_whatever_order_it_was_measured(
    database: Database,
) -> None:
    run_id = start(database)
    late, early = turn_metric(step=0, conversation=5), turn_metric(step=0, conversation=1)
    assert queries.new_turn_metrics(database, run_id) == NewTurnMetrics(rows=(), mark=0)
    commands.add_turn_metrics(database, run_id, [late])
    first = queries.new_turn_metrics(database, run_id)
    assert first.rows == (late,)
    commands.add_turn_metrics(database, run_id, [early])  # before it in the step's own order
    second = queries.new_turn_metrics(database, run_id, mark=first.mark)
    assert second.rows == (early,)
    again = replace(late, loss_mean=9.0)
    commands.add_turn_metrics(database, run_id, [again])
    assert queries.new_turn_metrics(database, run_id, mark=second.mark).rows == (again,)
    commands.discard_metrics_after(database, run_id, -1)
    commands.add_turn_metrics(database, run_id, [early])  # no number comes twice
    assert queries.new_turn_metrics(database, run_id, mark=second.mark).rows == (early,)
    assert queries.run(database, run_id).metric_rows == 4


def test_the_end_of_an_attempt_is_told_once(database: Database) -> None:
    run_id = start(database)
    assert not commands.claim_notice(database, run_id)  # it has not ended
    commands.end_run(database, run_id, RunStatus.FAILED)
    assert commands.claim_notice(database, run_id)
    assert not commands.claim_notice(database, run_id)
    commands.requeue_run(database, run_id)
    commands.claim_next_run(database)
    commands.end_run(database, run_id, RunStatus.FINISHED)
    assert commands.claim_notice(database, run_id)


def test_runs_that_ended_since_a_moment(database: Database) -> None:
    before = start(database, "a")
    commands.end_run(database, before, RunStatus.FINISHED)
    moment = queries.run(database, before).ended_at
    assert moment is not None
    after = start(database, "b")
    commands.end_run(database, after, RunStatus.FAILED)
    assert [run.id for run in queries.runs_ended_after(database, moment)] == [after]


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
