# pyright: basic
# (pyarrow comes without types)
"""Rows of Parquet files, a few at a time."""

import math
import tempfile
from collections.abc import Iterator
from datetime import date, datetime, time, timedelta
from decimal import Decimal
from typing import IO, Any, cast

import pyarrow as pa
import pyarrow.parquet as pq

from db.errors import DataError
from db.formats.rows import Row
from db.formats.source import LARGEST_ROW_BYTES, Unpacked, refuse_bomb

MARK = b"PAR1"
_BATCH_BYTES = 16 * 2**20
_LARGEST_BATCH = 64
_IN_MEMORY_BYTES = 32 * 2**20


def parquet_rows(content: Unpacked) -> Iterator[Row]:
    """Yield the rows as JSON data: times as ISO text, bytes as text, missing values as null.

    The file is read from where it lies; an archive is unpacked to a temporary file first.

    Raises:
        DataError: if it is damaged, or a row is too long.
    """
    if content.source.path is not None and not content.source.member:
        with content.source.open() as file:
            if file.read(len(MARK)) == MARK:
                yield from _rows(file, content)
                return
    with tempfile.SpooledTemporaryFile(max_size=_IN_MEMORY_BYTES) as copy:
        for chunk in content.chunks():
            copy.write(chunk)
        copy.seek(0)
        yield from _rows(copy, content)


def _rows(file: IO[bytes], content: Unpacked) -> Iterator[Row]:
    number = unpacked_bytes = 0
    try:
        table = pq.ParquetFile(file)
        for batch in table.iter_batches(_batch_size(table), use_threads=False):
            batch = _decoded(batch)
            if batch.nbytes > LARGEST_ROW_BYTES * _LARGEST_BATCH:
                raise DataError("a row is too long", where=f"row {number + 1}", remedy="Split it.")
            for value in batch.to_pylist():
                number += 1
                yield Row(number, _plain(value))
            content.unpacked_bytes += batch.nbytes
            unpacked_bytes += batch.nbytes
            refuse_bomb(content.source.name, unpacked_bytes, content.source.size_bytes)
            content.packed_bytes = content.source.size_bytes * number // table.metadata.num_rows
    except (pa.ArrowException, OSError, ValueError, OverflowError) as error:
        words = " ".join(str(error).split())[:200]
        raise DataError(
            f"the Parquet file is damaged or cut off ({words})",
            where=content.source.name if number == 0 else f"after row {number}",
            remedy="Fetch or write it again; its end holds what is needed to read it.",
        ) from None


def _decoded(batch: pa.RecordBatch) -> pa.RecordBatch:
    """Return a batch whose values are all spelled out: a dictionary hides how large they are."""
    columns = [
        column.dictionary_decode() if pa.types.is_dictionary(column.type) else column
        for column in batch.columns
    ]
    return pa.RecordBatch.from_arrays(columns, names=batch.schema.names)


def _batch_size(table: pq.ParquetFile) -> int:
    metadata = table.metadata
    unpacked_bytes = sum(
        metadata.row_group(group).total_byte_size for group in range(metadata.num_row_groups)
    )
    row_bytes = max(unpacked_bytes / max(metadata.num_rows, 1), 1)
    return max(1, min(_LARGEST_BATCH, int(_BATCH_BYTES / row_bytes)))


def _plain(value: Any) -> object:
    """Return a value of Arrow's as JSON data."""
    match value:
        case None | bool() | int() | str():
            return value
        case float():
            return None if math.isnan(value) else value  # pandas' way to write "missing"
        case list():
            return [_plain(entry) for entry in cast("list[Any]", value)]
        case dict():
            entries = cast("dict[str, Any]", value).items()
            return {str(key): _plain(entry) for key, entry in entries}
        case datetime() | date() | time():
            return value.isoformat()
        case Decimal():
            return float(value)
        case bytes():
            return value.decode("utf-8", "replace")
        case timedelta():
            return value.total_seconds()
        case _:
            return str(value)
