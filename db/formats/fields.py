"""Taking checked values out of JSON data, with errors that name the field."""

import math
from typing import cast

from db.formats.json_values import loads
from db.formats.result import Notes, RowError
from db.scoring import REMEDY, score_problem
from db.text import clean

MAX_DEPTH = 64

JsonObject = dict[str, object]


def join(path: str, key: str) -> str:
    """Return the name of a field inside another one."""
    return f"{path}.{key}" if path else key


def as_object(value: object, path: str) -> JsonObject:
    """Return `value` if it is an object, or text that holds one.

    Raises:
        RowError: if it is not.
    """
    value = unfold(value)
    if not isinstance(value, dict):
        raise RowError(
            f"{describe(value)} stands where an object is expected",
            where=path or "row",
            remedy='Write {"name": value, ...} there.',
        )
    return cast(JsonObject, value)


def as_list(value: object, path: str) -> list[object]:
    """Return `value` if it is a list, or text that holds one.

    Raises:
        RowError: if it is not.
    """
    value = unfold(value)
    if not isinstance(value, list):
        raise RowError(
            f"{describe(value)} stands where a list is expected",
            where=path or "row",
            remedy="Write [...] there.",
        )
    return cast("list[object]", value)


def unfold(value: object) -> object:
    """Return the list or object that a text holds as JSON, as cells of tables do; else `value`."""
    if isinstance(value, str) and value.lstrip()[:1] in ("[", "{"):
        try:
            return loads(value)
        except ValueError:
            return value
    return value


def as_text(value: object, path: str) -> str:
    """Return `value`, cleaned, if it is text.

    Raises:
        RowError: if it is not.
    """
    if not isinstance(value, str):
        raise RowError(
            f"{describe(value)} stands where text is expected",
            where=path,
            remedy="Put the text in quotation marks.",
        )
    return clean(value)


def as_score(value: object, path: str) -> float:
    """Return `value` if it is a score.

    Raises:
        RowError: if it is no finite number in [-1, 1].
    """
    problem = score_problem(value)
    if problem is not None:
        raise RowError(problem, where=path, remedy=REMEDY)
    return float(cast(float, value))


def required(data: JsonObject, key: str, path: str) -> object:
    """Return a field that must be there.

    Raises:
        RowError: if it is not.
    """
    if key not in data:
        raise RowError(
            "the field is missing", where=join(path, key), remedy=f'Add "{key}" to the row.'
        )
    return data[key]


def required_text(data: JsonObject, key: str, path: str) -> str:
    """Return a text that must be there.

    Raises:
        RowError: if it is missing or no text.
    """
    return as_text(required(data, key, path), join(path, key))


def optional_text(data: JsonObject, key: str, path: str, default: str = "") -> str:
    """Return a text that may be missing or null.

    Raises:
        RowError: if it is something else.
    """
    value = data.get(key)
    return default if value is None else as_text(value, join(path, key))


def remark_others(data: JsonObject, known: frozenset[str], path: str, notes: Notes) -> None:
    """Remark the fields that have no place in a conversation."""
    for key in data:
        if key not in known and data[key] is not None:
            name = clean(join(path, key))[:80]
            notes.add(f"the field {name!r} has no place here and was left out")


def check_values(row: object, notes: Notes, max_depth: int = MAX_DEPTH) -> None:
    """Refuse what no conversation can hold, wherever in the row it stands.

    Raises:
        RowError: for numbers that are not finite (NaN, Infinity, 1e999) and for nesting of more
            than `max_depth` levels.
    """
    if _is_sound(row, max_depth):
        return
    waiting: list[tuple[object, str, int]] = [(row, "", 0)]
    while waiting:
        value, path, depth = waiting.pop()
        if isinstance(value, float) and not math.isfinite(value):
            raise RowError(
                "the number is not finite, or too large",
                where=path or "row",
                remedy="Write a finite number, or leave the field out.",
            )
        if isinstance(value, str) and clean(value) != value:
            notes.add("characters that cannot be stored were replaced by U+FFFD")
        if depth > max_depth:
            raise RowError(
                f"the data is nested more than {max_depth} levels deep",
                where=path[:80],
                remedy="Flatten it.",
            )
        if isinstance(value, dict):
            for key, entry in cast(JsonObject, value).items():
                waiting.append((entry, join(path, key), depth + 1))
        elif isinstance(value, list):
            for index, entry in enumerate(cast("list[object]", value)):
                waiting.append((entry, f"{path}[{index}]", depth + 1))


def _is_sound(row: object, max_depth: int) -> bool:
    """Return whether there is nothing to say of a row; names no field, and so is quick."""
    level: list[object] = [row]
    for _ in range(max_depth + 1):
        deeper: list[object] = []
        for value in level:
            if isinstance(value, str):
                if clean(value) is not value:
                    return False
            elif isinstance(value, float):
                if not math.isfinite(value):
                    return False
            elif isinstance(value, dict):
                deeper.extend(cast(JsonObject, value).values())
            elif isinstance(value, list):
                deeper.extend(cast("list[object]", value))
        if not deeper:
            return True
        level = deeper
    return False


def describe(value: object) -> str:
    """Return what kind of JSON value this is, in words."""
    match value:
        case None:
            return "null"
        case bool():
            return "true or false"
        case int() | float():
            return "a number"
        case str():
            return "text"
        case list():
            return "a list"
        case _:
            return "an object"


def is_object_with(value: object, *keys: str) -> bool:
    """Return whether `value` is an object that has all of these keys."""
    if not isinstance(value, dict):
        return False
    data = cast(JsonObject, value)
    return all(key in data for key in keys)
