"""The process behind `serve`: found by its file, alone in its home, gone at once when it must be."""

import json
import os
import signal
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import openai
import pytest
from openai import OpenAI

from db.settings import Settings
from tests.forking import Forks
from trainer.__main__ import main
from trainer.runs.process import is_alive
from trainer.serving.address import read_address

Start = Callable[..., tuple[int, dict[str, Any]]]


@pytest.fixture
def start(forks: Forks, settings: Settings, tiny_llama: Path) -> Iterator[Start]:
    """Start a server, wait until it answers; return its process id and what its file says."""
    started: list[int] = []

    def start_one(*more: str, wait: bool = True) -> tuple[int, dict[str, Any]]:
        settings.home.mkdir(parents=True, exist_ok=True)
        arguments = ["serve", "--port", "0", "--model", str(tiny_llama), "--device", "cpu", *more]
        environment = {"EVERYTURN_HOME": str(settings.home)}
        log = settings.home / "serve.log"
        pid = forks.start(arguments, log=log, environment=environment)
        started.append(pid)
        deadline = time.monotonic() + 60
        while wait and not settings.serve_file.exists():
            assert time.monotonic() < deadline, log.read_text()
            time.sleep(0.02)
        return pid, json.loads(settings.serve_file.read_text()) if wait else {}

    yield start_one
    for pid in started:
        try:
            os.kill(pid, signal.SIGKILL)
        except ProcessLookupError:
            continue


def client_of(about: dict[str, Any]) -> OpenAI:
    return OpenAI(base_url=f"{about['url']}/v1", api_key=about["token"], max_retries=0, timeout=30)


def tell(client: OpenAI, **more: Any) -> Any:
    messages: list[Any] = [{"role": "user", "content": "What is the capital of France?"}]
    return client.chat.completions.create(model="base", messages=messages, **more)


def test_its_file_tells_its_owner_alone_how_to_reach_it(start: Start, settings: Settings) -> None:
    pid, about = start()
    assert settings.serve_file.stat().st_mode & 0o777 == 0o600
    assert about["pid"] == pid and is_alive(pid, about["process_started_at"])
    assert about["device"] == "cpu"
    assert tell(client_of(about), max_tokens=2).usage.completion_tokens <= 2
    log = (settings.home / "serve.log").read_text()
    assert about["token"] in log  # made up by the server, and said once


def test_a_given_token_is_not_printed(start: Start, settings: Settings) -> None:
    _, about = start("--token", "from the option")
    assert about["token"] == "from the option"
    assert "from the option" not in (settings.home / "serve.log").read_text()


def test_a_signal_ends_replies_with_a_word_and_the_process_at_once(
    start: Start, forks: Forks, settings: Settings
) -> None:
    pid, about = start()
    stream = tell(client_of(about), stream=True, max_tokens=900, temperature=1.0, n=8)
    next(iter(stream))
    address = read_address(settings)
    assert address is not None
    address.ask_to_leave()
    with pytest.raises(openai.APIError, match="the model has left the device"):
        for _ in stream:
            pass
    assert forks.wait(pid, timeout_s=20) == 0
    assert not settings.serve_file.exists()


def test_nobody_asking_ends_it(start: Start, forks: Forks, settings: Settings) -> None:
    pid, about = start("--idle-timeout", "1.5")
    time.sleep(0.8)
    tell(client_of(about), max_tokens=1)
    asked = time.monotonic()
    assert forks.wait(pid, timeout_s=30) == 0
    assert time.monotonic() - asked > 1
    assert not settings.serve_file.exists()


def test_a_second_server_of_a_home_is_refused_in_words(
    start: Start, settings: Settings, tiny_llama: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    start()
    assert main(["serve", "--port", "0", "--model", str(tiny_llama)]) == 1
    assert "at work for this folder already" in capsys.readouterr().err


def test_a_killed_server_leaves_room_for_the_next(
    start: Start, forks: Forks, settings: Settings
) -> None:
    pid, _ = start()
    address = read_address(settings)
    assert address is not None and address.pid == pid
    address.ask_to_leave(force=True)
    assert forks.wait(pid) == -signal.SIGKILL
    assert read_address(settings) is None  # the file is still there, and nobody behind it
    settings.serve_file.unlink()
    _, about = start()
    assert tell(client_of(about), max_tokens=1).choices


def test_a_taken_port_and_an_unknown_model_are_one_line(
    start: Start,
    tmp_path: Path,
    tiny_llama: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    _, about = start()
    monkeypatch.setenv("EVERYTURN_HOME", str(tmp_path / "another home"))
    port = about["url"].rpartition(":")[2]
    assert main(["serve", "--port", port, "--model", str(tiny_llama)]) == 1
    assert "is taken" in capsys.readouterr().err.splitlines()[-1]
    assert main(["serve", "--port", "0", "--model", "nobody has this"]) == 1
    assert "no such model" in capsys.readouterr().err.splitlines()[-1]
