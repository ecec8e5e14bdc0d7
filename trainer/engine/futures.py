"""The result of a call that may have been computed elsewhere; here it always is there already."""

from collections.abc import Callable, Generator
from typing import Generic, Self, TypeVar

T = TypeVar("T")


class APIFuture(Generic[T]):
    """What the training API's calls return: `.result()`, `await`, or `await .result_async()`.

    The in-process engine computes at submission, in the order of the calls; an error surfaces
    where the result is asked for, as it would with a remote engine.
    """

    def __init__(self, value: T | None, error: Exception | None) -> None:
        """Hold a value or an error."""
        self._value = value
        self._error = error

    @classmethod
    def run(cls, compute: Callable[[], T]) -> Self:
        """Compute now and hold what came of it."""
        try:
            return cls(compute(), None)
        except Exception as error:  # noqa: BLE001 - raised again by `result`
            return cls(None, error)

    def result(self, timeout: float | None = None) -> T:
        """Return the value, or raise the error of the computation."""
        if self._error is not None:
            raise self._error
        return self._value  # pyright: ignore[reportReturnType]  # None only beside an error

    async def result_async(self, timeout: float | None = None) -> T:
        """Return the value, or raise the error of the computation."""
        return self.result(timeout)

    def __await__(self) -> Generator[None, None, T]:
        """Await the value itself."""
        return self.result_async().__await__()
