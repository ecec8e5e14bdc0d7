# pyright: basic
# (pyarrow comes without types)
"""A folder that `datasets.load_dataset` reads: Parquet, and a card that says where it is."""

import json
import zipfile
from collections.abc import Iterable, Iterator
from itertools import islice
from pathlib import Path
from typing import IO, Any, BinaryIO

import pyarrow as pa
import pyarrow.parquet as pq

from db.formats.native_writer import native_row
from db.records import Conversation

_SCORE = pa.struct(
    [("rater", pa.string()), ("value", pa.float64()), ("note", pa.string()), ("at", pa.string())]
)
_MESSAGE = pa.struct(
    [
        ("role", pa.string()),
        ("content", pa.string()),
        ("id", pa.int64()),
        ("tool_calls", pa.string()),  # as JSON: their arguments have no common shape
        ("tool_call_id", pa.string()),
        ("scores", pa.list_(_SCORE)),
        ("adjudicated", _SCORE),
        ("model", pa.string()),
        ("run_id", pa.int64()),
        ("token_ids", pa.list_(pa.int64())),
        ("logprobs", pa.list_(pa.float64())),
        ("sampling", pa.string()),  # as JSON
    ]
)
SCHEMA = pa.schema(
    [
        ("id", pa.int64()),
        ("title", pa.string()),
        ("system", pa.string()),
        ("tools", pa.string()),  # as JSON, like tool calls
        ("source", pa.string()),
        ("group", pa.string()),
        ("tags", pa.list_(pa.string())),
        ("messages", pa.list_(_MESSAGE)),
        ("outcomes", pa.list_(_SCORE)),
        ("created_at", pa.string()),
        ("updated_at", pa.string()),
        ("archived", pa.bool_()),
    ]
)
"""The native form as a table."""

PARQUET_NAME = "data/train-00000-of-00001.parquet"
CARD_NAME = "README.md"
CARD = """---
configs:
- config_name: default
  data_files:
  - split: train
    path: data/*.parquet
tags:
- conversations
- everyturn
---
Conversations whose assistant turns are scored, written by EveryTurn. Scores lie between -1 and 1,
one for each rater. `tools`, `tool_calls` and `sampling`
hold JSON.

```python
from datasets import load_dataset

data = load_dataset("path/to/this/folder", split="train")
```
"""
_ROWS_A_GROUP = 500


def write_parquet(conversations: Iterable[Conversation], stream: IO[bytes]) -> None:
    """Write conversations as Parquet, some hundred at a time; nothing is lost."""
    rows = map(_row, conversations)
    with pq.ParquetWriter(stream, SCHEMA) as writer:
        while batch := list(islice(rows, _ROWS_A_GROUP)):
            writer.write_table(pa.Table.from_pylist(batch, schema=SCHEMA))


def write_zip(conversations: Iterable[Conversation], stream: BinaryIO) -> None:
    """Write the folder as a zip archive."""
    with zipfile.ZipFile(stream, "w", zipfile.ZIP_STORED) as archive:  # Parquet is packed already
        archive.writestr(f"dataset/{CARD_NAME}", CARD)
        with archive.open(f"dataset/{PARQUET_NAME}", "w", force_zip64=True) as member:
            write_parquet(conversations, member)


def write_folder(conversations: Iterable[Conversation], folder: Path) -> None:
    """Write the folder itself, creating it if need be."""
    (folder / PARQUET_NAME).parent.mkdir(parents=True, exist_ok=True)
    (folder / CARD_NAME).write_text(CARD, "utf-8")
    with (folder / PARQUET_NAME).open("wb") as stream:
        write_parquet(conversations, stream)


def _row(conversation: Conversation) -> dict[str, Any]:
    row = native_row(conversation)
    row["tools"] = _packed(row.get("tools"))
    row["messages"] = list(_messages(row["messages"]))
    return row


def _messages(entries: list[dict[str, Any]]) -> Iterator[dict[str, Any]]:
    for entry in entries:
        yield entry | {key: _packed(entry.get(key)) for key in ("tool_calls", "sampling")}


def _packed(value: object) -> str | None:
    return None if value is None else json.dumps(value, ensure_ascii=False, allow_nan=False)
