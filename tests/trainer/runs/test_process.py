"""A process is told from every other, whatever clocks and reused ids say."""

import os
import subprocess
import sys
from collections.abc import Iterator

import psutil
import pytest

from trainer.runs import process
from trainer.runs.process import Mark, Sign, new_claim, own_mark


@pytest.fixture
def sleeper() -> Iterator[subprocess.Popen[bytes]]:
    child = subprocess.Popen([sys.executable, "-S", "-c", "import time; time.sleep(600)"])
    yield child
    child.kill()
    child.wait()


def mark_of(pid: int) -> Mark:
    started_at = process.start_time(pid)
    assert started_at is not None
    return Mark(machine=process.own_machine(), pid=pid, started_at=started_at)


def test_a_mark_comes_back_from_its_text() -> None:
    mark = own_mark()
    assert Mark.from_text(str(mark)) == mark
    assert mark.sign() is Sign.ALIVE
    claims = {new_claim() for _ in range(2)}
    assert len(claims) == 2
    assert {Mark.from_text(claim) for claim in claims} == {mark}
    assert Mark.from_text("").sign() is Sign.ELSEWHERE


def test_a_reused_id_is_another_process(sleeper: subprocess.Popen[bytes]) -> None:
    mark = mark_of(sleeper.pid)
    assert mark.sign() is Sign.ALIVE
    earlier = Mark(machine=mark.machine, pid=mark.pid, started_at=mark.started_at - 0.01)
    assert earlier.sign() is Sign.GONE
    process.end(earlier.pid, earlier.started_at, force=True)  # never the wrong one
    assert mark.sign() is Sign.ALIVE


def test_a_killed_child_is_gone_and_leaves_no_zombie(sleeper: subprocess.Popen[bytes]) -> None:
    mark = mark_of(sleeper.pid)
    process.end(mark.pid, mark.started_at, force=True)
    while mark.sign() is Sign.ALIVE:
        pass
    assert mark.sign() is Sign.GONE
    assert not psutil.pid_exists(mark.pid)


@pytest.mark.skipif(sys.platform != "linux", reason="elsewhere the system keeps the start time")
def test_a_clock_that_is_set_makes_no_process_a_stranger(monkeypatch: pytest.MonkeyPatch) -> None:
    """The system computes times since the epoch from the clock, so they jump with it."""
    mark = own_mark()
    shifted = psutil.Process().create_time() + 3600
    monkeypatch.setattr(psutil.Process, "create_time", lambda self: shifted)
    assert mark.sign() is Sign.ALIVE
    assert mark.started_at == process.own_start_time()


def test_a_machine_that_was_started_anew_is_told_from_another_machine() -> None:
    host, _, start = process.own_machine().partition(" ")
    assert Mark(machine=f"{host} earlier", pid=os.getpid(), started_at=1.0).sign() is Sign.RESTARTED
    other = Mark(machine=f"not-{host} {start}", pid=os.getpid(), started_at=1.0)
    assert other.sign() is Sign.ELSEWHERE
