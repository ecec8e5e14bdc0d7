"""The next round: offered on a finished run, filled in on the launch page, shown as a chain."""

import json

from app import data, routes
from app.components.run_lineage import round_table
from db import commands
from db.enums import RunStatus
from db.records import Round
from tests.app.launching import button, texts
from tests.app.rows import make_run
from trainer.adapter_config import CONFIG_FILE, WEIGHTS_FILE
from trainer.config import TrainConfig
from trainer.runs.folder import RunFolder
from trainer.runs.lineage import ancestors_of
from trainer.runs.remove import remove_run

SHAPE = {
    "peft_type": "LORA",
    "base_model_name_or_path": "smollm2-135m",
    "r": 8,
    "lora_alpha": 16,
}


def finished(database, conversation_ids, **changes):
    """A finished run that has left an adapter."""
    config = TrainConfig(lora_rank=8, lora_alpha=16.0)
    run = make_run(
        database, conversation_ids, RunStatus.FINISHED, config=config, steps=2, **changes
    )
    folder = RunFolder(database.settings.run_dir(run.id))
    folder.adapter.mkdir()
    (folder.adapter / CONFIG_FILE).write_text(json.dumps(SHAPE))
    (folder.adapter / WEIGHTS_FILE).write_bytes(b"")
    return run


def test_the_next_round_is_the_launch_page_filled_in_with_the_adapter_and_its_shape(
    open_page, database, conversation_ids
):
    run = finished(database, conversation_ids, name="First")
    page = open_page(routes.RUN, run=run.id)
    assert button(page, "Next round")
    page = open_page(routes.LAUNCH, from_run=run.id, set=f"start_from:{run.id}")
    assert not page.exception
    start = page.selectbox(key="start_from")
    assert start.value == str(run.id)
    assert start.options == ["base model", f"adapter of run {run.id} · First"]
    assert f"The next round after run {run.id}" in texts(page.info)
    assert page.radio(key="data").value == "others"
    assert not any("LoRA rank" in number.label for number in page.number_input)
    assert "LoRA rank 8" in texts(page.caption)
    assert not button(page, "Start the run").disabled
    config = RunFolder(database.settings.run_dir(run.id)).adapter / CONFIG_FILE
    config.write_text(json.dumps(SHAPE | {"layers_to_transform": [0]}))
    page = page.run()
    assert "layers\\_\u2060to\\_\u2060transform" in texts(page.error)
    assert button(page, "Start the run").disabled
    page.selectbox(key="start_from").select("")
    page = page.run()
    assert any("LoRA rank" in number.label for number in page.number_input)
    assert not button(page, "Start the run").disabled


def test_a_chain_stays_readable_when_a_round_of_it_is_deleted(
    open_page, database, conversation_ids
):
    first = finished(database, conversation_ids, name="First *round*")
    second = commands.create_run(
        database,
        name="Second",
        config=TrainConfig(start_from=str(first.id)).to_json(),
        base_model="smollm2-135m",
        conversations=1,
        turns=1,
        start_token="second",
        ancestors=ancestors_of(database, first.id),
    )
    assert second.parent_id == first.id
    data.refresh()
    assert [run.id for run in data.next_rounds(first.id)] == [second.id]
    assert [(round.run_id, round.mean_score) for round in data.rounds(second.id)] == [
        (first.id, 0.5),
        (second.id, None),
    ]
    remove_run(database, first.id)
    data.refresh()
    before, now = data.rounds(second.id)
    assert (before.name, before.mean_score, before.is_there) == ("First *round*", 0.5, False)
    assert now.is_there
    page = open_page(routes.RUN, run=second.id)
    assert not page.exception
    assert "(deleted)" in texts(page.markdown)


def test_the_table_of_rounds_shows_names_as_text_and_what_is_not_known_as_a_dash():
    table = round_table(
        [
            Round(run_id=1, name="a | b", mean_score=-0.25, held_out=0.125, kl_base=0.5),
            Round(run_id=2, name="**now**"),
        ],
        2,
    )
    first, second = table.splitlines()[2:]
    assert first.count("|") == 7 and "\\|" in first  # the six of the table, and one of the name
    assert "−0.25" in first and "0.500" in first
    assert second.startswith("| 2 | **2 · \\*") and second.endswith("| – | – | – |")
