"""The page of one run."""

import base64
import csv
import io
import json
import shutil
from dataclasses import asdict, replace
from datetime import timedelta

import numpy as np
import pytest

from app import data, routes, run_files
from app.components.format import plain
from app.components.run_failure import REMEDIES
from app.components.run_header import stage_text
from db import commands, queries
from db.enums import ErrorKind, RunStatus, StopStage, UserRole
from tests.app.rows import add_step, make_run, turn_row
from trainer.config import LossName, Preset, TrainConfig
from trainer.runs.folder import RunFolder, write_json, write_text


def texts(elements) -> str:
    return "\n".join(str(element.value) for element in elements)


def charts(page) -> dict[str, dict]:
    """The figures on the page by the key that the page gives them."""
    found = {}
    for element in page.get("bidi_component"):
        shown = sent(element)
        found[shown["name"].removeprefix("chart_")] = json.loads(shown["figure"])
    return found


def sent(element) -> dict:
    """What a chart's element hands to the browser."""
    return json.loads(element.proto.json or element.proto.mixed.json)


def numbers(values) -> list:
    """Plotly's JSON for an array: a list, or its bytes."""
    if isinstance(values, dict):
        array = np.frombuffer(base64.b64decode(values["bdata"]), values["dtype"])
        shape = values.get("shape")
        return (array.reshape([int(n) for n in shape.split(",")]) if shape else array).tolist()
    return values


def names(figure: dict) -> list[str]:
    return [trace["name"] for trace in figure["data"] if "name" in trace]


def test_without_a_number_the_page_sends_to_the_list(open_page):
    page = open_page(routes.RUN)
    assert not page.exception
    assert "Choose it from the list" in texts(page.info)


def test_a_run_that_does_not_exist_is_a_friendly_message(open_page):
    page = open_page(routes.RUN, run=99)
    assert not page.exception
    assert "There is no run 99 (any more)" in texts(page.info)


def test_a_run_without_figures_says_when_they_come(open_page, database, conversation_ids):
    run = make_run(database, conversation_ids, RunStatus.RUNNING)
    page = open_page(routes.RUN, run=run.id)
    assert not page.exception
    assert "The first figures arrive after the first pass" in texts(page.info)
    assert not charts(page)


def test_all_charts_are_drawn_with_the_runs_own_clip_bounds(open_page, database, conversation_ids):
    config = TrainConfig(clip_low=0.7, clip_high=1.4)
    run = make_run(database, conversation_ids, RunStatus.RUNNING, config=config, steps=3)
    page = open_page(routes.RUN, run=run.id)
    assert not page.exception
    figures = charts(page)
    shown = "clip grad_norm heat kl learning loss memory ratio signals speed"
    assert sorted(figures) == shown.split()
    assert {"clip at 0.7", "clip at 1.4"} <= set(names(figures["ratio"]))
    learning = next(t for t in figures["learning"]["data"] if t["name"] == "change × advantage")
    assert numbers(learning["y"]) == pytest.approx([0.0, 0.25, 0.5])
    assert all(sent(element)["alt"] for element in page.get("bidi_component"))
    assert "Yes, it moves as the scores ask" in texts(page.markdown)


def test_a_loss_without_clipping_has_no_clip_chart(open_page, database, conversation_ids):
    config = TrainConfig(loss=LossName.CROSS_ENTROPY)
    run = make_run(database, conversation_ids, RunStatus.FINISHED, config=config, steps=2)
    figures = charts(open_page(routes.RUN, run=run.id))
    assert "clip" not in figures
    assert not [name for name in names(figures["ratio"]) if name.startswith("clip")]


def test_new_points_arrive_when_the_page_looks_again(open_page, database, conversation_ids):
    run = make_run(database, conversation_ids, RunStatus.RUNNING, steps=2)
    page = open_page(routes.RUN, run=run.id)
    half = [turn_row(2, 0, 0, advantage=0.25)]
    commands.add_turn_metrics(database, run.id, half)
    _look_again(page)
    add_step(database, run.id, 2)
    _look_again(page)
    figures = charts(page)
    assert numbers(figures["kl"]["data"][0]["x"]) == [1, 2, 3]
    first_turn = next(trace for trace in figures["loss"]["data"] if trace["name"] == "1")
    assert numbers(first_turn["x"]) == [1, 2, 3]
    assert [values[3] for values in numbers(first_turn["customdata"])] == [2, 2, 2]


