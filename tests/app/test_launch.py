"""The launch page: what it offers, what it shows of each turn, and what Start does."""

import errno
import json
import subprocess
import sys
import tempfile
from pathlib import Path

import pytest

from app import data, routes, state, token_counts
from app.components import config_form, launch_check, palette, turn_table
from app.token_counts import CountJob, parse_counts
from db import commands, queries
from db.enums import RunStatus
from db.errors import ConflictError
from tests.app.rows import make_run
from trainer import catalog
from trainer.config import CreditMode, Guard, Limits, LossName, OldLogprobs, Preset, TrainConfig
from trainer.data.findings import Finding
from trainer.preview import TurnPreview
from trainer.runs import launch


@pytest.fixture(autouse=True)
def no_process(monkeypatch: pytest.MonkeyPatch) -> None:
    """Runs are recorded and frozen as always, but their process is not started."""
    monkeypatch.setattr(launch, "start_waiting", lambda database: None)


def button(page, label: str):
    return next(b for b in page.button if b.label == label)


def texts(elements) -> str:
    return "\n".join(str(element.value) for element in elements)


def test_an_empty_home_sends_people_to_the_data(open_page):
    page = open_page(routes.LAUNCH)
    assert not page.exception
    assert "load an example set" in texts(page.markdown)
    assert not page.button


def test_data_without_any_score_asks_for_scores_first(open_page, database, conversation_ids):
    commands.delete_conversations(database, conversation_ids[:2])
    page = open_page(routes.LAUNCH)
    assert "No conversation of this choice has a score yet" in texts(page.info)


def test_every_turn_of_the_scored_conversations_is_in_the_table(open_page, conversation_ids):
    page = open_page(routes.LAUNCH)
    assert not page.exception
    frame = page.dataframe[0].value
    assert list(frame["conversation"]) == ["Parcel lost"] * 2 + ["Used bike"] * 2
    assert list(frame["turn"]) == [1, 2, 1, 2]
    assert frame["reward"].tolist()[:2] == [0.8, 0.0]
    assert frame["remark"].tolist()[2] == "no score: context only"
    assert "**2 conversations** · **3 of 4** turns scored" in texts(page.markdown)
    assert "1 conversation without any score left out" in texts(page.markdown)


def test_a_tag_in_the_address_chooses_the_data(open_page, conversation_ids):
    page = open_page(routes.LAUNCH, tags="negotiation")
    assert page.multiselect(key="tags").value == ["negotiation"]
    assert set(page.dataframe[0].value["conversation"]) == {"Used bike"}


def test_the_recipe_shows_its_own_advantages_and_settings(open_page, conversation_ids):
    page = open_page(routes.LAUNCH)
    page.radio(key="method").set_value("recipe").run()
    assert not page.exception
    advantages = page.dataframe[0].value["advantage"].tolist()
    assert advantages[:2] == pytest.approx([0.4, -0.4])
    assert page.number_input(key="launch_recipe_epochs").value == 2
    assert page.number_input(key="launch_recipe_adam_eps").value == 1e-12
    assert "launch_recipe_gamma" not in [widget.key for widget in page.number_input]


def test_changed_settings_are_named_and_reach_the_run(open_page, database, conversation_ids):
    page = open_page(routes.LAUNCH)
    page.number_input(key="launch_standard_epochs").set_value(5).run()
    assert "Epochs 5" in texts(page.caption)
    button(page, "Start the run").click().run()
    (run,) = queries.runs(database)
    assert run.config["epochs"] == 5


def test_start_freezes_the_data_and_opens_the_run(open_page, database, settings, conversation_ids):
    page = open_page(routes.LAUNCH)
    next(t for t in page.text_input if t.label == "Name of the run").set_value("Tone").run()
    button(page, "Start the run").click().run()
    assert not page.exception
    (run,) = queries.runs(database)
    assert (run.name, run.conversations, run.turns) == ("Tone", 2, 4)
    frozen = (settings.run_dir(run.id) / "data.jsonl").read_text().splitlines()
    assert [json.loads(line)["title"] for line in frozen] == ["Parcel lost", "Used bike"]
    assert page.query_params["run"] == str(run.id)
    assert "Tone" in texts(page.title)


def test_two_clicks_make_one_run_and_a_changed_form_makes_another(
    open_page, database, conversation_ids, monkeypatch
):
    # The page change after the first click is held back, as when a second click overtakes it.
    monkeypatch.setattr("streamlit.switch_page", lambda *args, **kwargs: None)
    page = open_page(routes.LAUNCH)
    button(page, "Start the run").click().run()
    button(page, "Start the run").click().run()
    assert len(queries.runs(database)) == 1
    page.number_input(key="launch_standard_epochs").set_value(7).run()
    button(page, "Start the run").click().run()
    assert [run.config["epochs"] for run in queries.runs(database)] == [7, 3]


