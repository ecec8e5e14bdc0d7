"""The address that asks the launch page for a run again, with changes."""

import pytest
import streamlit as st

from app import launch_again
from db import commands
from db.enums import RunStatus
from db.errors import NotFoundError
from tests.app.rows import make_run
from trainer.config import TrainConfig
from trainer.errors import ConfigError


@pytest.fixture
def address(monkeypatch: pytest.MonkeyPatch) -> dict[str, str]:
    """What the address bar holds, as the module sees it."""
    params: dict[str, str] = {}
    monkeypatch.setattr(st, "query_params", params)
    return params


def test_an_address_without_a_run_asks_for_none(address, database):
    assert launch_again.requested() is None


def test_what_params_write_is_what_requested_reads(address, database, conversation_ids):
    config = TrainConfig(token_budget=512, epochs=7)
    run = make_run(database, conversation_ids, RunStatus.FAILED, config=config)
    address.update(launch_again.params(run.id, {"token_budget": 256, "learning_rate": 5e-05}))
    again = launch_again.requested()
    assert again is not None
    assert again.run.id == run.id
    assert again.config == config.replace(token_budget=256, learning_rate=5e-05)
    assert again.changes == {"token_budget": 256, "learning_rate": 5e-05}


def test_the_runs_conversations_are_found_by_what_they_say_those_deleted_since_left_out(
    address, database, conversation_ids
):
    chosen = [conversation_ids[2], conversation_ids[0], conversation_ids[1]]
    run = make_run(database, chosen, RunStatus.FINISHED)
    commands.delete_conversations(database, [conversation_ids[0]])
    address.update(launch_again.params(run.id))
    again = launch_again.requested()
    assert again is not None
    assert again.conversation_ids == (conversation_ids[2], conversation_ids[1])
    assert again.changes == {}


def test_a_run_that_is_gone_and_a_setting_that_is_none_are_refused(
    address, database, conversation_ids
):
    address["from_run"] = "99"
    with pytest.raises(NotFoundError):
        launch_again.requested()
    run = make_run(database, conversation_ids, RunStatus.FINISHED)
    address.update({"from_run": str(run.id), "set": "no_such_setting:1"})
    with pytest.raises(ConfigError):
        launch_again.requested()