def test_a_chart_stays_the_same_element_while_points_arrive(open_page, database, conversation_ids):
    run = make_run(database, conversation_ids, RunStatus.RUNNING, steps=2)
    page = open_page(routes.RUN, run=run.id)
    before = [(element.proto.id, look(element)) for element in page.get("bidi_component")]
    add_step(database, run.id, 2)
    _look_again(page)
    after = [(element.proto.id, look(element)) for element in page.get("bidi_component")]
    assert after == before


def look(element) -> str:
    """The name under which the browser keeps the reader's zoom and legend choices."""
    return sent(element)["scope"]


def test_one_conversation_can_be_looked_at_by_address(open_page, database, conversation_ids):
    run = make_run(database, conversation_ids, RunStatus.FINISHED, steps=2)
    page = open_page(routes.RUN, run=run.id, view="one conversation")
    assert not page.exception
    assert page.selectbox(key="chart_conversation").value == 0
    hover = next(t for t in charts(page)["loss"]["data"] if t["name"] == "1")["customdata"]
    assert "Parcel lost" in str(hover)


def test_who_scores_blind_is_sent_nothing_that_is_drawn_from_scores(
    open_page, database, conversation_ids
):
    run = make_run(database, conversation_ids, RunStatus.FINISHED, steps=2)
    commands.admit_person(database, "local", role=UserRole.ANNOTATOR, password=None)
    scored = {"loss", "heat", "signals"}
    seen = charts(open_page(routes.RUN, run=run.id))
    assert scored < seen.keys()
    assert "advantage" in json.dumps(seen["ratio"])
    commands.change_project_settings(database, {"blind": True})
    data.refresh()
    page = open_page(routes.RUN, run=run.id, view="one conversation")
    assert not page.exception
    assert "Scoring is blind" in texts(page.caption)
    hidden = charts(page)
    assert hidden.keys() == seen.keys() - scored
    for name in ("ratio", "clip"):
        told = hidden[name]["data"]
        medians = [numbers(trace["customdata"]) for trace in told if "customdata" in trace]
        assert medians and all(len(point) == 4 for rows in medians for point in rows)
        assert "advantage" not in json.dumps(told)


def test_stop_asks_the_run_and_shows_that_it_was_asked(open_page, database, conversation_ids):
    run = make_run(database, conversation_ids, RunStatus.RUNNING, steps=1)
    page = open_page(routes.RUN, run=run.id)
    page.button(key="stop_run").click().run()
    assert not page.exception
    assert queries.run(database, run.id).status is RunStatus.STOPPING
    assert page.button(key="stop_run").disabled
    assert "Asked to stop" in texts(page.caption)


def test_a_waiting_run_tells_its_place(open_page, database, conversation_ids):
    make_run(database, conversation_ids, RunStatus.RUNNING, name="first")
    run = make_run(database, conversation_ids, RunStatus.QUEUED, name="second")
    page = open_page(routes.RUN, run=run.id)
    assert "number 1 in the queue, it is next" in texts(page.info)


def test_a_waiting_run_can_be_moved_and_taken_out(open_page, database, conversation_ids):
    make_run(database, conversation_ids, RunStatus.RUNNING, name="first")
    make_run(database, conversation_ids, RunStatus.QUEUED, name="second")
    run = make_run(database, conversation_ids, RunStatus.QUEUED, name="third")
    page = open_page(routes.RUN, run=run.id)
    assert page.button(key=f"later_{run.id}").disabled
    page.button(key=f"sooner_{run.id}").click().run()
    assert "number 1 in the queue" in texts(page.info)
    assert page.button(key=f"sooner_{run.id}").disabled
    page.button(key=f"cancel_{run.id}").click().run()
    assert not page.exception
    assert queries.run(database, run.id).status is RunStatus.STOPPED
    assert "Taken out of the queue" in texts(page.info)


def test_a_stop_shows_how_far_it_has_gone_and_what_comes_next(
    open_page, database, conversation_ids
):
    run = make_run(database, conversation_ids, RunStatus.STOPPING, steps=1)
    asked = open_page(routes.RUN, run=run.id)
    assert "**Asked to stop.**" in texts(asked.caption)
    assert "its process is told to end in" in texts(asked.caption)
    commands.advance_stop(database, run.id, StopStage.TERMINATED)
    data.refresh()
    told = open_page(routes.RUN, run=run.id)
    assert "**Its process was told to end**" in texts(told.caption)


def test_a_stop_counts_down_to_its_next_stage(database, conversation_ids):
    run = make_run(database, conversation_ids, RunStatus.STOPPING)
    since = run.stop_stage_at
    assert since is not None
    told = replace(run, stop_stage=StopStage.TERMINATED)
    assert "killed in 20 s" in stage_text(told, since + timedelta(seconds=10))
    assert "killed at once" in stage_text(told, since + timedelta(seconds=31))


