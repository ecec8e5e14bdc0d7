"""Runs of the app on a tiny model: their data, how they are started, and waiting for them."""

import time
from collections.abc import Callable, Sequence

from db import commands, queries
from db.engine import Database
from db.enums import Role
from db.records import Conversation, Message, Run, Score
from trainer.config import TrainConfig
from trainer.runs.folder import RunFolder
from trainer.runs.launch import start_run
from trainer.runs.reconcile import reconcile

PATIENCE_S = 150.0


def add_conversations(database: Database) -> list[int]:
    """Add eight conversations of three scored turns, and return their ids."""
    conversations = [
        Conversation(
            title=f"talk {number}",
            messages=tuple(
                message
                for turn in range(3)
                for message in (
                    Message(role=Role.USER, content=f"Question {number}.{turn}?"),
                    Message(
                        role=Role.ASSISTANT,
                        content=f"Answer {number} to {turn}.",
                        scores=(Score(rater="local", value=((number + turn) % 5) / 4),),
                    ),
                )
            ),
        )
        for number in range(8)
    ]
    ids, _ = commands.add_conversations(database, conversations)
    return ids


NEW_SCORE = -0.5


def rescore_first_reply(database: Database) -> None:
    """Let the local user change their score of the first reply to `NEW_SCORE`."""
    message = queries.conversation(database, 1).assistant_messages[0]
    assert message.id is not None
    user = queries.local_user(database)
    commands.set_score(database, user_id=user.id, message_id=message.id, value=NEW_SCORE)


def score_of_first_reply(database: Database) -> float:
    """Return what is stored of it."""
    (score,) = queries.conversation(database, 1).assistant_messages[0].scores
    return score.value


def config_for(model: object, **changes: object) -> TrainConfig:
    """Return the configuration of a short run."""
    settings = {"epochs": 2, "batch_conversations": 4, "sample_prompts": 1, "sample_tokens": 4}
    return TrainConfig.from_json({"base_model": str(model), "device": "cpu", **settings, **changes})


def long_config(model: object) -> TrainConfig:
    """Return the configuration of a run that goes on until somebody ends it."""
    return config_for(model, epochs=100, batch_conversations=1, max_kl=0.0)


def launch(
    database: Database, conversation_ids: Sequence[int], config: TrainConfig, name: str
) -> Run:
    """Start a run, or let it wait; its name is its start token."""
    return start_run(
        database,
        name=name,
        conversation_ids=conversation_ids,
        config=config,
        start_token=name,
    )


def wait_for(database: Database, run_id: int, condition: Callable[[Run], bool]) -> Run:
    """Poll as a page does until the run meets the condition."""
    deadline = time.monotonic() + PATIENCE_S
    while time.monotonic() < deadline:
        reconcile(database)
        run = queries.run(database, run_id)
        if condition(run):
            return run
        if run.status.has_ended:
            break
        time.sleep(0.05)
    log = RunFolder(database.settings.run_dir(run_id)).log_tail()
    raise AssertionError(f"run {run_id} is still {run.status}: {run.error_text}\n{log}")


def ended(run: Run) -> bool:
    """Return whether nothing more will happen to the run by itself."""
    return run.status.has_ended


def has_steps(database: Database, number: int) -> Callable[[Run], bool]:
    """Return the condition that so many optimiser steps are in the database."""
    return lambda run: len(queries.step_metrics(database, run.id)) >= number
