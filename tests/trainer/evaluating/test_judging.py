"""The automatic judge, over real HTTP: both orders, an interval, and failures that harm nothing."""

import json
import threading
from collections.abc import Callable, Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

import pytest

from db import commands
from db.engine import Database, open_database
from db.enums import RunStatus
from db.settings import Settings
from trainer.__main__ import main
from trainer.errors import BadDataError
from trainer.evaluating import judging
from trainer.evaluating.judge import KEY_VARIABLE, Endpoint, Judge, JudgeError
from trainer.evaluating.judging import judge_run, read_judgements, start_judging
from trainer.evaluating.win_rate import win_rate
from trainer.runs.folder import RunFolder, write_json

KEY = "a-secret-of-this-test"
PROMPT = [("user", "Hello")]

Verdict = Callable[[dict[str, Any]], str | int]
"""Answers to what is asked (conversation and both answers): a text, or an HTTP status."""


class JudgeServer(ThreadingHTTPServer):
    """A chat endpoint that answers as a function says."""

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), _Handler)
        self.verdict: Verdict = lambda _: '{"better": "tie"}'
        self.keys: list[str | None] = []
        self.bodies: list[dict[str, Any]] = []

    @property
    def endpoint(self) -> Endpoint:
        return Endpoint(url=f"http://127.0.0.1:{self.server_port}/v1", model="judge-1")


class _Handler(BaseHTTPRequestHandler):
    server: JudgeServer  # pyright: ignore[reportIncompatibleVariableOverride]

    def do_POST(self) -> None:
        body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        self.server.keys.append(self.headers["Authorization"])
        self.server.bodies.append(body)
        said = self.server.verdict(json.loads(body["messages"][1]["content"]))
        status, text = (said, "") if isinstance(said, int) else (200, said)
        answer = json.dumps({"choices": [{"message": {"role": "assistant", "content": text}}]})
        self.send_response(status)
        self.end_headers()
        self.wfile.write(answer.encode())

    def log_message(self, format: str, *args: Any) -> None:
        del format, args


@pytest.fixture
def server(monkeypatch: pytest.MonkeyPatch) -> Iterator[JudgeServer]:
    monkeypatch.setenv(KEY_VARIABLE, KEY)
    with JudgeServer() as serving:
        thread = threading.Thread(target=serving.serve_forever, kwargs={"poll_interval": 0.01})
        thread.start()
        yield serving
        serving.shutdown()
        thread.join()


@pytest.fixture
def database(settings: Settings, server: JudgeServer) -> Iterator[Database]:
    opened = open_database(settings)
    changes = {"judge_url": server.endpoint.url, "judge_model": "judge-1"}
    commands.change_project_settings(opened, changes)
    yield opened
    opened.close()


def finished_run(database: Database, answers: list[tuple[str, str]]) -> tuple[int, RunFolder]:
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
    commands.end_run(database, run.id, RunStatus.FINISHED)
    folder = RunFolder(database.settings.run_dir(run.id))
    folder.path.mkdir(parents=True)
    prompt = [{"role": "user", "content": "Hello"}]
    samples = [{"prompt": prompt, "before": b, "after": a, "held_out": True} for b, a in answers]
    write_json(folder.samples, samples)
    return run.id, folder


def prefers(words: str) -> Verdict:
    return lambda asked: '{"better": "A"}' if words in asked["answer A"] else '{"better": "B"}'


def test_a_judge_that_prefers_a_place_says_that_neither_is_better(server: JudgeServer) -> None:
    with Judge(server.endpoint) as judge:
        server.verdict = lambda _: 'Sure: {"better": "A"}'
        assert judge.compare(PROMPT, "old", "new") == 0.5
        server.verdict = prefers("new")
        assert judge.compare(PROMPT, "old", "new") == 1.0
        assert judge.compare(PROMPT, "new", "old") == 0.0
    assert set(server.keys) == {f"Bearer {KEY}"}
    assert server.bodies[0]["model"] == "judge-1"


def test_the_judge_is_told_which_tools_there_were(server: JudgeServer) -> None:
    tool = {"type": "function", "function": {"name": "order"}}
    with Judge(server.endpoint) as judge:
        judge.compare(PROMPT, "old", "new", tools=[tool])
        judge.compare(PROMPT, "old", "new")
    asked = [json.loads(body["messages"][1]["content"]) for body in server.bodies]
    assert [one.get("tools") for one in asked] == [[tool], [tool], None, None]


def test_a_busy_judge_is_asked_again_and_one_that_refuses_is_not(server: JudgeServer) -> None:
    statuses = iter([429, 503])
    server.verdict = lambda _: next(statuses, '{"better": "tie"}')
    with Judge(server.endpoint, wait_s=0.0) as judge:
        assert judge.compare(PROMPT, "old", "new") == 0.5
        assert len(server.keys) == 4
        for verdict, word in ((401, "it answers 401"), ("hm", "no verdict"), ("", "no verdict")):
            server.verdict = lambda _, said=verdict: said
            with pytest.raises(JudgeError, match=word) as caught:
                judge.compare(PROMPT, "old", "new")
            assert KEY not in str(caught.value)
        assert len(server.keys) == 7


def test_the_word_of_the_judge_is_kept_beside_the_run_and_its_key_nowhere(
    database: Database, server: JudgeServer, capsys: pytest.CaptureFixture[str]
) -> None:
    server.verdict = prefers("better")
    answers = [("old", "better"), ("better", "new"), ("old", "better still")]
    run_id, folder = finished_run(database, answers)
    assert main(["judge", str(run_id)]) == 0
    told = read_judgements(folder)
    assert told is not None
    assert (told.verdicts, told.error, told.is_under_way) == ((1.0, 0.0, 1.0), "", False)
    assert (told.model, told.host) == ("judge-1", f"127.0.0.1:{server.server_port}")
    printed = capsys.readouterr()
    assert "preferred in 67% of 3 prompts" in printed.err
    files = [path for path in database.settings.home.rglob("*") if path.is_file()]
    assert not any(KEY.encode() in path.read_bytes() for path in files)
    assert KEY not in printed.out + printed.err


def test_a_judge_that_fails_is_given_up_and_the_run_stays_finished(
    database: Database, server: JudgeServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    server.verdict = lambda _: 400
    run_id, folder = finished_run(database, [("a", "b")] * 5)
    told = judge_run(database, run_id, wait_s=0.0)
    assert told.verdicts == (None,) * 5
    assert "it answers 400" in told.error
    assert len(server.keys) == judging.MOST_FAILURES
    assert read_judgements(folder) is not None

    def refuse(*_: object) -> None:
        raise OSError("no process")

    monkeypatch.setattr(judging, "start_detached", refuse)
    start_judging(database, run_id)
    commands.change_project_settings(database, {"judge_url": ""})
    with pytest.raises(BadDataError, match="no judge"):
        judge_run(database, run_id)


def test_the_win_rate_has_wilsons_interval() -> None:
    found = win_rate([1.0] * 8 + [0.0] * 2)
    assert found is not None
    # Newcombe (1998), by hand: (8 + 1.9208 ± 1.96 sqrt(1.6 + 0.9604)) / 13.8415
    assert (found.rate, found.prompts) == (0.8, 10)
    assert (found.low, found.high) == pytest.approx((0.4902, 0.9433), abs=1e-4)
    assert win_rate([]) is None
    sure = win_rate([1.0])
    assert sure is not None and sure.high == 1.0 and sure.low < 0.25