def test_a_failed_run_says_what_where_and_what_to_do(open_page, database, conversation_ids):
    run = make_run(
        database,
        conversation_ids,
        RunStatus.FAILED,
        progress=0.3,
        message="epoch 1, step 4",
        error=(ErrorKind.OUT_OF_MEMORY, "The pass did not fit\n\nRuntimeError: alloc"),
    )
    page = open_page(routes.RUN, run=run.id)
    shown = texts(page.error)
    assert "The pass did not fit" in shown
    assert "30%" in shown
    assert "Launch it again with less at once" in shown
    assert "RuntimeError" not in shown
    assert "RuntimeError: alloc" in texts(page.code)
    assert "**Tokens a pass**: 2048 → **1024**" in texts(page.markdown)


def test_a_failure_offers_to_launch_again_with_the_change_made(
    open_page, database, conversation_ids
):
    error = (ErrorKind.NOT_A_NUMBER, "A loss is NaN")
    config = TrainConfig(grad_clip_norm=0, learning_rate=4e-4)
    run = make_run(database, conversation_ids, RunStatus.FAILED, config=config, error=error)
    page = open_page(routes.RUN, run=run.id)
    page.button(key="launch_changed").click().run()
    assert not page.exception
    assert page.title[0].value == "Launch a run"
    asked = {name: page.query_params[name] for name in ("from_run", "set")}
    assert asked == {"from_run": str(run.id), "set": "learning_rate:0.0001,grad_clip_norm:1.0"}


def test_a_failure_shows_the_last_lines_of_the_log(open_page, database, settings, conversation_ids):
    error = (ErrorKind.KILLED, "It ended without a word.")
    run = make_run(database, conversation_ids, RunStatus.FAILED, error=error)
    write_text(RunFolder(settings.run_dir(run.id)).log, "\n".join(f"line {n}" for n in range(50)))
    page = open_page(routes.RUN, run=run.id)
    assert page.code[0].value.splitlines()[-1] == "line 49"
    assert len(page.code[0].value.splitlines()) < 20


def test_every_kind_of_failure_says_what_to_do():
    assert set(REMEDIES) == set(ErrorKind)
    assert all(remedy.endswith(".") for remedy in REMEDIES.values())


def test_an_interrupted_run_is_no_failure_and_can_be_resumed(
    open_page, database, settings, conversation_ids
):
    error = (ErrorKind.INTERRUPTED, "The machine was started anew.")
    run = make_run(database, conversation_ids, RunStatus.INTERRUPTED, error=error)
    write_json(RunFolder(settings.run_dir(run.id)).config, run.config)
    page = open_page(routes.RUN, run=run.id)
    assert not page.error
    assert "Interrupted" in texts(page.warning)
    assert "resume_run" in [button.key for button in page.button]


def test_an_ended_run_offers_no_stop(open_page, database, conversation_ids):
    run = make_run(database, conversation_ids, RunStatus.FINISHED, steps=1, progress=1.0)
    page = open_page(routes.RUN, run=run.id)
    assert "Finished" in texts(page.success)
    assert not {"stop_run", "resume_run"} & {b.key for b in page.button}


def test_a_stopped_run_can_be_resumed_as_its_next_attempt(
    open_page, database, settings, conversation_ids
):
    run = make_run(database, conversation_ids, RunStatus.STOPPED, steps=1)
    write_json(RunFolder(settings.run_dir(run.id)).config, run.config)
    make_run(database, conversation_ids, RunStatus.RUNNING, name="holds the device")
    page = open_page(routes.RUN, run=run.id)
    assert "attempt 2" in page.button(key="resume_run").help
    page.button(key="resume_run").click().run()
    assert not page.exception
    resumed = queries.run(database, run.id)
    assert (resumed.status, resumed.attempt) == (RunStatus.QUEUED, 2)
    assert "number 1 in the queue" in texts(page.info)


def test_a_run_without_its_folder_says_why_it_cannot_be_resumed(
    open_page, database, settings, conversation_ids
):
    error = (ErrorKind.UNEXPECTED, "It broke")
    run = make_run(database, conversation_ids, RunStatus.FAILED, error=error)
    write_json(RunFolder(settings.run_dir(run.id)).config, run.config)
    page = open_page(routes.RUN, run=run.id)
    shutil.rmtree(settings.run_dir(run.id))
    page.button(key="resume_run").click().run()
    assert not page.exception
    assert len(page.error) == 2
    assert "resume_run" not in [button.key for button in page.button]
    assert queries.run(database, run.id).status is RunStatus.FAILED


