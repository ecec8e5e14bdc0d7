"""Token counts, time and memory on the launch page, from child processes."""

import json

import pytest

from app import routes, state, token_counts
from app.components import launch_check
from app.token_counts import parse_counts
from db.enums import RunStatus
from tests.app.launching import button, child, done, given, texts
from tests.app.rows import make_run
from trainer.config import Preset, TrainConfig
from trainer.data.findings import Finding
from trainer.runs import launch


@pytest.fixture(autouse=True)
def no_process(monkeypatch: pytest.MonkeyPatch) -> None:
    """Runs are recorded and frozen as always, but their process is not started."""
    monkeypatch.setattr(launch, "start_waiting", lambda database, **_: None)


DOCUMENT = {
    "turns": [{"conversation": 0, "turn": 1, "tokens": 33, "response_tokens": 14}],
    "distinct_tokens": 40,
    "turn_tokens": 46,
    "warnings": [
        {"kind": "too_long", "text": "Turn 2 is too long.", "blocking": False},
        {"kind": "no_signal", "text": "known already", "blocking": False},
        {"kind": "all_too_long", "text": "Everything is too long.", "blocking": True},
    ],
    "estimate": None,
    "sent": None,
}
ESTIMATED = {
    **DOCUMENT,
    "warnings": [{"kind": "recomputes", "text": "Layers are computed twice.", "blocking": False}],
    "estimate": {
        "seconds": 372.0, "load_s": 5.0, "measure_s": 40.0, "train_s": 300.0, "sample_s": 27.0,
        "tokens_per_s": 120.0, "memory_bytes": 2_100_000_000, "free_bytes": 17_800_000_000,
        "longest_pass_tokens": 900, "recomputed": 0.25,
    },
}  # fmt: skip


def test_counts_keep_only_the_findings_that_needed_tokens():
    counts = parse_counts(DOCUMENT)
    assert counts.turns == {(0, 1): (33, 14)}
    assert counts.warnings == (Finding(kind="too_long", text="Turn 2 is too long."),)
    assert counts.blocking == ("Everything is too long.",)


def test_time_and_memory_follow_the_token_counts(open_page, conversation_ids, monkeypatch):
    document = {**DOCUMENT, "warnings": []}
    given(monkeypatch, done(document), done(ESTIMATED))
    page = open_page(routes.LAUNCH)
    assert not page.exception
    shown = texts(page.markdown)
    assert "**40 tokens**" in shown
    assert "**about 6 min** and **2.1 GB** of memory, of 17.8 GB" in shown
    assert "Layers are computed twice" in texts(page.warning)
    assert not button(page, "Start the run").disabled


def test_counts_are_shown_while_the_model_is_tried(open_page, conversation_ids, monkeypatch):
    trying = child("import time; time.sleep(60)")
    given(monkeypatch, done({**DOCUMENT, "warnings": []}), trying)
    page = open_page(routes.LAUNCH)
    assert "**40 tokens**" in texts(page.markdown)
    assert "Trying the model" in texts(page.caption)
    button(page, "Start the run").click().run()
    assert trying.process.poll() is not None


def test_an_estimate_that_fails_is_a_note(open_page, conversation_ids, monkeypatch):
    failed = child("import sys; sys.exit('error: the weights take 9 GB, and 3 GB are free')")
    failed.process.wait()
    given(monkeypatch, done({**DOCUMENT, "warnings": []}), failed)
    page = open_page(routes.LAUNCH)
    assert "Time and memory are not known" in texts(page.caption)
    assert not button(page, "Start the run").disabled


def test_data_that_will_not_fit_cannot_start(open_page, conversation_ids, monkeypatch):
    finding = {"kind": "will_not_fit", "text": "Turn 2 does not fit.", "blocking": True}
    given(
        monkeypatch,
        done({**DOCUMENT, "warnings": []}),
        done({**ESTIMATED, "warnings": [finding]}),
    )
    page = open_page(routes.LAUNCH)
    assert "Turn 2 does not fit" in texts(page.error).replace("\\.", ".").replace("\u2060", "")
    assert button(page, "Start the run").disabled


def test_a_model_is_not_tried_while_a_run_is_going_on(
    open_page, database, conversation_ids, monkeypatch
):
    given(monkeypatch, done({**DOCUMENT, "warnings": []}), done(ESTIMATED))
    make_run(database, conversation_ids, RunStatus.RUNNING)
    page = open_page(routes.LAUNCH)
    assert "of memory" not in texts(page.markdown)
    assert "while no run is going on" in texts(page.caption)


def test_a_child_that_counts_delivers_its_counts():
    job = child(f"print({json.dumps(DOCUMENT)!r})")
    job.process.wait()
    assert not job.pending
    assert job.counts is not None
    assert job.counts.distinct_tokens == 40


def test_a_child_that_fails_delivers_its_last_line():
    job = child("import sys; sys.exit('model x: it is not here. Pull it first.')")
    job.process.wait()
    assert not job.pending
    assert job.failure == "model x: it is not here. Pull it first."


def test_a_child_that_is_given_up_ends():
    job = child("import time; time.sleep(60)")
    assert job.pending
    job.stop()
    assert job.process.returncode is not None
    assert not job.pending


def test_starting_a_run_ends_a_count_that_is_under_way(open_page, conversation_ids):
    job = child("import time; time.sleep(60)")
    page = open_page(routes.LAUNCH)
    page.session_state[state.COUNT_JOBS.key] = {"counting": job}
    button(page, "Start the run").click().run()
    assert job.process.poll() is not None


def test_settings_that_tokens_do_not_depend_on_keep_the_counts():
    def name(text: str, config: TrainConfig) -> str:
        return token_counts._fingerprint(text, config, token_counts.COUNTED_FIELDS)

    config = TrainConfig()
    assert name("data", config) == name("data", config.replace(learning_rate=1e-5, epochs=9))
    assert name("data", config) != name("data", config.replace(max_context_tokens=99))
    assert name("data", config) != name("other", config)


def test_settings_that_cost_nothing_keep_the_estimate():
    def name(config: TrainConfig) -> str:
        return token_counts._fingerprint("data", config, token_counts.ESTIMATED_FIELDS)

    config = TrainConfig()
    assert name(config) == name(config.replace(learning_rate=1e-5, gamma=0.5))
    assert name(config) != name(config.replace(epochs=9))
    assert name(config) != name(config.replace(memory_limit_gb=2.0))


def test_the_child_is_told_what_differs_from_the_preset():
    config = TrainConfig.for_preset(Preset.RECIPE, max_context_tokens=99)
    counted, estimated = (
        token_counts._arguments(config.replace(epochs=9), fields)
        for fields in (token_counts.COUNTED_FIELDS, token_counts.ESTIMATED_FIELDS)
    )
    assert counted == [
        "--model", config.base_model, "--preset", "recipe", "--set", "max_context_tokens=99",
    ]  # fmt: skip
    assert estimated == [*counted, "--set", "epochs=9"]


def test_warnings_know_every_kind_that_is_told_of_many_places():
    assert set(launch_check._SUMMARIES) == {"unscored", "partly_scored", "no_signal", "too_long"}
