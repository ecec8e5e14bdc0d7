"""Twenty people score at once, and web processes are killed: nothing acknowledged is missing."""

import json
import random
import statistics
import subprocess
import sys
import time
from collections import defaultdict
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from db import commands, queries
from db.engine import open_database
from db.enums import UserRole
from db.records import ScoreEvent
from db.settings import Settings
from tests.db.building import scored_talk

pytestmark = [pytest.mark.slow, pytest.mark.timeout(900)]

ROOT = Path(__file__).parents[2]
RATERS = 20
TURNS = 40

WINDOWS = 2
"""How many web processes everybody has the page open of."""

Change = tuple[int, int, int, float | None]
"""Entry of the log, user, message, new value."""


@dataclass(frozen=True, slots=True)
class Told:
    """What raters were told."""

    changes: list[Change] = field(default_factory=list)
    took_ms: list[float] = field(default_factory=list)
    errors: list[str] = field(default_factory=list)

    def read(self, output: Path) -> None:
        """Add what a process printed; half a last line is something that nobody was told."""
        for line in output.read_text().splitlines(keepends=True):
            if line.endswith("\n"):
                match json.loads(line):
                    case [event, user, message, value, took_ms]:
                        self.took_ms.append(took_ms)
                        if event is not None:
                            self.changes.append((event, user, message, value))
                    case other:
                        self.errors.extend(other)


@dataclass(frozen=True, slots=True)
class Project:
    """One conversation, and people who score its turns."""

    settings: Settings
    conversation_id: int
    users: dict[int, str]
    message_ids: list[int]

    @classmethod
    def make(cls, settings: Settings) -> "Project":
        """Fill an empty database."""
        database = open_database(settings)
        names = [f"rater {number:02d}" for number in range(RATERS)]
        people = [
            commands.admit_person(database, name, role=UserRole.ANNOTATOR, password=None)
            for name in names
        ]
        id = commands.add_conversation(
            database, scored_talk(*((f"reply {number}", None) for number in range(TURNS)))
        )
        turns = queries.conversation(database, id).assistant_messages
        database.close()
        return cls(
            settings, id, {p.id: p.name for p in people}, [t.id for t in turns if t.id is not None]
        )

    def start(self, seconds: float, output: Path) -> subprocess.Popen[bytes]:
        """Start a web process with everybody in it, who score for so long."""
        arguments = [str(min(self.users)), str(max(self.users)), str(seconds)]
        with output.open("wb") as out:
            process = subprocess.Popen(
                [sys.executable, "-m", "tests.soak.raters", *arguments],
                stdin=subprocess.PIPE,
                stdout=out,
                cwd=ROOT,
            )
        assert process.stdin is not None
        process.stdin.write(" ".join(map(str, self.message_ids)).encode())
        process.stdin.close()
        return process

    def expect_kept(self, told: Told) -> int:
        """Hold database and log to what raters were told; return how many changes nobody heard of."""
        database = open_database(self.settings)
        log = queries.score_events(database, limit=10_000_000)[::-1]
        conversation = queries.conversation(database, self.conversation_id)
        database.close()
        by_place: dict[tuple[int, int | None], list[ScoreEvent]] = defaultdict(list)
        for event in log:
            by_place[event.user_id, event.message_id].append(event)
        kept = {(e.id, e.user_id, e.message_id, e.new_value) for e in log}
        assert len(told.changes) == len(set(told.changes)), "two people were told of one change"
        assert set(told.changes) <= kept, "a change that was acknowledged is missing"
        for changes in by_place.values():
            before = [None, *(change.new_value for change in changes[:-1])]
            assert [change.old_value for change in changes] == before, "a change came in between"
        now = {
            (score.rater, turn.id): score.value
            for turn in conversation.assistant_messages
            for score in turn.scores
        }
        last = {
            (self.users[user], message): changes[-1].new_value
            for (user, message), changes in by_place.items()
            if changes[-1].new_value is not None
        }
        assert now == last, "the scores are not those of the log"
        return len(log) - len(told.changes)


def test_every_acknowledged_score_of_twenty_raters_at_once_is_kept(
    settings: Settings, tmp_path: Path, soak_s: float
) -> None:
    project = Project.make(settings)
    outputs = [tmp_path / f"told-{number}" for number in range(WINDOWS)]
    processes = [project.start(soak_s, output) for output in outputs]
    assert [process.wait(timeout=soak_s + 200) for process in processes] == [0] * WINDOWS
    told = Told()
    for output in outputs:
        told.read(output)
    assert told.errors == []
    assert {user for _, user, _, _ in told.changes} == set(project.users), "somebody never got in"
    assert project.expect_kept(told) == 0
    print(  # noqa: T201 - what `make soak` shows
        f"\n{settings.database_url.split(':')[0]}: {len(told.took_ms)} changes in {soak_s:g} s; "
        f"median {statistics.median(told.took_ms):.0f} ms, longest {max(told.took_ms):.0f} ms"
    )


def test_a_killed_web_process_has_kept_every_score_it_acknowledged(
    settings: Settings, tmp_path: Path, soak_s: float
) -> None:
    project = Project.make(settings)
    told, kills, chance = Told(), 0, random.Random(7)
    until = time.monotonic() + soak_s
    while kills < 2 or time.monotonic() < until:
        output = tmp_path / f"told-{kills}"
        process = project.start(600, output)
        while output.stat().st_size == 0:  # until the first score is acknowledged
            assert process.poll() is None
            time.sleep(0.01)
        time.sleep(chance.uniform(0, 0.5))
        process.kill()
        process.wait()
        told.read(output)
        kills += 1
    assert told.errors == []
    # One change of each rater may be stored and not told yet.
    assert project.expect_kept(told) <= kills * RATERS
    print(f"\n{kills} kills, {len(told.changes)} changes")  # noqa: T201 - what `make soak` shows
