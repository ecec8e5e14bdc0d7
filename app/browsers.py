"""What the gate and the pages both know about a browser: its cookie, and whether it has come in."""

COOKIE = "everyturn_session"
"""Holds the token of a password sign-in; only the server reads and writes it."""

_MAX_KNOWN = 10_000
_come_in: dict[str, None] = {}


def remember(session_id: str) -> None:
    """Note that somebody is signed in in this session of Streamlit's; the oldest are forgotten."""
    _come_in[session_id] = None
    while len(_come_in) > _MAX_KNOWN:
        _come_in.pop(next(iter(_come_in)), None)


def has_come_in(session_id: str) -> bool:
    """Return whether somebody was signed in in this session when its page was drawn last."""
    return session_id in _come_in


def forget(session_id: str) -> None:
    """Note that nobody is signed in in this session any more."""
    _come_in.pop(session_id, None)
