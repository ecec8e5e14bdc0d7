"""The password list: a JSON file of argon2 hashes, one for each person who signs in by name.

It holds nothing else. Who a person is and what they may do stands in the database, so a copied
database opens no door, and a copied list none without it.
"""

import json
import os
import unicodedata
from collections.abc import Mapping
from pathlib import Path
from typing import Any, cast

from argon2 import PasswordHasher
from argon2.exceptions import InvalidHashError, VerificationError
from filelock import FileLock

from db.errors import DataError, SettingsError, StorageError
from db.settings import Settings

MIN_PASSWORD_CHARS = 10
MAX_PASSWORD_CHARS = 1000
"""Argon2 reads any length; a limit keeps a stranger from making us hash megabytes."""

_HASHER = PasswordHasher()
_NOBODY = _HASHER.hash("nobody has this password")
"""Verified where there is no such name, so that the answer takes equally long."""


def is_listed(settings: Settings) -> bool:
    """Return whether anybody signs in with a password here."""
    return bool(_read(settings.passwords_file))


def names(settings: Settings) -> list[str]:
    """Return who is on the list, in order."""
    return sorted(_read(settings.passwords_file))


def check_password(password: str) -> None:
    """Refuse a password that is too easily found.

    Raises:
        DataError: saying why.
    """
    if len(password) < MIN_PASSWORD_CHARS:
        problem = f"the password has fewer than {MIN_PASSWORD_CHARS} characters"
    elif len(password) > MAX_PASSWORD_CHARS:
        problem = f"the password has more than {MAX_PASSWORD_CHARS} characters"
    else:
        return
    raise DataError(problem, where="password", remedy="Choose another one.")


def set_password(settings: Settings, name: str, password: str) -> None:
    """Put a person on the list, or give them another password.

    Raises:
        DataError: if the password is too short or too long.
        StorageError: if the list cannot be written.
    """
    check_password(password)
    _change(settings, name, _HASHER.hash(_normal(password)))


def remove_password(settings: Settings, name: str) -> None:
    """Take a person off the list; nothing happens if they are not on it."""
    _change(settings, name, None)


def is_right(settings: Settings, name: str, password: str) -> bool:
    """Return whether this is the person's password; takes equally long for unknown names."""
    if len(password) > MAX_PASSWORD_CHARS:
        return False
    hashed = _read(settings.passwords_file).get(name)
    try:
        matches = _HASHER.verify(hashed or _NOBODY, _normal(password))
    except (VerificationError, InvalidHashError):
        return False
    return matches and hashed is not None


def _normal(password: str) -> str:
    """Return one spelling for what keyboards write in several ways (é as one sign or two)."""
    return unicodedata.normalize("NFKC", password).encode("utf-8", "replace").decode()


def _change(settings: Settings, name: str, hashed: str | None) -> None:
    file = settings.passwords_file
    try:
        with FileLock(file.with_name(f"{file.name}.lock")):
            people = {other: kept for other, kept in _read(file).items() if other != name}
            if hashed is not None:
                people[name] = hashed
            unfinished = file.with_name(f"{file.name}.new")
            unfinished.unlink(missing_ok=True)
            descriptor = os.open(unfinished, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
            with os.fdopen(descriptor, "w", encoding="utf-8") as out:
                json.dump(people, out, indent=1, sort_keys=True)
                out.flush()
                os.fsync(out.fileno())
            unfinished.replace(file)
    except OSError as error:
        raise StorageError(
            f"the password list cannot be written ({error.strerror})",
            where=str(file),
            remedy="Check the permissions of its folder.",
        ) from None


def _read(file: Path) -> Mapping[str, str]:
    """Return name -> hash.

    Raises:
        SettingsError: if the file is there but cannot be read; nobody may come in then.
    """
    try:
        content: Any = json.loads(file.read_text("utf-8"))
    except FileNotFoundError:
        return {}
    except (OSError, ValueError):
        content = None
    people = cast("dict[Any, Any]", content) if isinstance(content, dict) else None
    if people is None or not all(isinstance(hashed, str) for hashed in people.values()):
        raise SettingsError(
            "the password list cannot be read",
            where=str(file),
            remedy="Restore it, or delete it and add everybody again: python -m db user add NAME.",
        )
    return cast("dict[str, str]", people)
