"""Collections carried out by a tiny model: what is stored, how it ends, what it gives way to."""

import os
import signal
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
import torch

from db import commands, queries
from db.engine import Database, open_database
from db.enums import CollectionState, Partner, RunStatus
from db.records import Collection, CollectionPlan, Conversation, ConversationFilter
from db.settings import Settings
from tests.forking import Forks
from tests.trainer.serving.conftest import train_adapter
from trainer.__main__ import main
from trainer.choices import Rendering
from trainer.collecting.life import cancel_collection, reconcile_collections, start_collection
from trainer.collecting.prompts import from_lines
from trainer.data.rendering import chat_messages, render_prompt
from trainer.engine.types import ModelInput
from trainer.errors import BadDataError, ConfigError
from trainer.runs.process import Mark, Sign, own_machine, own_mark, own_start_time
from trainer.serving.address import Address, announced

PROMPTS = from_lines("How many people live there?\nWhat is the capital?\nIs it too high?")
MANY = from_lines("\n".join(f"Question {number}?" for number in range(12)))


@pytest.fixture
def database(settings: Settings) -> Iterator[Database]:
    opened = open_database(settings)
    yield opened
    for collection in queries.collections(opened, CollectionState.COLLECTING):
        cancel_collection(opened, collection.id)
    opened.close()


def begin(
    database: Database,
    model: Path,
    prompts: list[Conversation] = PROMPTS,
    *,
    token: str = "t",
    **changes: object,
) -> int:
    fields = {"replies": 3, "max_tokens": 6, "seed": 1, **changes}
    plan = CollectionPlan(name="a few", base_model=str(model), **fields)  # pyright: ignore[reportArgumentType]
    return start_collection(
        database, plan, prompts, start_token=token, user_id=1, in_background=False
    )


def conversations(database: Database, collection_id: int) -> list[Conversation]:
    chosen = ConversationFilter(sources=(f"collected:{collection_id}",), order="oldest")
    return queries.conversations(database, queries.conversation_ids(database, chosen, user_id=1))


def run_on_the_cpu(database: Database, status: RunStatus | None = None) -> int:
    """A run that has the CPU, by the word of the database; ended at once if a status is given."""
    run = commands.create_run(
        database,
        name="r",
        config={},
        base_model="tiny",
        conversations=1,
        turns=1,
        start_token="r",
        device="cpu",
    )
    commands.set_snapshot(database, run.id, "ab")
    commands.claim_next_run(database, claimed_by=str(own_mark()))
    if status is not None:
        commands.end_run(database, run.id, status)
    return run.id


def until(condition: Callable[[], bool], *, patience_s: float = 90) -> None:
    deadline = time.monotonic() + patience_s
    while not condition():
        assert time.monotonic() < deadline, "it does not come to that"
        time.sleep(0.02)


def fork_of(database: Database, forks: Forks, collection_id: int, log: Path, *options: str) -> int:
    return forks.start(
        ["collect", str(collection_id), *options],
        log=log,
        environment={
            "EVERYTURN_HOME": str(database.settings.home),
            "DATABASE_URL": database.settings.database_url,
        },
    )


def test_sampled_replies_carry_the_logprobs_that_the_trainer_computes(
    database: Database, tiny_llama: Path
) -> None:
    run_id = run_on_the_cpu(database, RunStatus.FINISHED)
    trainer = train_adapter(database.settings, tiny_llama, run_id)
    plan = CollectionPlan(name="x", base_model=str(tiny_llama), run_id=run_id)
    with pytest.raises(ConfigError, match="was trained on tiny"):
        start_collection(database, plan, PROMPTS, start_token="x", user_id=1)
    collection_id, _ = commands.create_collection(
        database,
        CollectionPlan(
            name="x", base_model=str(tiny_llama), run_id=run_id, temperature=0.7, max_tokens=6
        ),
        PROMPTS,
        device="cpu",
        start_token="y",
        user_id=1,
    )
    assert main(["collect", str(collection_id)]) == 0
    found = queries.collection(database, collection_id)
    assert (found.state, found.done, found.progress) == (CollectionState.DONE, 3, 1.0)
    kept = conversations(database, collection_id)
    assert len(kept) == found.conversations == 12 - found.repeats
    assert len({c.group for c in kept}) == 3
    sampler, tokenizer = trainer.save_weights_and_get_sampling_client(), trainer.get_tokenizer()
    for conversation in kept[:4]:
        (reply,) = conversation.assistant_messages
        assert reply.run_id == run_id
        assert reply.token_ids and reply.logprobs
        prompt = render_prompt(chat_messages(conversation)[:-1], tokenizer, Rendering.TEMPLATE)
        whole = ModelInput.from_ints([*prompt, *reply.token_ids])
        told = sampler.compute_logprobs(whole).result()[len(prompt) :]
        torch.testing.assert_close(list(reply.logprobs), told, atol=1e-4, rtol=0)
    assert main(["collect", str(collection_id)]) == 1  # it has ended