def test_equal_scores_block_the_start_and_say_why(open_page, database, conversation_ids):
    commands.delete_conversations(database, conversation_ids[1:])
    user = queries.local_user(database)
    for turn in queries.conversation(database, conversation_ids[0]).assistant_messages:
        assert turn.id is not None
        commands.set_score(database, user_id=user.id, message_id=turn.id, value=0.5)
    data.refresh()
    page = open_page(routes.LAUNCH)
    page.radio(key="method").set_value("recipe").run()
    assert "Every advantage is 0" in texts(page.error)
    assert button(page, "Start the run").disabled


@pytest.mark.parametrize("name", ["~nobody-of-this-name/x", "x" * 400, "a\0b", "a/" + "b" * 4000])
def test_a_model_name_that_no_folder_can_have_is_explained(open_page, conversation_ids, name):
    page = open_page(routes.LAUNCH, model=name)
    assert not page.exception
    assert "model" in texts(page.error)
    assert "Start the run" not in [b.label for b in page.button]


def test_a_full_disk_is_explained_and_the_next_click_is_a_new_try(
    open_page, database, conversation_ids, monkeypatch
):
    def full(*args):
        raise OSError(errno.ENOSPC, "No space left on device")

    page = open_page(routes.LAUNCH)
    with monkeypatch.context() as patched:
        patched.setattr(launch, "write_json", full)
        button(page, "Start the run").click().run()
    assert not page.exception
    assert "space" in texts(page.error)
    button(page, "Start the run").click().run()
    assert not page.exception
    assert not page.error
    failed = [run.status is RunStatus.FAILED for run in queries.runs(database)]
    assert failed == [False, True]


def test_a_count_that_cannot_be_started_does_not_stand_in_the_way(
    open_page, conversation_ids, monkeypatch
):
    def full(*args, **kwargs):
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(catalog, "is_model_folder", lambda folder: True)
    monkeypatch.setattr(token_counts, "_start", full)
    page = open_page(routes.LAUNCH)
    assert not page.exception
    assert "No space left on device" in texts(page.caption)
    assert not button(page, "Start the run").disabled


def test_a_model_that_does_not_exist_is_named_and_nothing_can_start(open_page, conversation_ids):
    page = open_page(routes.LAUNCH, model="no such model")
    assert not page.exception
    assert "There is no such model" in texts(page.error)
    assert "Start the run" not in [b.label for b in page.button]


def test_a_model_that_is_not_here_yet_says_how_to_pull_it(open_page, conversation_ids):
    page = open_page(routes.LAUNCH)
    assert "not here yet" in texts(page.markdown)
    assert "python -m trainer pull" in texts(page.markdown)
    assert "Token counts appear once the model is on this machine" in texts(page.caption)


def test_a_refused_start_is_shown_in_words(open_page, conversation_ids, monkeypatch):
    def refuse(*args, **kwargs):
        raise ConflictError("the disk is full", remedy="Free some space.")

    page = open_page(routes.LAUNCH)
    monkeypatch.setattr("trainer.runs.launch.start_run", refuse)
    button(page, "Start the run").click().run()
    assert not page.exception
    assert "The disk is full" in texts(page.error)


# -- settings ------------------------------------------------------------------------------------


def test_the_form_offers_every_setting_once():
    offered = [name for group in config_form.GROUPS.values() for name in group]
    assert sorted([*offered, "preset", "base_model"]) == sorted(TrainConfig().to_json())


@pytest.mark.parametrize(
    ("name", "config", "matters"),
    [
        ("gamma", TrainConfig(), True),
        ("gamma", TrainConfig(credit=CreditMode.IMMEDIATE), False),
        ("outcome_weight", TrainConfig(credit=CreditMode.RECIPE), False),
        ("clip_low", TrainConfig(loss=LossName.IMPORTANCE_SAMPLING), False),
        ("guard", TrainConfig(old_logprobs=OldLogprobs.CONSTANT), False),
        ("old_logprobs", TrainConfig(loss=LossName.CROSS_ENTROPY), False),
        ("max_kl", TrainConfig(loss=LossName.CROSS_ENTROPY), True),
        ("dual_clip", TrainConfig(loss=LossName.IMPORTANCE_SAMPLING), False),
        ("guard_beta", TrainConfig(), False),
        ("guard_beta", TrainConfig(guard=Guard.EXP_WEIGHTED), True),
        ("guard_cap", TrainConfig(guard=Guard.EXP_WEIGHTED, loss=LossName.CROSS_ENTROPY), False),
        ("epochs", TrainConfig(), True),
    ],
)
def test_settings_without_effect_are_left_out(name: str, config: TrainConfig, matters: bool):
    assert config_form.matters(name, config) is matters


