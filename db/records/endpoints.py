"""Training services on other machines that a run can be sent to."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class Endpoint:
    """A service that speaks the Tinker / MinT API.

    Attributes:
        name: What people call it; a run names it.
        base_url: Where it answers, without a slash at the end.
        key_variable: Name of the environment variable that holds its key; empty if it wants none,
            or the key is typed for each start. The key itself is never stored.
    """

    name: str
    base_url: str
    key_variable: str = ""
