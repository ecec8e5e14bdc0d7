"""The official SDK's session with an endpoint: bounded waits, and errors that people can act on."""

import os
import time
from typing import Any, Protocol, TypeVar

import httpx2

from trainer.errors import EndpointError, EndpointLostError, TrainerError, shortened
from trainer.remote.access import Access
from trainer.remote.capabilities import UNREACHABLE, refused

T_co = TypeVar("T_co", covariant=True)
T = TypeVar("T")

LOOK_EVERY_S = 10.0
"""How often a wait for the endpoint looks whether it is still there."""

LOST_AFTER_S = 600.0
"""After so long without any answer the endpoint counts as lost."""

NO_KEY = "tml-none"
"""What the SDK sends to an endpoint that wants no key: it refuses to send none."""

MINT_PREFIX = "sk-"
"""MinT's keys; its toolkit teaches the SDK to send them."""


class Waited(Protocol[T_co]):
    """A future of the SDK."""

    def result(self, timeout: float | None = None) -> T_co:
        """Return the value."""
        ...


class Session:
    """A session with an endpoint.

    Attributes:
        service: The SDK's service client.
        where: What errors name.
    """

    def __init__(self, access: Access) -> None:
        """Open the session.

        Raises:
            EndpointError: if the SDK is not installed, or the endpoint refuses.
            EndpointLostError: if it does not answer.
        """
        self.where = access.endpoint.name
        self._access = access
        tinker = _sdk(access.key)
        try:
            self.service = tinker.ServiceClient(
                base_url=access.endpoint.base_url, api_key=access.key or NO_KEY
            )
        except Exception as error:  # noqa: BLE001 - put into words, without the key
            raise self.explained("opening a session", error) from None

    def wait(self, doing: str, future: Waited[T]) -> T:
        """Return what a call to the endpoint gives, however long it takes while it answers.

        The SDK sends a call again where that is safe: lost connections, limits of rate, a server
        that is busy. Here ends what would wait for ever.

        Raises:
            EndpointLostError: if it has not answered for `LOST_AFTER_S`, or lost the run's weights.
            EndpointError: if it refuses.
        """
        seen_at = time.monotonic()
        while True:
            try:
                return future.result(LOOK_EVERY_S)
            except TimeoutError:
                if self._answers():
                    seen_at = time.monotonic()
                elif time.monotonic() - seen_at > LOST_AFTER_S:
                    raise EndpointLostError(
                        f"it has not answered for {LOST_AFTER_S / 60:.0f} minutes",
                        where=f"{self.where}, {doing}",
                        remedy="Check the network and the server, then resume the run.",
                    ) from None
            except Exception as error:  # noqa: BLE001 - put into words, without the key
                raise self.explained(doing, error) from None

    def close(self) -> None:
        """Say goodbye: otherwise the SDK reports for as long as this process lives."""
        self.service.holder.close()

    def explained(self, doing: str, error: BaseException) -> TrainerError:
        """Return an error of the SDK in words."""
        import tinker  # noqa: PLC0415 - an optional package

        if isinstance(error, TrainerError):
            return error
        where = f"{self.where}, {doing}"
        said = self._access.redact(shortened(str(error) or type(error).__name__, 300))
        cause: BaseException = error
        while not isinstance(cause, tinker.APIError) and cause.__cause__ is not None:
            cause = cause.__cause__
        if isinstance(cause, tinker.APIStatusError):
            return self._by_status(cause.status_code, said, where)
        if isinstance(cause, tinker.APIConnectionError) or _is_passing(error):
            return EndpointLostError(said, where=where, remedy="Check the network and the server.")
        return EndpointError(said, where=where, remedy="Mend what it says, then resume the run.")

    def _by_status(self, status: int, said: str, where: str) -> TrainerError:
        if status in (401, 403):
            return refused(self._access, status)
        if status in (404, 410):
            return EndpointLostError(
                f"it no longer knows the run's weights or this call ({said})",
                where=where,
                remedy="It goes on from the last checkpoint, if the endpoint still has that.",
            )
        if status in (408, 409, 425, 429) or status >= 500:
            return EndpointLostError(said, where=where, remedy="Try again later.")
        return EndpointError(said, where=where, remedy="Mend what it says, then resume the run.")

    def _answers(self) -> bool:
        try:
            httpx2.get(f"{self._access.endpoint.base_url}/api/v1/healthz", timeout=5.0)
        except UNREACHABLE:
            return False
        return True


def _sdk(key: str) -> Any:
    """Return the SDK, which is told to report to nobody, and to take MinT's keys."""
    os.environ["TINKER_TELEMETRY"] = "0"
    try:
        import tinker  # noqa: PLC0415 - an optional package

        if key.startswith(MINT_PREFIX):
            import mint  # noqa: F401, PLC0415 - what it does, it does when it is imported
    except ImportError as error:
        raise EndpointError(
            f"the package {error.name} is not installed",
            where="endpoint",
            remedy="Run: pip install -r requirements-remote.txt",
        ) from None
    return tinker


def _is_passing(error: BaseException) -> bool:
    """Return whether the SDK says that the same may go well another time."""
    from tinker import RequestFailedError  # noqa: PLC0415 - an optional package
    from tinker.lib.retryable_exception import RetryableException  # noqa: PLC0415
    from tinker.types import RequestErrorCategory  # noqa: PLC0415

    if isinstance(error, RequestFailedError):
        return error.category is RequestErrorCategory.Server
    return isinstance(error, RetryableException | TimeoutError)
