"""A lock that lets threads through one at a time, in the order in which they came."""

from collections import deque
from collections.abc import Generator
from contextlib import contextmanager
from threading import Lock


class Turnstile:
    """A first-come, first-served lock.

    Python's own lock and SQLite's both let whoever asks at the right moment go first. Under load
    somebody then waits for many seconds while others write again and again.
    """

    def __init__(self) -> None:
        """Make one that is free."""
        self._mutex = Lock()
        self._taken = False
        self._waiting: deque[Lock] = deque()

    @contextmanager
    def turn(self) -> Generator[None]:
        """Wait for one's turn, and hold it for the block. A thread cannot wait for itself."""
        mine = Lock()
        mine.acquire()
        with self._mutex:
            if self._taken:
                self._waiting.append(mine)
            else:
                self._taken = True
                mine.release()
        mine.acquire()
        try:
            yield
        finally:
            with self._mutex:
                if self._waiting:
                    self._waiting.popleft().release()  # the turn is handed over, never free
                else:
                    self._taken = False
