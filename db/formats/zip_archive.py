"""The files of a zip archive, read from where they lie: nothing is ever unpacked under their names."""

import zipfile
from pathlib import PurePosixPath

from db.errors import DataError
from db.formats.source import Source, refuse_bomb, zip_errors

_MARKS = (b"PK\x03\x04", b"PK\x05\x06")  # of a file in it; of the end, where there is none
_SUFFIXES = frozenset({".json", ".jsonl", ".ndjson", ".csv", ".tsv", ".parquet", ".gz"})
_MOST_FILES = 200
_IS_ENCRYPTED = 0x1


def is_zip(source: Source) -> bool:
    """Return whether this is a zip archive that was not taken apart yet."""
    if source.member:
        return False
    with source.open() as file:
        return file.read(4) in _MARKS


def zip_files(source: Source) -> list[Source]:
    """Return the files of an archive that may hold conversations, in its order.

    Pictures, pages and whatever else cannot hold any are passed over, like what a file manager adds.

    Raises:
        DataError: if it is damaged or encrypted, holds no such file or too many, or unpacks to far
            more than text would.
    """
    with source.open() as file, zip_errors(source.name), zipfile.ZipFile(file) as archive:
        entries = archive.infolist()
    if any(entry.filename == "[Content_Types].xml" for entry in entries):
        raise _refusal(source, "it is a spreadsheet or document", "Save its table as CSV.")
    chosen = [entry for entry in entries if _may_hold_rows(entry)]
    if not chosen:
        raise _refusal(
            source,
            f"none of its {len(entries)} files is JSON, JSON lines, CSV or Parquet",
            "Unpack it, and import the files that hold conversations.",
        )
    if len(chosen) > _MOST_FILES:
        raise _refusal(
            source,
            f"it holds more than {_MOST_FILES} files of rows",
            "Put the rows of several into one, or import a part of them.",
        )
    names = [entry.filename for entry in chosen]
    if len(set(names)) < len(names):  # by its name only the last of them could be read
        raise _refusal(source, "two of its files have the same name", "Unpack it first.")
    if any(entry.flag_bits & _IS_ENCRYPTED for entry in chosen):
        raise _refusal(source, "it is locked by a password", "Unpack it first.")
    unpacked_bytes = sum(entry.file_size for entry in chosen)
    refuse_bomb(source.name, unpacked_bytes, source.size_bytes)
    return [source.of_member(entry.filename, entry.compress_size) for entry in chosen]


def _may_hold_rows(entry: zipfile.ZipInfo) -> bool:
    path = PurePosixPath(entry.filename)
    is_hidden = any(part.startswith((".", "__MACOSX")) for part in path.parts)
    return not entry.is_dir() and not is_hidden and path.suffix.lower() in _SUFFIXES


def _refusal(source: Source, what: str, remedy: str) -> DataError:
    return DataError(
        f"the zip archive cannot be imported: {what}", where=source.name, remedy=remedy
    )