def test_the_command_line_collects_whole_conversations_from_a_file(
    database: Database, tiny_llama: Path, tmp_path: Path
) -> None:
    openings = tmp_path / "openings.txt"
    openings.write_text("Hello\n\nHello\nIs it far?\n")
    told = ["collect", "--openings", str(openings), "--model", str(tiny_llama), "--max-tokens=5"]
    assert main([*told, "--replies=2", "--persona", "You want a room.", "--turns=3"]) == 0
    kept = conversations(database, 1)
    assert {len(c.assistant_messages) for c in kept} <= {1, 2, 3}
    assert max(len(c.assistant_messages) for c in kept) == 3
    assert queries.collection(database, 1).plan.partner is Partner.MODEL
    with pytest.raises(BadDataError, match="no prompt"):
        begin(database, tiny_llama, [], token="e")
    with pytest.raises(ConfigError, match="temperature"):
        begin(database, tiny_llama, token="t", temperature=9.0)


def test_a_prompt_beyond_the_context_is_named_and_the_others_are_answered(
    database: Database, tiny_llama: Path
) -> None:
    prompts = [*PROMPTS, *from_lines("Is it too high? " * 500)]
    collection_id = begin(database, tiny_llama, prompts)
    assert begin(database, tiny_llama, prompts) == collection_id  # a second click
    assert main(["collect", str(collection_id)]) == 0
    found = queries.collection(database, collection_id)
    assert (found.state, found.done) == (CollectionState.DONE, 4)
    assert "the prompt has" in found.error_text


def test_killed_in_the_middle_it_goes_on_without_doubling(
    database: Database, tiny_llama: Path, forks: Forks, tmp_path: Path
) -> None:
    whole = begin(database, tiny_llama, MANY, token="whole", replies=16, max_tokens=32)
    broken = begin(database, tiny_llama, MANY, token="broken", replies=16, max_tokens=32)
    log = tmp_path / "log"
    assert forks.wait(fork_of(database, forks, whole, log)) == 0, log.read_text()
    pid = fork_of(database, forks, broken, log)
    until(lambda: queries.collection(database, broken).done >= 3)
    os.kill(pid, signal.SIGKILL)
    forks.wait(pid)
    assert 0 < queries.collection(database, broken).done < len(MANY)
    reconcile_collections(database)
    failed = queries.collection(database, broken)
    assert failed.state is CollectionState.FAILED
    assert "ended without a word" in failed.error_text
    spawned = fork_of(database, forks, broken, log, "--spawned")  # too late: it has ended
    assert forks.wait(spawned) == 1, log.read_text()
    assert commands.go_on_collecting(database, broken)
    assert not commands.go_on_collecting(database, broken)  # a second click
    commands.end_collection(database, broken, CollectionState.FAILED, error_text="as before")
    assert queries.collection(database, broken).state is CollectionState.FAILED
    assert forks.wait(fork_of(database, forks, broken, log)) == 0, log.read_text()
    said = [
        sorted(
            (c.group.partition("/")[2], c.messages[-1].content) for c in conversations(database, i)
        )
        for i in (whole, broken)
    ]
    assert len(said[0]) == len(said[1])
    assert said[0] == said[1]  # the same seed: what the kill interrupted was asked again


def process_of(collection: Collection) -> Mark:
    return Mark.from_text(collection.process)


def test_it_gives_way_to_a_chat_and_to_a_run_and_is_cancelled_while_it_waits(
    database: Database, tiny_llama: Path, forks: Forks, tmp_path: Path
) -> None:
    collection_id = begin(database, tiny_llama, MANY * 15, replies=16, max_tokens=60)
    pid = fork_of(database, forks, collection_id, tmp_path / "log")
    until(lambda: queries.collection(database, collection_id).done >= 1)
    before = queries.collection(database, collection_id)
    chat = Address(
        url="http://127.0.0.1:9",  # it lives, and is too busy to answer
        token="",
        base_model="tiny",
        device="cpu",
        pid=os.getpid(),
        process_started_at=own_start_time(),
        machine=own_machine(),
    )
    with announced(database.settings, chat):
        until(lambda: "somebody chats" in queries.collection(database, collection_id).message)
        run_id = run_on_the_cpu(database)
        waiting = f"Waiting: run {run_id} has the device"
        until(lambda: queries.collection(database, collection_id).message == waiting)
    found = queries.collection(database, collection_id)
    assert (found.state, found.process) == (CollectionState.COLLECTING, before.process)
    assert b"torch" not in Path(f"/proc/{pid}/maps").read_bytes()  # it holds no model, no library
    cancel_collection(database, collection_id)
    until(lambda: process_of(found).sign() is Sign.GONE)
    after = queries.collection(database, collection_id)
    assert after.state is CollectionState.CANCELLED
    assert len(conversations(database, collection_id)) == after.conversations > 0
