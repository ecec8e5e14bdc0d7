"""What the run page says of held-out prompts and replies, and of an automatic judge."""

from dataclasses import asdict

from app import data, routes
from db import commands
from db.engine import Database
from db.enums import RunStatus
from db.settings import Settings
from tests.app.conftest import OpenPage
from tests.app.rows import make_run
from trainer.evaluating.judging import Judgements
from trainer.evaluating.reply_change import ReplyChange
from trainer.runs.folder import RunFolder, write_json


def evaluated(database: Database, settings: Settings, conversation_ids: list[int]) -> RunFolder:
    run = make_run(database, conversation_ids, RunStatus.FINISHED)
    folder = RunFolder(settings.run_dir(run.id))
    prompt = [{"role": "user", "content": "Hi"}]
    samples = [
        {"prompt": prompt, "before": "one", "after": "two", "held_out": True},
        {"prompt": prompt, "before": "three", "after": "four", "held_out": False},
    ]
    write_json(folder.samples, samples)
    fields = {"title": "t", "turn": 0, "text": "good", "reward": 0.5, "tokens": 3}
    write_json(folder.changes, [asdict(ReplyChange(**fields, before=-2.0, after=-1.5))])
    told = Judgements(
        model="judge-1",
        host="judge.example",
        process="",
        verdicts=(1.0, None),
        error="it **answers** 500",
    )
    write_json(folder.judgements, asdict(told))
    return folder


def test_the_judges_word_is_marked_as_a_models_and_counts_what_has_a_verdict(
    database: Database, settings: Settings, conversation_ids: list[int], open_page: OpenPage
) -> None:
    folder = evaluated(database, settings, conversation_ids)
    page = open_page(routes.RUN, run=folder.path.name)
    assert not page.exception
    (told,) = [each.value for each in page.info if "judge" in each.value.lower()]
    assert "**100%** of 1 prompt" in told
    assert "not a person's" in told
    assert any("no verdict on 1 prompts" in each.value for each in page.warning)
    marks = " ".join(each.value for each in page.markdown)
    assert marks.count("judge: better") == 1
    assert "Held-out prompts" in marks and "Openings of the data" in marks
    assert "ask_judge" not in [button.key for button in page.button]  # the settings name none
    (table,) = [f.value for f in page.dataframe if "change" in f.value.columns]
    assert table["change"].tolist() == [0.5]


def test_a_judge_can_be_named_and_then_be_asked(
    database: Database, settings: Settings, conversation_ids: list[int], open_page: OpenPage
) -> None:
    folder = evaluated(database, settings, conversation_ids)
    page = open_page(routes.SETTINGS)
    prefix = "settings.project."
    page.text_input(key=f"{prefix}judge_url").set_value("https://judge.example/v1")
    page.text_input(key=f"{prefix}judge_model").set_value("judge-1")
    page.text_area(key=f"{prefix}evaluation_prompts").set_value("Is it far?")
    next(button for button in page.button if button.label == "Save").click().run()
    assert not page.exception
    page = open_page(routes.RUN, run=folder.path.name)
    assert "ask_judge" in [button.key for button in page.button]
    commands.change_project_settings(database, {"evaluation_tag": "support"})
    data.refresh()
    page = open_page(routes.LAUNCH)
    told = " ".join(each.value for each in page.caption)
    assert "1 conversation with the tag support left out" in told
