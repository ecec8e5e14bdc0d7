"""What the charts are made from: read once, then only what is new, and true after a resume."""

import pytest

from app import data, metrics
from app.metrics import conversation_rows, learning_of, run_metrics
from db import commands, queries
from db.enums import RunStatus
from tests.app.rows import add_step, make_run, step_row, turn_row


@pytest.fixture
def read_rows(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """How many rows of turn metrics each look at the database brought."""
    counts: list[int] = []
    ask = data.new_turn_metrics

    def asked(run_id: int, *, mark: int):
        new = ask(run_id, mark=mark)
        counts.append(len(new.rows))
        return new

    monkeypatch.setattr(metrics.data, "new_turn_metrics", asked)
    return counts


def steps_of(found: metrics.RunMetrics) -> list[float]:
    return found.turns["loss"][0]["step"].tolist()


def test_a_poll_brings_only_new_rows(database, conversation_ids, read_rows):
    run = make_run(database, conversation_ids, RunStatus.RUNNING, steps=3)
    run_metrics(run)
    add_step(database, run.id, 3)
    run_metrics(run)
    run_metrics(run)
    assert read_rows == [12, 4, 0]
    assert steps_of(run_metrics(run)) == [0, 1, 2, 3]


def test_where_nothing_is_new_nothing_is_computed(database, conversation_ids):
    run = make_run(database, conversation_ids, RunStatus.RUNNING, steps=2)
    assert run_metrics(run) is run_metrics(run)


def test_what_arrives_piece_by_piece_is_what_arrives_at_once(
    database, conversation_ids, monkeypatch
):
    run = make_run(database, conversation_ids, RunStatus.RUNNING)
    rows = [
        turn_row(step, c, t, epoch=step, advantage=(-1) ** t * 0.5, logprob_mean=-2 + 0.3 * step)
        for step in range(4)
        for c in range(3)
        for t in range(2)
    ]
    for start in range(0, len(rows), 5):  # a step's rows come in several pieces
        commands.add_turn_metrics(database, run.id, rows[start : start + 5])
        run_metrics(run)
    grown = run_metrics(run)
    metrics._store.clear()
    whole = run_metrics(run)
    assert grown is not whole
    assert grown.first == whole.first
    assert list(grown.learning.rows("step", "signal")) == list(
        whole.learning.rows("step", "signal")
    )
    assert grown.cells.keys() == whole.cells.keys()
    assert all(grown.cells[c].signal == pytest.approx(whole.cells[c].signal) for c in whole.cells)
    for measure, lines in whole.turns.items():
        for turn, points in lines.items():
            again = grown.turns[measure][turn]
            assert list(again.rows("step", measure, "conversations")) == list(
                points.rows("step", measure, "conversations")
            )


def test_after_a_resume_nothing_of_the_lost_steps_is_shown(database, conversation_ids):
    run = make_run(database, conversation_ids, RunStatus.STOPPED, steps=5)
    assert steps_of(run_metrics(run)) == [0, 1, 2, 3, 4]
    commands.requeue_run(database, run.id)
    commands.discard_metrics_after(database, run.id, 1)
    again = queries.run(database, run.id)
    assert steps_of(run_metrics(again)) == [0, 1]
    assert run_metrics(again).last_step == 1


def test_a_run_that_goes_back_to_a_checkpoint_under_the_eyes_of_the_page_is_read_anew(
    database, conversation_ids
):
    run = make_run(database, conversation_ids, RunStatus.RUNNING, steps=5)
    run_metrics(run)
    commands.discard_metrics_after(database, run.id, 1)
    commands.add_turn_metrics(database, run.id, [turn_row(2, 0, 0, loss_mean=7.0)])
    commands.add_step_metric(database, run.id, step_row(2))
    found = run_metrics(run)
    assert list(found.turns["loss"][0].rows("step", "loss"))[-1] == (2, 7.0)
    assert steps_of(found) == [0, 1, 2]
    assert found.last_step == 2


def test_one_conversation_grows_with_the_rest(database, conversation_ids):
    run = make_run(database, conversation_ids, RunStatus.RUNNING, steps=2)
    run_metrics(run)
    assert {row.conversation for row in conversation_rows(run.id, 1)} == {1}
    add_step(database, run.id, 2)
    run_metrics(run)
    assert conversation_rows(run.id, 1) == queries.turn_metrics(database, run.id, conversation=1)


def test_learning_is_unknown_in_the_first_epoch_and_zero_without_advantages(
    database, conversation_ids
):
    run = make_run(database, conversation_ids, RunStatus.RUNNING)
    assert learning_of(run) is None
    commands.add_turn_metrics(database, run.id, [turn_row(0, 0, 0, advantage=0.0)])
    assert learning_of(run) is None
    commands.add_turn_metrics(database, run.id, [turn_row(1, 0, 0, advantage=0.0)])
    assert learning_of(run) == 0.0


def test_learning_pools_the_last_epoch_over_its_steps(database, conversation_ids):
    run = make_run(database, conversation_ids, RunStatus.RUNNING)
    rows = [
        turn_row(0, 0, 0, epoch=0, advantage=1.0, logprob_mean=-1.0),
        turn_row(1, 1, 0, epoch=0, advantage=1.0, logprob_mean=-1.0),
        turn_row(2, 0, 0, epoch=1, advantage=1.0, logprob_mean=-0.9),
        turn_row(3, 1, 0, epoch=1, advantage=1.0, logprob_mean=-0.7),
    ]
    commands.add_turn_metrics(database, run.id, rows)
    assert learning_of(run) == pytest.approx(0.2)
