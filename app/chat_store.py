"""Where chats are kept: one file each in EVERYTURN_HOME, so that reloads and restarts find them."""

import re
import secrets
from collections.abc import Callable
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from pathlib import Path

from filelock import FileLock

from app.chat_tree import Chat, from_json, to_json
from app.connection import settings
from db.errors import EveryTurnError, NotFoundError, StorageError
from trainer.runs.folder import write_text

CHAT_ID = re.compile(r"[0-9]{1,18}-[0-9a-f]{16}")


@dataclass(frozen=True, slots=True, kw_only=True)
class Kept:
    """An earlier chat, as a list names it."""

    id: str
    title: str
    changed_at: datetime


def read(chat_id: str) -> Chat:
    """Return a chat.

    Raises:
        NotFoundError: if there is none with this id (any more).
        DataError: if its file is damaged.
    """
    try:
        return from_json(_path(chat_id).read_text(encoding="utf-8"))
    except FileNotFoundError:
        raise NotFoundError(
            "there is no such chat (any more)",
            where=f"chat {chat_id}",
            remedy="Begin a new one.",
        ) from None


def create(chat: Chat, *, user_id: int) -> Chat:
    """Keep a chat that was never kept; return it with its id.

    Raises:
        StorageError: if it cannot be written.
    """
    named = replace(chat, id=f"{user_id}-{secrets.token_hex(8)}")
    _write(named)
    return named


def update(chat_id: str, change: Callable[[Chat], Chat]) -> Chat:
    """Change a chat; of two tabs or threads that do so at once none loses what the other did.

    Raises:
        NotFoundError, DataError: as `read`.
        StorageError: if it cannot be written.
    """
    with _locked():
        changed = change(read(chat_id))
        _write(changed)
        return changed


def delete(chat_id: str) -> None:
    """Forget a chat; what was sent to be labelled stays."""
    _path(chat_id).unlink(missing_ok=True)


def recent(user_id: int, *, limit: int) -> list[Kept]:
    """Return a person's latest chats, the newest first; damaged ones are left out."""
    files = sorted(_folder().glob(f"{user_id}-*.json"), key=_changed, reverse=True)
    found: list[Kept] = []
    for file in files[:limit]:
        try:
            chat = read(file.stem)
        except EveryTurnError:
            continue
        title = chat.turns[0].asked if chat.turns else "Nothing said yet"
        at = datetime.fromtimestamp(_changed(file), UTC)
        found.append(Kept(id=chat.id, title=title, changed_at=at))
    return found


def owner_of(chat_id: str) -> int:
    """Return who began a chat."""
    return int(chat_id.partition("-")[0])


def _path(chat_id: str) -> Path:
    if not CHAT_ID.fullmatch(chat_id):
        raise NotFoundError(
            "this address names no chat", where="address", remedy="Begin a new chat."
        )
    return _folder() / f"{chat_id}.json"


def _folder() -> Path:
    return settings().home / "chats"


def _changed(file: Path) -> float:
    try:
        return file.stat().st_mtime
    except FileNotFoundError:  # deleted meanwhile
        return 0.0


def _locked() -> FileLock:
    _folder().mkdir(parents=True, exist_ok=True)
    return FileLock(_folder() / ".lock")


def _write(chat: Chat) -> None:
    try:
        _folder().mkdir(parents=True, exist_ok=True)
        write_text(_path(chat.id), to_json(chat))
    except OSError as error:
        raise StorageError(
            f"the chat cannot be kept ({error.strerror})",
            where=str(_folder()),
            remedy="Make room on that disk.",
        ) from error
