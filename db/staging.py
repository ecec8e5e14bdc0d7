"""Conversations between file and database: read, checked and hashed, and no transaction open yet.

Reading a large file takes much longer than storing what is in it, and others wait for the write
lock meanwhile. So it is read to its end first, into a file beside the database.
"""

from collections.abc import Iterator
from pathlib import Path
from typing import Self

from db.commands.preparing import Prepared

_CONVERSATIONS_AT_ONCE = 500
_BYTES_AT_ONCE = 8 << 20


class Staging:
    """A file of prepared conversations, written once and read as often as needed.

    Attributes:
        repeated: Content hashes of what it holds more than once.
    """

    def __init__(self, path: Path) -> None:
        """Name the file; `open_new` begins to write it."""
        self._path = path
        self._seen: set[bytes] = set()
        self.repeated: set[str] = set()

    def __enter__(self) -> Self:
        """Begin an empty file."""
        self._file = self._path.open("wb")
        return self

    def __exit__(self, *_: object) -> None:
        """Close the file; it can be read from now on."""
        self._file.close()

    def add(self, prepared: Prepared) -> None:
        """Append a conversation."""
        digest = bytes.fromhex(prepared.digest)
        if digest in self._seen:
            self.repeated.add(prepared.digest)
        self._seen.add(digest)
        self._file.write(prepared.to_json() + b"\n")


def staged(path: Path) -> Iterator[list[Prepared]]:
    """Yield what a staging file holds, in lists that fit into memory whatever its size."""
    chunk: list[Prepared] = []
    size_bytes = 0
    with path.open("rb") as file:
        for line in file:
            chunk.append(Prepared.from_json(line))
            size_bytes += len(line)
            if len(chunk) >= _CONVERSATIONS_AT_ONCE or size_bytes >= _BYTES_AT_ONCE:
                yield chunk
                chunk, size_bytes = [], 0
    if chunk:
        yield chunk
