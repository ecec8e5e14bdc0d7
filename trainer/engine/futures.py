"""Calls of one client wait in line for each other; a future stands for what a call will give."""

import asyncio
import threading
from collections.abc import Callable, Generator
from concurrent.futures import Future, ThreadPoolExecutor
from typing import Any, Generic, TypeVar

T = TypeVar("T")

_COMPUTING = threading.Lock()
"""One computation at a time in this process, whichever client it is for: torch's random state,
its threads and the memory belong to all of them."""


class APIFuture(Generic[T]):
    """What the training API's calls return: `.result()`, `await`, or `await .result_async()`.

    The error of a computation is raised where its result is asked for, each time it is asked.
    """

    def __init__(self, future: Future[T]) -> None:
        """Stand for a future of the standard library."""
        self._future = future

    def result(self, timeout: float | None = None) -> T:
        """Wait for the value, or raise the error of the computation.

        Args:
            timeout: Most seconds to wait; None waits for as long as it takes.

        Raises:
            TimeoutError: if it takes longer; the computation goes on.
        """
        return self._future.result(timeout)

    async def result_async(self, timeout: float | None = None) -> T:
        """Like `result`, while other coroutines go on."""
        return await asyncio.wait_for(asyncio.wrap_future(self._future), timeout)

    def __await__(self) -> Generator[Any, None, T]:
        """Await the value itself."""
        return self.result_async().__await__()

    def future(self) -> Future[T]:
        """Return the future of the standard library behind this one."""
        return self._future


class Line:
    """Computes the calls of one client one after the other, in the order they were made.

    A call of the plain form (`now`) is computed before it returns. One of the `_async` form
    (`soon`) returns at once and is computed by a thread, so that the event loop goes on; an
    interpreter that ends waits for it.
    """

    def __init__(self, prepare: Callable[[], None] | None = None) -> None:
        """Begin an empty line.

        Args:
            prepare: What the thread does before its first computation.
        """
        self._joining = threading.Lock()
        self._last_left: threading.Event | None = None
        self._thread = ThreadPoolExecutor(1, thread_name_prefix="engine", initializer=prepare)

    def now(self, compute: Callable[[], T]) -> APIFuture[T]:
        """Compute here, after everything that was submitted before."""
        with self._joining:
            turn = _Turn(compute, self._last_left)
            self._last_left = turn.left
        turn.take()
        return APIFuture(turn.future)

    def soon(self, compute: Callable[[], T]) -> APIFuture[T]:
        """Compute in the line's thread, after everything that was submitted before."""
        # The thread must find the turns in the order in which they wait for each other.
        with self._joining:
            turn = _Turn(compute, self._last_left)
            self._last_left = turn.left
            self._thread.submit(turn.take)
        return APIFuture(turn.future)


class _Turn(Generic[T]):
    """One place in a line."""

    def __init__(self, compute: Callable[[], T], before: threading.Event | None) -> None:
        self.future: Future[T] = Future()
        # Running from the start: whoever gives up waiting must not take a step out of the line.
        self.future.set_running_or_notify_cancel()
        self.left = threading.Event()
        self._compute = compute
        self._before = before

    def take(self) -> None:
        """Wait for the turn before, compute, let the next one go."""
        try:
            if self._before is not None:
                self._before.wait()
            with _COMPUTING:
                value = self._compute()
        except BaseException as error:
            self.future.set_exception(error)
            if not isinstance(error, Exception):  # the process is being ended
                raise
        else:
            self.future.set_result(value)
        finally:
            self.left.set()
