"""The list of runs."""

from dataclasses import replace

import pytest

from app import data, routes
from app.components.format import plain
from app.components.run_status import (
    RECENT_STEPS,
    duration,
    estimate_left_s,
    progress_text,
    time_left_s,
)
from db import commands, queries
from db.enums import ErrorKind, RunStatus
from tests.app.rows import make_run, step_row
from trainer.runs.process import own_machine


def texts(elements) -> str:
    return "\n".join(str(element.value) for element in elements)


def menu(page, run_id: int):
    return next(m for m in page.menu_button if m.key == f"actions_{run_id}")


def test_without_runs_the_page_says_what_a_run_is(open_page):
    page = open_page(routes.RUNS)
    assert not page.exception
    assert "A run trains the model on your scores" in texts(page.info)


def test_each_run_shows_name_state_and_whether_it_learns(open_page, database, conversation_ids):
    make_run(database, conversation_ids, RunStatus.FINISHED, name="Old [tone]", steps=3)
    make_run(database, conversation_ids, RunStatus.RUNNING, name="New", progress=0.4)
    page = open_page(routes.RUNS)
    assert not page.exception
    links = [link.label for link in page.main.get("page_link")]
    assert links == ["**New**", f"**{plain('Old [tone]')}**"]
    shown = texts(page.markdown)
    assert "finished" in shown
    assert "running" in shown
    assert "+0.500" in shown  # third epoch: 2 steps x 0.25, as asked, in either direction
    assert any("40%" in bar.proto.text for bar in page.get("progress"))


def test_a_dead_run_is_found_and_shown_as_failed(open_page, database, conversation_ids):
    run = make_run(database, conversation_ids, RunStatus.RUNNING)
    machine = own_machine()
    commands.record_process(
        database,
        run.id,
        pid=2**22 - 1,
        process_started_at=1.0,
        machine=machine,
        instead_of=run.pid,
    )
    page = open_page(routes.RUNS)
    assert "failed" in texts(page.markdown)
    assert queries.run(database, run.id).error_kind is ErrorKind.KILLED


def test_deleting_asks_once_and_takes_the_folder_too(
    open_page, database, settings, conversation_ids
):
    run = make_run(database, conversation_ids, RunStatus.FINISHED, steps=1)
    page = open_page(routes.RUNS)
    menu(page, run.id).click("Delete").run()
    assert queries.runs(database)
    assert "goes for good" in texts(page.markdown)
    page.button(key="delete_run").click().run()
    assert not page.exception
    assert queries.runs(database) == []
    assert not settings.run_dir(run.id).exists()


def test_a_run_that_goes_on_cannot_be_deleted(open_page, database, conversation_ids):
    run = make_run(database, conversation_ids, RunStatus.RUNNING)
    page = open_page(routes.RUNS)
    assert menu(page, run.id).options == ["Run again with changes", "Compare", "Rename"]


def test_renaming(open_page, database, conversation_ids):
    run = make_run(database, conversation_ids, RunStatus.STOPPED)
    page = open_page(routes.RUNS)
    menu(page, run.id).click("Rename").run()
    page.text_input(key="new_run_name").set_value("  Better tone ")
    page.button(key="rename_run").click().run()
    assert not page.exception
    assert queries.run(database, run.id).name == "Better tone"


def test_the_sidebar_shows_a_run_that_goes_on_on_every_page(open_page, database, conversation_ids):
    make_run(database, conversation_ids, RunStatus.RUNNING, name="Tone", progress=0.3)
    page = open_page(routes.LAUNCH)
    bars = page.sidebar.get("progress")
    assert [bar.proto.value for bar in bars] == [30]
    assert "Tone" in [link.label for link in page.sidebar.get("page_link")]


def test_the_sidebar_is_quiet_without_one(open_page, database, conversation_ids):
    make_run(database, conversation_ids, RunStatus.FINISHED)
    page = open_page(routes.LAUNCH)
    assert not page.sidebar.get("progress")


@pytest.mark.parametrize(
    ("seconds", "words"),
    [(0.4, "0 s"), (59, "59 s"), (60, "1 min"), (3599, "1 h 0 min"), (7500, "2 h 5 min")],
)
def test_durations_are_told_in_two_units_at_most(seconds: float, words: str):
    assert duration(seconds) == words


def test_time_left_is_the_mean_time_of_a_step_times_the_steps_that_remain(
    database, conversation_ids
):
    # Two of nine steps are done: three epochs of three.
    run = make_run(database, conversation_ids, RunStatus.RUNNING, progress=2 / 9, message="words")
    for step, seconds in enumerate((20.0, 40.0)):
        commands.add_step_metric(database, run.id, step_row(step, seconds=seconds))
    assert time_left_s(run) == pytest.approx(7 * 30)
    assert progress_text(run) == "22% · words · 4 min left"


def test_time_left_does_not_count_the_speed_of_an_earlier_attempt(database, conversation_ids):
    run = make_run(database, conversation_ids, RunStatus.RUNNING, progress=2 / 3)
    recent = [step_row(0, seconds=500.0), step_row(1, seconds=10.0, attempt=2)]
    for step in recent:
        commands.add_step_metric(database, run.id, step)
    assert time_left_s(replace(run, attempt=2)) == pytest.approx(10)
    assert time_left_s(replace(run, attempt=3)) is None


@pytest.mark.parametrize("into_the_step", [0.0, 0.5, 0.95])
def test_the_number_of_steps_is_told_from_the_middle_of_one_as_well(
    into_the_step: float, database, conversation_ids
):
    progress = (12 + into_the_step) / 30
    run = make_run(database, conversation_ids, RunStatus.RUNNING, progress=progress)
    left = estimate_left_s(run, [step_row(11, seconds=1.0)])
    assert left == pytest.approx(30 * (1 - progress), rel=0.11)


def test_only_the_latest_steps_tell_the_time_left(database, conversation_ids):
    run = make_run(database, conversation_ids, RunStatus.RUNNING, progress=0.5)
    for step in range(RECENT_STEPS + 3):
        seconds = 1000.0 if step < 3 else 1.0
        commands.add_step_metric(database, run.id, step_row(step, seconds=seconds))
    assert time_left_s(run) == pytest.approx(RECENT_STEPS + 3)


def test_no_time_is_promised_before_the_first_step_after_the_last_or_after_the_end(
    database, conversation_ids
):
    early = make_run(database, conversation_ids, RunStatus.RUNNING, progress=1 / 9)
    assert time_left_s(early) is None
    commands.add_step_metric(database, early.id, step_row(0))
    data.refresh()
    assert time_left_s(early) == pytest.approx(8)
    commands.heartbeat(database, early.id, progress=1.0, message="saving the adapter")
    assert time_left_s(queries.run(database, early.id)) is None
    commands.heartbeat(database, early.id, progress=0.9, message="epoch 3/3")
    commands.end_run(database, early.id, RunStatus.STOPPED)
    assert time_left_s(queries.run(database, early.id)) is None
