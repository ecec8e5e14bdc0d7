"""Several runs side by side."""

import json

from app import routes
from app.comparison import common_prompts, compared, differences, final_figures
from db.enums import RunStatus
from tests.app.rows import make_run
from trainer.config import TrainConfig
from trainer.runs.folder import RunFolder, write_json


def texts(elements) -> str:
    return "\n".join(str(element.value) for element in elements)


def add_samples(settings, run_id: int, *answers: tuple[str, str | None]) -> None:
    samples = [
        {"prompt": [{"role": "user", "content": asked}], "before": "base says", "after": after}
        for asked, after in answers
    ]
    write_json(RunFolder(settings.run_dir(run_id)).samples, samples)


def test_only_settings_that_differ_are_shown_with_their_labels(database, conversation_ids):
    one = make_run(database, conversation_ids, RunStatus.FINISHED, name="one")
    two = make_run(
        database,
        conversation_ids,
        RunStatus.FINISHED,
        name="two",
        config=TrainConfig(learning_rate=5e-5, epochs=7),
    )
    assert differences([one, two]) == [
        ("Epochs", ["3", "7"]),
        ("Learning rate", ["0.0002", "5e-05"]),
    ]
    assert differences([one, one]) == []


def test_other_data_are_a_difference_too(database, conversation_ids):
    one = make_run(database, conversation_ids, RunStatus.FINISHED, name="one")
    two = make_run(database, conversation_ids[:1], RunStatus.FINISHED, name="two")
    assert differences([one, two]) == [
        ("Data", ["3 conversations, 6 turns", "1 conversations, 2 turns"])
    ]


def test_final_figures_tell_learning_steps_and_what_is_unknown(database, conversation_ids):
    run = make_run(database, conversation_ids, RunStatus.FINISHED, steps=3)
    figures = final_figures(compared(run))
    assert figures["steps"] == "3"
    assert figures["learning: change × advantage (nats per token)"] == "+0.500"
    assert figures["change of replies to avoid (nats per token)"] == "-0.500"
    assert figures["best on held-out conversations (nats per token)"] == "–"


def test_answers_to_the_same_opening_stand_side_by_side(database, settings, conversation_ids):
    runs = [
        make_run(database, conversation_ids, RunStatus.FINISHED, name=name) for name in ("a", "b")
    ]
    add_samples(settings, runs[0].id, ("Hi", "from a"), ("Only a", "alone"))
    add_samples(settings, runs[1].id, ("Hi", "from b"))
    found = [
        (sample.prompt[0][1], answers)
        for sample, answers in common_prompts([compared(run) for run in runs])
    ]
    assert found == [("Hi", ["from a", "from b"]), ("Only a", ["alone", None])]


def test_the_page_shows_settings_curves_figures_and_samples_by_address(
    open_page, database, settings, conversation_ids
):
    one = make_run(database, conversation_ids, RunStatus.FINISHED, name="one", steps=3)
    two = make_run(
        database,
        conversation_ids,
        RunStatus.RUNNING,
        name="<b>two</b>",
        steps=2,
        config=TrainConfig(epochs=9),
    )
    add_samples(settings, one.id, ("Hi", "**bold**"))
    page = open_page(routes.COMPARE, runs=f"{one.id},{two.id},999")
    assert not page.exception
    assert page.multiselect[0].value == [one.id, two.id]
    assert page.table[0].value.iloc[0].tolist()[1:] == ["3", "9"]
    shown = json.loads(page.get("bidi_component")[0].proto.json)
    figure = json.loads(shown["figure"])
    assert [trace["name"] for trace in figure["data"]] == ["one (1)", "&lt;b>two&lt;/b> (2)"]
    assert "**bold**" in texts(page.text)
    assert page.query_params["runs"] == f"{one.id},{two.id}"


def test_one_run_alone_asks_for_another(open_page, database, conversation_ids):
    make_run(database, conversation_ids, RunStatus.FINISHED, name="one")
    two = make_run(database, conversation_ids, RunStatus.FINISHED, name="two")
    page = open_page(routes.COMPARE, runs=str(two.id))
    assert "Choose two runs or more" in texts(page.info)


def test_without_two_runs_the_page_says_what_it_is_for(open_page, database):
    page = open_page(routes.COMPARE)
    assert not page.exception
    assert "laid side by side" in texts(page.info)
