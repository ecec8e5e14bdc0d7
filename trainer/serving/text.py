"""Token ids become text piece by piece, up to the first stop string."""

from collections.abc import Sequence
from typing import Any

UNFINISHED = "�"
"""What a tokenizer shows for bytes that are no whole character yet."""


class TextOf:
    """The text of a reply while its tokens come in.

    Attributes:
        stopped: Whether a stop string has come; what follows it is not shown.
    """

    def __init__(self, tokenizer: Any, stops: Sequence[str]) -> None:
        """Use a tokenizer, and end before the first of these strings."""
        self._tokenizer = tokenizer
        self._stops = tuple(stop for stop in stops if stop)
        self._ids: list[int] = []
        self._settled = 0
        self._window = ""
        self._held = ""
        self.stopped = False

    def add(self, token: int) -> str:
        """Take the next token; return the text that is certain now, which may be empty."""
        self._ids.append(token)
        # A few tokens before the new one decide how it is spelt (spaces, bytes of a character).
        window = self._decode(self._ids[self._settled :])
        if window.endswith(UNFINISHED):
            return ""
        new = window[len(self._window) :]
        self._settled = max(self._settled, len(self._ids) - 1)
        self._window = self._decode(self._ids[self._settled :])
        return self._up_to_stop(self._held + new)

    def rest(self) -> str:
        """Return what was held back, once no more tokens come."""
        if self.stopped:
            return ""
        window = self._decode(self._ids[self._settled :])
        return self._held + window[len(self._window) :]

    def _up_to_stop(self, text: str) -> str:
        found = [place for stop in self._stops if (place := text.find(stop)) >= 0]
        if found:
            self.stopped, self._held = True, ""
            return text[: min(found)]
        held = max((_overlap(text, stop) for stop in self._stops), default=0)
        self._held = text[len(text) - held :]
        return text[: len(text) - held]

    def _decode(self, ids: list[int]) -> str:
        return str(self._tokenizer.decode(ids, skip_special_tokens=True))


def _overlap(text: str, stop: str) -> int:
    """Return how much of the text's end may be the beginning of a stop string."""
    longest = min(len(text), len(stop) - 1)
    return next((n for n in range(longest, 0, -1) if stop.startswith(text[-n:])), 0)
