"""Timing imports and the plain way by turns, and the memory of an import; no torch here."""

import json
import resource
import statistics
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import psutil
from sqlalchemy import create_engine, insert

from db.engine import Database, open_database
from db.formats import Source
from db.import_reading import SourceFile
from db.importing import import_files
from db.models import ConversationTable, MessageTable, ScoreTable, now
from db.records import ImportFile
from db.settings import Settings
from tests.bench.imports import LARGE, SMALL

MESSAGES_EACH = 10
ROUNDS = 3
_ROWS_AT_ONCE = 1000
_WORDS = ("the", "parcel", "went", "to", "your", "neighbour", "who", "signed", "at", "noon")


def times() -> dict[str, float]:
    """Import and go the plain way by turns, each time into a fresh database."""
    with tempfile.TemporaryDirectory() as work:
        small = write_file(Path(work) / "small.jsonl", SMALL)
        large = write_file(Path(work) / "large.jsonl", LARGE)
        _timed(_import, small, Path(work))  # everything is loaded from here on
        _timed(_plain, small, Path(work))
        rounds = [
            (
                _timed(_import, small, Path(work)),
                _timed(_import, large, Path(work)),
                _timed(_plain, large, Path(work)),
            )
            for _ in range(ROUNDS)
        ]
    return {
        "small_s": statistics.median(small_s for small_s, _, _ in rounds),
        "large_s": statistics.median(large_s for _, large_s, _ in rounds),
        "plain_s": statistics.median(plain_s for _, _, plain_s in rounds),
        "times_as_fast": statistics.median(plain_s / large_s for _, large_s, plain_s in rounds),
    }


def memory() -> dict[str, int]:
    """Import once in this process and return by how much it grew at most."""
    with tempfile.TemporaryDirectory() as work:
        small = write_file(Path(work) / "small.jsonl", 100)
        large = write_file(Path(work) / "large.jsonl", LARGE)
        _timed(_import, small, Path(work))  # code that is loaded once does not count
        before_bytes = psutil.Process().memory_info().rss
        _timed(_import, large, Path(work))
        # In KiB on Linux, in bytes on macOS.
        unit = 1 if sys.platform == "darwin" else 1024
        peak_bytes = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * unit
        return {"growth_bytes": peak_bytes - before_bytes, "file_bytes": large.stat().st_size}


def write_file(path: Path, messages: int) -> Path:
    """Write a file of scored conversations, no two of them alike."""
    with path.open("w", encoding="utf-8") as file:
        for number in range(messages // MESSAGES_EACH):
            said = []
            for turn in range(MESSAGES_EACH // 2):
                words = " ".join(_WORDS[(number + turn + i) % len(_WORDS)] for i in range(30))
                said.append({"role": "user", "content": f"{number}.{turn} {words}?"})
                said.append(
                    {"role": "assistant", "content": f"{words}. {words}", "score": turn / 4}
                )
            file.write(json.dumps({"messages": said}) + "\n")
    return path


def _timed(way: Callable[[Path, Database, Path], None], file: Path, work: Path) -> float:
    with tempfile.TemporaryDirectory(dir=work) as home:
        settings = Settings(home=Path(home), database_url=f"sqlite:///{home}/bench.db")
        database = open_database(settings)
        began_s = time.perf_counter()
        way(file, database, Path(home))
        taken_s = time.perf_counter() - began_s
        database.close()
    return taken_s


def _import(file: Path, database: Database, _home: Path) -> None:
    source = Source.of_path(file)
    report = import_files(database, [SourceFile(ImportFile(name=file.name), source)])
    assert report.conversations > 0
    assert not report.skipped


def _plain(file: Path, database: Database, home: Path) -> None:
    from datasets import disable_progress_bars, load_dataset  # noqa: PLC0415 - for this way only

    disable_progress_bars()
    loaded: Any = load_dataset(
        "json", data_files=str(file), split="train", cache_dir=str(home / "cache")
    )
    engine = create_engine(database.settings.database_url)
    at = now()
    conversation_id = message_id = 0
    with engine.begin() as connection:
        for batch in loaded.iter(batch_size=_ROWS_AT_ONCE):
            conversations, messages, scores = [], [], []
            for said in batch["messages"]:
                conversation_id += 1
                conversations.append(
                    {
                        "id": conversation_id,
                        "content_hash": "",
                        "created_at": at,
                        "updated_at": at,
                    }
                )
                for position, message in enumerate(said):
                    message_id += 1
                    messages.append(
                        {
                            "id": message_id,
                            "conversation_id": conversation_id,
                            "position": position,
                            "role": message["role"],
                            "content": message["content"],
                        }
                    )
                    if message.get("score") is not None:
                        scores.append(
                            {
                                "message_id": message_id,
                                "user_id": 1,
                                "value": message["score"],
                                "created_at": at,
                                "updated_at": at,
                            }
                        )
            connection.execute(insert(ConversationTable), conversations)
            connection.execute(insert(MessageTable), messages)
            connection.execute(insert(ScoreTable), scores)
    engine.dispose()
