"""Replies in the making: a real server's process with a tiny model, and what goes wrong with it."""

import json
import os
import signal
import time
import urllib.request
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from app import chat_jobs, chat_store
from app.chat_jobs import Job
from app.chat_sending import conversations_of
from app.chat_server import Phase
from app.chat_tree import BASE, Chat, Ending, Sampling, Turn, ask
from db.engine import Database
from tests.forking import Forks
from tests.live_runs import add_conversations, config_for, ended, launch, long_config, wait_for
from tests.trainer.serving.conftest import train_adapter
from trainer.choices import Rendering
from trainer.data.rendering import render_conversation
from trainer.models import load_tokenizer
from trainer.runs import launch as launching
from trainer.serving import worker
from trainer.serving.address import TOKEN_VARIABLE, read_address

pytestmark = pytest.mark.slow

PATIENCE_S = 90.0
FOREVER = Sampling(max_tokens=900, temperature=1.0, seed=1)
SHORT = Sampling(max_tokens=5, temperature=1.0, seed=1)

Begin = Callable[..., tuple[Chat, Turn, Job]]


@pytest.fixture(autouse=True)
def served(forks: Forks, database: Database, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Servers are forks with a model that talks slowly and without an end."""

    def start_process(settings, base_model: str) -> int:
        worker.log_file(settings).unlink(missing_ok=True)  # forks add to what is there
        return forks.start(
            ["serve", "--port", "0", "--model", base_model, "--idle-timeout", "300"],
            log=worker.log_file(settings),
            cwd=settings.home,
            environment={"EVERYTURN_HOME": str(settings.home), TOKEN_VARIABLE: "of the tests"},
            hook=("tests.slow_serving", "slowly"),
        )

    monkeypatch.setattr(worker, "start_process", start_process)
    monkeypatch.setattr(launching, "start_process", forks.start_run)
    yield
    worker.make_room(database.settings, "cpu")


@pytest.fixture
def begin(database: Database, tiny_llama: Path) -> Begin:
    """Return a function that asks a question in a new chat, or in a given one."""

    def begin_one(
        *lanes: str, sampling: Sampling = SHORT, chat: Chat | None = None
    ) -> tuple[Chat, Turn, Job]:
        if chat is None:
            new = Chat(base_model=str(tiny_llama), lanes=lanes or (BASE,), sampling=sampling)
            chat = chat_store.create(new, user_id=1)
        leaf = chat.leaf
        chat = chat_store.update(
            chat.id, lambda c: ask(replace(c, sampling=sampling), "Where is it?", after=leaf)
        )
        assert chat.last is not None
        return chat, chat.last, chat_jobs.begin(database, chat, chat.last, chat.last.order)

    return begin_one


def wait(condition: Callable[[], object]) -> None:
    deadline = time.monotonic() + PATIENCE_S
    while not condition():
        assert time.monotonic() < deadline, "it never came to that"
        time.sleep(0.02)


def done(job: Job) -> Callable[[], bool]:
    return lambda: job.phase is Phase.DONE


def speaks(job: Job) -> Callable[[], bool]:
    return lambda: all(len(growing.token_ids) > 2 for growing in job.growing.values())


def active(database: Database) -> int:
    address = read_address(database.settings)
    assert address is not None
    with urllib.request.urlopen(f"{address.url}/health") as answer:
        return json.load(answer)["active"]


def test_models_answer_side_by_side_and_what_is_kept_is_exact(
    begin: Begin, database: Database, tiny_llama: Path
) -> None:
    train_adapter(database.settings, tiny_llama, 7)
    chat, _, job = begin(BASE, "run-7")
    wait(done(job))
    chat, _, job = begin(chat=chat_store.read(chat.id))
    wait(done(job))
    chat = chat_store.read(chat.id)
    assert len(chat.path) == 2
    tokenizer = load_tokenizer(database.settings, str(tiny_llama))
    conversations = conversations_of(chat)
    assert len({c.group for c in conversations}) == 1 and len(conversations) == 2
    for lane, conversation in zip(chat.lanes, conversations, strict=True):
        rendered = render_conversation(conversation, tokenizer, Rendering.TEMPLATE)
        for earlier, shown in zip(chat.path, rendered, strict=True):
            reply = earlier.reply(lane)
            assert reply is not None and reply.ending is Ending.LENGTH
            assert shown.response_ids == reply.token_ids
            assert shown.sampled_logprobs == reply.logprobs
    first, second = (c.messages[-1] for c in conversations)
    assert first.token_ids != second.token_ids  # the adapter took part
    assert second.model == f"{tiny_llama}, run 7"
    assert first.sampling is not None and first.sampling["seed"] == 1


def test_a_killed_server_leaves_a_word_and_a_retry_answers(
    begin: Begin, database: Database
) -> None:
    chat, turn, job = begin(sampling=FOREVER)
    wait(speaks(job))
    address = read_address(database.settings)
    assert address is not None
    os.kill(address.pid, signal.SIGKILL)
    wait(done(job))
    (reply,) = chat_store.read(chat.id).turn(turn.id).replies
    assert reply.ending is Ending.FAILED and reply.text
    assert "process ended" in reply.problem
    again = chat_store.update(chat.id, lambda c: replace(c, sampling=SHORT))
    wait(done(chat_jobs.begin(database, again, again.turn(turn.id), [BASE])))
    (reply,) = chat_store.read(chat.id).turn(turn.id).replies
    assert reply.ending is Ending.LENGTH and len(reply.token_ids) == 5


def test_two_chats_talk_at_once_and_to_stop_one_leaves_the_other(
    begin: Begin, database: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    (one, turn, first), (_, _, second) = begin(sampling=FOREVER), begin(sampling=FOREVER)
    wait(speaks(first))
    wait(speaks(second))
    assert active(database) == 2
    first.stop()
    wait(done(first))
    (reply,) = chat_store.read(one.id).turn(turn.id).replies
    assert reply.ending is Ending.STOPPED and len(reply.token_ids) == len(reply.logprobs) > 2
    wait(lambda: active(database) == 1)
    assert second.phase is Phase.ANSWERING
    # Nobody looks at the other one any more: it ends, too, and nothing is computed in vain.
    monkeypatch.setattr(chat_jobs, "UNSEEN_S", 0.0)
    wait(done(second))
    wait(lambda: active(database) == 0)


def test_a_run_gets_the_device_and_the_question_waits_for_its_end(
    begin: Begin, database: Database, tiny_llama: Path
) -> None:
    chat, turn, job = begin(sampling=FOREVER)
    wait(speaks(job))
    ids = add_conversations(database)
    run = launch(database, ids, long_config(tiny_llama), "goes first")
    wait(done(job))
    (reply,) = chat_store.read(chat.id).turn(turn.id).replies
    assert reply.ending is Ending.FAILED and "'goes first' goes first" in reply.problem
    wait(lambda: read_address(database.settings) is None)  # it says so, and then it goes
    running = wait_for(database, run.id, lambda run: run.progress > 0)
    assert running.device == "cpu"
    log = (database.settings.run_dir(run.id) / "run.log").read_text()
    assert "the chat has left the cpu to this run" in log

    again = chat_store.update(chat.id, lambda c: replace(c, sampling=SHORT))
    job = chat_jobs.begin(database, again, again.turn(turn.id), [BASE])
    wait(lambda: job.phase is Phase.WAITING)
    assert job.run is not None and job.run.id == run.id
    assert worker.look(database.settings).stage is worker.Stage.OFF
    launching.request_stop(database, run.id)
    wait_for(database, run.id, ended)
    wait(done(job))
    (reply,) = chat_store.read(chat.id).turn(turn.id).replies
    assert reply.ending is Ending.LENGTH


def test_a_run_ends_a_server_that_is_still_loading(
    database: Database, tiny_llama: Path, forks: Forks
) -> None:
    worker.start(database.settings, str(tiny_llama))
    worker.start(database.settings, str(tiny_llama))  # a second click starts no second one
    assert worker.look(database.settings).stage is worker.Stage.LOADING
    run = launch(database, add_conversations(database), config_for(tiny_llama), "first")
    wait_for(database, run.id, ended)
    assert worker.look(database.settings).stage is worker.Stage.OFF


def test_what_cannot_be_answered_says_why(
    begin: Begin, database: Database, tiny_llama: Path, tmp_path: Path
) -> None:
    chat, turn, job = begin("run-99", sampling=SHORT)
    wait(done(job))
    (reply,) = chat_store.read(chat.id).turn(turn.id).replies
    assert reply.ending is Ending.FAILED and "there is no such model" in reply.problem

    broken = tmp_path / "broken"
    broken.mkdir()
    (broken / "config.json").write_text("{}")
    new = Chat(base_model=str(broken), sampling=SHORT)
    chat, turn, job = begin(chat=chat_store.create(new, user_id=1))
    wait(done(job))
    (reply,) = chat_store.read(chat.id).turn(turn.id).replies
    assert reply.ending is Ending.FAILED and str(broken) in reply.problem
