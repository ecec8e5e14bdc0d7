"""Simulated raters: `python -m tests.soak.raters FIRST LAST SECONDS` scores like a web process.

Each rater is a thread with a user of their own, as each browser's session is in the web process;
all share one `Database`. What a rater is told is printed, one JSON array a line and flushed, before
their next change begins: `[event, user, message, value, milliseconds]`, where `event` is the entry
of the log, null if nothing changed, and `value` is null if the score was taken away. What a person
would see as an error is a line, too: `["the error"]`.
"""

import json
import random
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from threading import Lock

from db import commands
from db.engine import Database, open_database
from db.errors import EveryTurnError

_printing = Lock()


def rate(database: Database, user_id: int, message_ids: list[int], until: float) -> None:
    """Score, score anew and clear turns until the time is over."""
    chance = random.Random()
    while time.monotonic() < until:
        message_id = chance.choice(message_ids)
        value = None if chance.random() < 0.1 else chance.uniform(-1, 1)
        start = time.monotonic()
        try:
            event = commands.set_score(
                database, user_id=user_id, message_id=message_id, value=value
            )
        except EveryTurnError as error:
            _tell([str(error)])
            return
        took_ms = (time.monotonic() - start) * 1000
        _tell([None if event is None else event.id, user_id, message_id, value, took_ms])


def _tell(line: list[object]) -> None:
    with _printing:
        sys.stdout.write(json.dumps(line) + "\n")
        sys.stdout.flush()


def main(first: int, last: int, seconds: float) -> None:
    """Let the users with these ids score at once; standard input names the turns."""
    database = open_database()
    message_ids = [int(text) for text in sys.stdin.read().split()]
    until = time.monotonic() + seconds
    users = range(first, last + 1)
    with ThreadPoolExecutor(len(users)) as pool:
        for done in [pool.submit(rate, database, user, message_ids, until) for user in users]:
            done.result()


if __name__ == "__main__":
    main(int(sys.argv[1]), int(sys.argv[2]), float(sys.argv[3]))