def test_changes_name_what_differs_from_the_method():
    start = TrainConfig.for_preset(Preset.RECIPE)
    changed = start.replace(learning_rate=5e-5, credit=CreditMode.RETURN_TO_GO)
    assert config_form.changes(start, changed) == ["Credit return to go", "Learning rate 5e-05"]


@pytest.mark.parametrize(
    ("value", "step"), [(1e-4, 1e-5), (32.0, 1.0), (0.9, 0.01), (1e-12, 1e-13), (0.0, 0.1)]
)
def test_number_fields_step_by_a_tenth_of_their_size(value: float, step: float):
    assert config_form.step_of(value) == pytest.approx(step)


def test_an_exclusive_limit_is_no_value_of_the_field():
    limits: Limits = TrainConfig.__dataclass_fields__["learning_rate"].metadata["limits"]
    assert not limits.allow(limits.low)
    assert limits.allow(config_form.lowest(limits, config_form.step_of(1e-4)))


def test_a_limit_that_can_be_switched_off_lets_people_type_0():
    limits: Limits = TrainConfig.__dataclass_fields__["dual_clip"].metadata["limits"]
    assert config_form.lowest(limits, 0.1) == 0.0
    assert limits.allow(0.0) and not limits.allow(1.0)


# -- the table of turns --------------------------------------------------------------------------


def line(
    turn: int, advantage: float | None, *, held_out: bool = False, silenced: bool = False
) -> TurnPreview:
    return TurnPreview(
        conversation=0, turn=turn, title="t", tokens=None, response_tokens=None,
        reward=0.5, return_=0.5, advantage=advantage, held_out=held_out, silenced=silenced,
    )  # fmt: skip


def test_the_table_tells_tokens_and_why_a_turn_trains_nothing():
    turns = [
        line(0, 0.5), line(1, -0.25), line(2, 0.0), line(3, None),
        line(4, -0.5, silenced=True), line(5, -0.5, held_out=True, silenced=True),
    ]  # fmt: skip
    frame = turn_table.turn_frame(turns, tokens={(0, 0): (33, 14)}, replies={}, limit=20)
    assert list(frame["remark"]) == [
        "longer than 20 tokens: left out", "", "no signal", "no score: context only",
        "low score: guarded, no gradient", "held out: judges the run",
    ]  # fmt: skip
    assert frame["tokens"].isna().tolist() == [False, True, True, True, True, True]


def test_advantages_are_shaded_by_sign_and_to_the_scale_of_the_largest():
    turns = [line(0, 0.5), line(1, -0.25), line(2, 0.0), line(3, None)]
    frame = turn_table.turn_frame(turns, tokens={}, replies={}, limit=20)
    column = list(frame.columns).index("advantage")
    styles = turn_table.styled(frame)._compute().ctx
    assert [dict(styles.get((row, column), [])).get("background-color") for row in range(4)] == [
        palette.translucent(palette.POSITIVE, turn_table.MOST_OPACITY),
        palette.translucent(palette.NEGATIVE, turn_table.MOST_OPACITY / 2),
        None,
        None,
    ]


def test_columns_without_content_are_left_out():
    frame = turn_table.turn_frame([line(0, 0.5)], tokens={}, replies={}, limit=20)
    shown = [name for name in frame.columns if turn_table.has_content(frame, name)]
    assert shown == ["conversation", "turn", "reply", "reward", "return", "advantage"]


# -- token counts from the child process ---------------------------------------------------------

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


def done(document: dict) -> CountJob:
    job = child(f"print({json.dumps(document)!r})")
    job.process.wait()
    return job


def given(monkeypatch, counting: CountJob, estimating: CountJob) -> None:
    """Let these jobs stand for the children, and the model pass for being on this machine."""
    monkeypatch.setattr(catalog, "is_model_folder", lambda folder: True)
    monkeypatch.setattr(
        token_counts,
        "_start",
        lambda text, config, *, estimate: estimating if estimate else counting,
    )


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


def child(script: str) -> CountJob:
    folder = tempfile.TemporaryDirectory()
    root = Path(folder.name)
    with (root / "out.json").open("wb") as out, (root / "err.txt").open("wb") as err:
        process = subprocess.Popen([sys.executable, "-c", script], stdout=out, stderr=err)
    return CountJob(process=process, folder=folder)


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
