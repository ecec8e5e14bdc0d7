"""The collect page: what it asks for, what it starts, and what it says of a collection."""

from collections.abc import Sequence
from pathlib import Path

import pytest

from app import routes
from db import commands, queries
from db.engine import Database
from db.enums import CollectionState, Partner, Role
from db.records import CollectionPlan, Conversation, Message, User
from tests.app.conftest import MARKUP, OpenPage
from trainer.collecting import life
from trainer.collecting.prompts import from_lines
from trainer.runs.process import own_mark


@pytest.fixture
def model_here(database: Database) -> Path:
    """A base model that is on this machine, as far as pages can tell."""
    folder = database.settings.models_dir / "smollm2-135m"
    folder.mkdir(parents=True)
    (folder / "config.json").write_text("{}")
    return folder


def begun(database: Database, user: User, name: str = "first") -> int:
    plan = CollectionPlan(name=name, base_model="smollm2-135m", replies=2)
    collection_id, _ = commands.create_collection(
        database,
        plan,
        from_lines("Hello\nBye"),
        device="cpu",
        start_token=name,
        user_id=user.id,
    )
    commands.record_collection_process(database, collection_id, str(own_mark()))
    return collection_id


def test_typed_openings_become_a_collection_once_and_its_page_shows_it(
    database: Database,
    model_here: Path,
    open_page: OpenPage,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    started: list[Sequence[str]] = []

    def start(_settings: object, arguments: Sequence[str], _log: Path) -> object:
        started.append(arguments)
        return own_mark()

    monkeypatch.setattr(life, "start_detached", start)
    app = open_page(routes.COLLECT)
    assert app.button(key="collect.start").disabled
    app.text_area(key="collect.openings").set_value(f"Hello\nHello\n{MARKUP.splitlines()[0]}")
    app.radio(key="collect.partner").set_value(Partner.SCRIPT)
    app.run()
    app.text_area(key="collect.script").set_value("And then?").run()
    assert "2 prompts" in "".join(each.value for each in app.markdown)
    assert "16 replies" in "".join(each.value for each in app.markdown)
    app.button(key="collect.start").click().run()
    assert not app.exception
    (found,) = queries.collections(database)
    assert (found.prompts, found.plan.script) == (2, ("And then?",))
    assert found.plan.name == "2 prompts, SmolLM2-135M-Instruct (base model)"
    assert started == [["trainer", "collect", str(found.id), "--spawned"]]
    assert app.query_params["collection"] == str(found.id)
    assert app.button(key="collect.cancel")


def test_how_a_collection_ended_is_told_and_it_can_go_on(
    database: Database, user: User, model_here: Path, open_page: OpenPage
) -> None:
    collection_id = begun(database, user)
    said = Message(role=Role.ASSISTANT, content="r", token_ids=(1,), logprobs=(-1.0,))
    prompt = from_lines("Hello")[0]
    collected = Conversation(
        messages=(*prompt.messages, said), source=f"collected:{collection_id}", group="g"
    )
    assert commands.store_collected(database, collection_id, 0, [collected, collected])
    assert not commands.store_collected(database, collection_id, 0, [collected])  # done already
    commands.end_collection(
        database, collection_id, CollectionState.FAILED, error_text="**It** died."
    )
    app = open_page(routes.COLLECT, collection=collection_id)
    assert [e.value for e in app.error] == ["\\*\u2060\\*\u2060It\\*\u2060\\*\u2060 died\\.\u2060"]
    told = " ".join(each.value for each in app.markdown)
    assert "1 conversation from 1 of 2 prompts" in told
    assert "1 said the same" in told
    app.button(key="collect.forget").click().run()
    assert queries.collections(database) == []
    assert queries.overview(database).conversations == 1


def test_a_collection_whose_process_is_gone_is_no_longer_shown_as_under_way(
    database: Database, user: User, open_page: OpenPage
) -> None:
    collection_id = begun(database, user)
    gone = str(own_mark()).replace(str(own_mark().pid), "1", 1)
    commands.record_collection_process(database, collection_id, gone)
    app = open_page(routes.COLLECT)
    assert app.button(key=f"collect.open.{collection_id}")
    assert queries.collection(database, collection_id).state is CollectionState.FAILED
