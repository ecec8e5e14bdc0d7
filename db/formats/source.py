"""Where a file's bytes come from: a path or memory, unpacked on the way, within limits."""

import gzip
import io
import zlib
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import BinaryIO

from db.errors import DataError

GZIP_MARK = b"\x1f\x8b"
LARGEST_ROW_BYTES = 64 * 2**20
"""A row may be this long; longer ones are refused, so that memory stays bounded."""
_CHUNK_BYTES = 2**20
_HARMLESS_BYTES = 256 * 2**20  # an archive that unpacks to less is never called a bomb
_LARGEST_RATIO = 200  # text packs to a tenth; gzip can pack zeros to a thousandth


@dataclass(frozen=True, slots=True)
class Source:
    """A file to import, which can be read again from its beginning.

    Attributes:
        name: What people call it, for messages.
        path: Where it lies, unless `data` holds its bytes.
        size_bytes: Its size as it lies there, packed if it is an archive.
    """

    name: str
    size_bytes: int
    path: Path | None = None
    data: bytes = b""

    @classmethod
    def of_path(cls, path: Path, name: str = "") -> "Source":
        """Return the file at a path.

        Raises:
            DataError: if there is none, or it cannot be read.
        """
        try:
            with path.open("rb") as file:
                size_bytes = file.seek(0, io.SEEK_END)
        except OSError as error:
            raise _unreadable(path, error) from None
        return cls(name=name or path.name, size_bytes=size_bytes, path=path)

    @classmethod
    def of_bytes(cls, data: bytes, name: str = "file") -> "Source":
        """Return a file whose bytes are in memory."""
        return cls(name=name, size_bytes=len(data), data=data)

    def open(self) -> BinaryIO:
        """Open the bytes as they lie there.

        Raises:
            DataError: if the file has gone or cannot be read.
        """
        if self.path is None:
            return io.BytesIO(self.data)
        try:
            return self.path.open("rb")
        except OSError as error:
            raise _unreadable(self.path, error) from None


@dataclass(slots=True)
class Unpacked:
    """A source's content as it is read, unpacked where it is a gzip archive.

    Attributes:
        is_gzip: Whether it is one.
        cut_off: Set once the archive has turned out to end in the middle.
        packed_bytes: How much of the source has been read so far.
        unpacked_bytes: How much content that gave.
    """

    source: Source
    is_gzip: bool = False
    cut_off: bool = False
    packed_bytes: int = 0
    unpacked_bytes: int = 0

    def chunks(self) -> Iterator[bytes]:
        """Yield the content in pieces of about 1 MiB.

        An archive that ends too early gives what could be unpacked and sets `cut_off`.

        Raises:
            DataError: if it cannot be read, is damaged, or unpacks to far more than text would.
        """
        with self.source.open() as file:
            self.is_gzip = file.read(2) == GZIP_MARK
            file.seek(0)
            reader = gzip.GzipFile(fileobj=file) if self.is_gzip else file
            while chunk := self._read(reader):
                self.packed_bytes = file.tell()
                self.unpacked_bytes += len(chunk)
                self._check_ratio()
                yield chunk

    def _read(self, reader: BinaryIO | gzip.GzipFile) -> bytes:
        try:
            # read1 hands over what is unpacked so far, also where the archive breaks off after it
            return (
                reader.read1(_CHUNK_BYTES)
                if isinstance(reader, gzip.GzipFile)
                else (reader.read(_CHUNK_BYTES))
            )
        except EOFError:
            self.cut_off = True
            return b""
        except (OSError, zlib.error) as error:
            what = "the gzip archive is damaged" if self.is_gzip else "the file cannot be read"
            raise DataError(
                f"{what} ({error})", where=self.source.name, remedy="Fetch or pack the file again."
            ) from None

    def _check_ratio(self) -> None:
        if not self.is_gzip or self.unpacked_bytes <= _HARMLESS_BYTES:
            return
        if self.unpacked_bytes > _LARGEST_RATIO * max(self.packed_bytes, 1):
            raise DataError(
                f"the archive unpacks to more than {_LARGEST_RATIO} times its size, which no "
                "conversations do",
                where=self.source.name,
                remedy="If you trust it, unpack it first and import what comes out.",
            )


def _unreadable(path: Path, error: OSError) -> DataError:
    return DataError(
        f"the file cannot be read ({error.strerror})",
        where=str(path),
        remedy="Check its name and its permissions.",
    )
