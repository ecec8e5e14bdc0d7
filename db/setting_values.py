"""What the settings may hold, and how they are kept as JSON.

What is stored was checked when it was written. So reading is lenient: a value that this version
does not know counts as not set, rather than keeping everybody out.
"""

import dataclasses
import re
from collections.abc import Mapping
from enum import StrEnum
from typing import Any, cast, get_type_hints

from db.enums import LabelAction
from db.errors import DataError
from db.records.settings import DEFAULT_KEYS, ProjectSettings, UserSettings
from db.web_address import address_problem

RANGES: Mapping[str, tuple[int, int]] = {"target_raters": (1, 100), "session_hours": (1, 24 * 30)}
"""The least and the greatest value of each whole number."""

MAX_TEXT_CHARS = 50_000

SCORE_KEYS = frozenset("0123456789A*+-=")
"""The keys that give or change a score, on one scale or another; no other action may have them."""

_KEY = re.compile(
    r"(Ctrl\+)?(Alt\+)?(Shift\+)?([A-Z]|Enter|Arrow(Up|Down|Left|Right)|Page(Up|Down)|Home|End)"
    r"|(Ctrl\+|Alt\+)?[!-/:-@\[-`{-~]"
)
"""A key by the name that the browser's event gives it, as `label_keys.js` puts it together."""

_TYPES = get_type_hints(ProjectSettings)


def project_to_json(settings: ProjectSettings) -> dict[str, Any]:
    """Return the settings as a JSON object."""
    return dataclasses.asdict(settings)


def project_from_json(content: Mapping[str, Any]) -> ProjectSettings:
    """Return the settings that a stored object holds; what is missing or unknown is the default."""
    values: dict[str, Any] = {}
    for name, kind in _TYPES.items():
        if name in content and _problem(name, content[name]) is None:
            value = content[name]
            values[name] = kind(value) if issubclass(kind, StrEnum) else value
    return ProjectSettings(**values)


def changed_project(settings: ProjectSettings, changes: Mapping[str, Any]) -> ProjectSettings:
    """Return the settings with some of them changed.

    Raises:
        DataError: if a name or a value is none; the first one is told.
    """
    for name, value in changes.items():
        problem = "there is no such setting" if name not in _TYPES else _problem(name, value)
        if problem is not None:
            raise DataError(
                problem, where=f"setting {name}", remedy="Change it and save the settings again."
            )
    return project_from_json({**project_to_json(settings), **changes})


def keys_to_json(keys: Mapping[LabelAction, str]) -> dict[str, Any]:
    """Return one person's keys as a JSON object; only those that differ from the defaults.

    Raises:
        DataError: if a key is empty, gives a score, or is given to two actions.
    """
    whole = {**DEFAULT_KEYS, **keys}
    for action, key in whole.items():
        if not _may_act(key):
            raise DataError(
                f"{key[:40]} gives or changes a score"
                if key in SCORE_KEYS
                else "there is no such key",
                where=f"the key for {action.value.replace('_', ' ')}",
                remedy="Choose another key.",
            )
        if [other.casefold() for other in whole.values()].count(key.casefold()) > 1:
            raise DataError(
                f"{key} is given to two actions",
                where=f"the key for {action.value.replace('_', ' ')}",
                remedy="Give each action a key of its own.",
            )
    return {
        "keys": {action.value: key for action, key in whole.items() if key != DEFAULT_KEYS[action]}
    }


def user_from_json(content: Mapping[str, Any]) -> UserSettings:
    """Return the settings that a stored object holds; what is missing or unknown is the default."""
    stored = content.get("keys")
    changed = cast("dict[str, Any]", stored) if isinstance(stored, dict) else {}
    keys = {action: str(changed.get(action.value, "")) for action in LabelAction}
    return UserSettings(
        keys={
            action: key if _may_act(key) else DEFAULT_KEYS[action] for action, key in keys.items()
        }
    )


def _may_act(key: str) -> bool:
    return _KEY.fullmatch(key) is not None and key not in SCORE_KEYS


def _problem(name: str, value: Any) -> str | None:
    """Return in words why a setting cannot have this value; None if it can."""
    kind = _TYPES[name]
    if issubclass(kind, StrEnum):
        members = list(kind)
        return None if value in members else f"it must be one of {', '.join(members)}"
    if type(value) is not kind:
        return f"it must be of the kind {kind.__name__}"
    if name in RANGES:
        low, high = RANGES[name]
        return None if low <= value <= high else f"it must be from {low} to {high}"
    if isinstance(value, str) and len(value) > MAX_TEXT_CHARS:
        return f"it is longer than {MAX_TEXT_CHARS:,} characters"
    if name in ("webhook_url", "judge_url") and value:
        return address_problem(value, with_query=name == "webhook_url") or None
    return None