def test_settings_of_another_version_are_named_instead_of_crashing(open_page, database):
    run = commands.create_run(
        database, name="x", config={"from_the_future": 1}, base_model="m", conversations=0,
        turns=0, start_token="t",
    )  # fmt: skip
    commands.set_snapshot(database, run.id, "0")
    commands.request_stop(database, run.id)
    page = open_page(routes.RUN, run=run.id)
    assert not page.exception
    assert "no setting named" in texts(page.error)


def test_samples_stand_side_by_side_as_plain_text(open_page, database, settings, conversation_ids):
    run = make_run(database, conversation_ids, RunStatus.FINISHED)
    sample = {
        "prompt": [{"role": "user", "content": "<b>Hi</b>"}], "before": "one", "after": "**two**",
    }  # fmt: skip
    write_json(RunFolder(settings.run_dir(run.id)).samples, [sample])
    page = open_page(routes.RUN, run=run.id)
    assert [text.value for text in page.text] == ["<b>Hi</b>", "one", "**two**"]


def test_the_configuration_is_shown_with_units(open_page, database, conversation_ids):
    config = TrainConfig.for_preset(Preset.RECIPE)
    run = make_run(database, conversation_ids, RunStatus.FINISHED, config=config)
    frame = open_page(routes.RUN, run=run.id, tab="Config").table[0].value
    values = dict(zip(frame["setting"], frame["value"], strict=True))
    assert values["Context limit"] == "1024 tokens"
    assert values["Adam ε"] == plain("1e-12")
    assert "Discount γ" not in values


def test_the_data_shows_rewards_and_advantages_of_the_frozen_copy(
    open_page, database, conversation_ids
):
    run = make_run(database, conversation_ids, RunStatus.FINISHED, steps=1)
    commands.delete_conversations(database, conversation_ids)
    page = open_page(routes.RUN, run=run.id, tab="Data")
    assert not page.exception
    assert page.dataframe[0].value["reward"].tolist()[:2] == [0.8, 0.0]
    assert page.dataframe[0].value["tokens"].tolist()[:2] == [20, 20]
    figures = charts(page)
    shown = [numbers(trace["y"]) for trace in figures["data_reward"]["data"]]
    assert shown == [[0.8], [0.0, -0.7]]


def test_the_log_shows_its_last_lines(open_page, database, settings, conversation_ids):
    run = make_run(database, conversation_ids, RunStatus.RUNNING)
    lines = "\n".join(f"line {number}" for number in range(500))
    write_text(RunFolder(settings.run_dir(run.id)).log, lines)
    shown = open_page(routes.RUN, run=run.id, tab="Log").code[0].value
    assert shown.splitlines()[0] == "line 300"
    assert shown.splitlines()[-1] == "line 499"


def test_the_adapter_can_be_taken_away_once_it_is_there(
    open_page, database, settings, conversation_ids
):
    run = make_run(database, conversation_ids, RunStatus.FINISHED, steps=1)
    folder = RunFolder(settings.run_dir(run.id))
    page = open_page(routes.RUN, run=run.id, tab="Export")
    assert "download_adapter" not in [b.key for b in page.get("download_button")]
    folder.adapter.mkdir()
    write_text(folder.adapter / "adapter_config.json", "{}")
    write_json(folder.config, run.config)
    write_json(folder.summary, {})
    page = open_page(routes.RUN, run=run.id, tab="Export")
    assert "download_adapter" in [b.key for b in page.get("download_button")]


def test_figures_can_be_taken_away_as_csv_and_json_lines(open_page, database, conversation_ids):
    run = make_run(database, conversation_ids, RunStatus.RUNNING, steps=2)
    page = open_page(routes.RUN, run=run.id, tab="Export")
    keys = {button.key for button in page.get("download_button")}
    assert {f"download_{w}_{k}" for w in ("turns", "steps") for k in ("csv", "jsonl")} <= keys
    rows = queries.turn_metrics(database, run.id)
    table = list(csv.DictReader(io.StringIO(run_files.as_csv(rows))))
    lines = [json.loads(line) for line in run_files.as_json_lines(rows).splitlines()]
    assert len(table) == len(lines) == len(rows) == 8
    assert [float(row["advantage"]) for row in table] == [row.advantage for row in rows]
    assert lines[0] == asdict(rows[0])


def _look_again(page) -> None:
    """Let the cached rows grow old, then run the page as its own timer does."""
    data.refresh()
    page.run()
