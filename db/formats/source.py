"""Where a file's bytes come from: a path or memory, unpacked on the way, within limits."""

import gzip
import io
import zipfile
import zlib
from collections.abc import Generator, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import IO

from db.errors import DataError

GZIP_MARK = b"\x1f\x8b"
LARGEST_ROW_BYTES = 64 * 2**20
"""A row may be this long; longer ones are refused, so that memory stays bounded."""
_CHUNK_BYTES = 2**20
HARMLESS_BYTES = 64 * 2**20  # an archive that unpacks to less is never called a bomb
LARGEST_RATIO = 200  # text packs to a tenth; gzip can pack zeros to a thousandth


@dataclass(frozen=True, slots=True)
class Source:
    """A file to import, which can be read again from its beginning.

    Attributes:
        name: What people call it, for messages.
        path: Where it lies, unless `data` holds its bytes.
        size_bytes: Its size as it lies there, packed if it is an archive or a member of one.
        member: Its name in the zip archive that lies there; empty if it is the whole file.
    """

    name: str
    size_bytes: int
    path: Path | None = None
    data: bytes = b""
    member: str = ""

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

    def of_member(self, member: str, packed_bytes: int) -> "Source":
        """Return a file of this zip archive."""
        name = f"{self.name}/{member}"
        return replace(self, name=name, size_bytes=packed_bytes, member=member)

    @contextmanager
    def open(self) -> Generator[IO[bytes]]:
        """Open the bytes as they lie there; those of a member are unpacked as they are read.

        Raises:
            DataError: if the file has gone or cannot be read.
        """
        with ExitStack() as opened:
            file: IO[bytes] = io.BytesIO(self.data)
            if self.path is not None:
                try:
                    file = opened.enter_context(self.path.open("rb"))
                except OSError as error:
                    raise _unreadable(self.path, error) from None
            if self.member:
                with zip_errors(self.name):
                    archive = opened.enter_context(zipfile.ZipFile(file))
                    file = opened.enter_context(archive.open(self.member))
            yield file


@contextmanager
def zip_errors(name: str) -> Generator[None]:
    """Turn what goes wrong while a zip archive is read into an error in words.

    Raises:
        DataError: in place of it.
    """
    try:
        yield
    except (zipfile.BadZipFile, NotImplementedError, KeyError, RuntimeError, ValueError) as error:
        raise DataError(
            f"the zip archive is damaged, or packed in an unusual way ({error})",
            where=name,
            remedy="Fetch or pack it again, or unpack it first.",
        ) from None


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
            self.is_gzip = self._read(file, len(GZIP_MARK)) == GZIP_MARK
            file.seek(0)
            reader = gzip.GzipFile(fileobj=file) if self.is_gzip else file
            while chunk := self._read(reader):
                # a member's place is one in what it unpacks to, which proves nothing
                self.packed_bytes = min(file.tell(), self.source.size_bytes)
                self.unpacked_bytes += len(chunk)
                if self.is_gzip:
                    refuse_bomb(self.source.name, self.unpacked_bytes, self.packed_bytes)
                yield chunk

    def _read(self, reader: IO[bytes] | gzip.GzipFile, size: int = _CHUNK_BYTES) -> bytes:
        try:
            # read1 hands over what is unpacked so far, also where the archive breaks off after it
            return reader.read1(size) if isinstance(reader, gzip.GzipFile) else (reader.read(size))
        except EOFError:
            self.cut_off = True
            return b""
        except (OSError, zlib.error, zipfile.BadZipFile) as error:
            is_packed = self.is_gzip or self.source.member
            what = "the archive is damaged" if is_packed else "the file cannot be read"
            raise DataError(
                f"{what} ({error})", where=self.source.name, remedy="Fetch or pack the file again."
            ) from None


def refuse_bomb(name: str, unpacked_bytes: int, packed_bytes: int) -> None:
    """Refuse what unpacks to far more than conversations would.

    Raises:
        DataError: if it does.
    """
    if unpacked_bytes > max(HARMLESS_BYTES, LARGEST_RATIO * packed_bytes):
        raise DataError(
            f"the archive unpacks to more than {LARGEST_RATIO} times its size, which no "
            "conversations do",
            where=name,
            remedy="If you trust it, unpack it first and import what comes out.",
        )


def _unreadable(path: Path, error: OSError) -> DataError:
    return DataError(
        f"the file cannot be read ({error.strerror})",
        where=str(path),
        remedy="Check its name and its permissions.",
    )
