"""How a setting is declared, and how its value is read and checked."""

import dataclasses
import math
from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import Any

from trainer.errors import ConfigError, shortened

MANY = 10**300
"""Whole numbers from here on do not fit into a float."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Limits:
    """The closed range of a numeric field.

    Attributes:
        exclusive: Whether the lower end itself is left out.
        or_zero: Whether 0, which switches something off, is allowed beside the range.
    """

    low: float
    high: float
    exclusive: bool = False
    or_zero: bool = False

    def allow(self, value: float) -> bool:
        """Return whether `value` is finite and within the range."""
        above = value > self.low if self.exclusive else value >= self.low
        return (above and value <= self.high) or (self.or_zero and value == 0)  # NaN is none

    def __str__(self) -> str:
        """Return the range in words."""
        start = "more than" if self.exclusive else "at least"
        words = f"{start} {self.low:g} and at most {self.high:g}"
        return f"0 (off), or {words}" if self.or_zero else words


def setting(
    default: Any, label: str, help: str, *, unit: str = "", limits: Limits | None = None
) -> Any:
    """Declare a field of `TrainConfig` together with what people need to know about it."""
    metadata = {"label": label, "help": help, "unit": unit, "limits": limits}
    return dataclasses.field(default=default, metadata=metadata)


def parse_value(name: str, text: str, kind: type[Any]) -> Any:
    """Return the value that a text stands for.

    Raises:
        ConfigError: if it stands for none of that kind.
    """
    try:
        return kind(text)
    except ValueError:
        raise ConfigError(
            f"{shown(text)} is not {describe(kind)}", where=f"setting {name}"
        ) from None


def known_settings(config: type[Any], data: Mapping[str, Any]) -> dict[str, Any]:
    """Return data as settings of a configuration, a dataclass.

    Raises:
        ConfigError: if it is no JSON object, or holds a key that is no setting.
    """
    if not isinstance(data, Mapping):  # pyright: ignore[reportUnnecessaryIsInstance] - from a file
        raise ConfigError("the configuration is no JSON object", where="configuration")
    names = [field.name for field in dataclasses.fields(config)]
    for key in data:
        if key not in names:
            raise ConfigError(
                f"there is no setting named {shown(key)}",
                where="configuration",
                remedy=f"The settings are: {', '.join(names)}.",
            )
    return dict(data)


def checked_value(field: dataclasses.Field[Any], value: Any, kind: type[Any]) -> Any:
    """Return the value of a setting as its kind.

    Raises:
        ConfigError: if it is of another kind or out of range.
    """
    value = coerce_value(field.name, value, kind)
    limits: Limits | None = field.metadata["limits"]
    if limits is not None and not limits.allow(value):
        raise ConfigError(
            f"{shown(value)} is out of range",
            where=f"setting {field.name}",
            remedy=f"It must be {limits}.",
        )
    return value


def coerce_value(name: str, value: Any, kind: type[Any]) -> Any:
    """Return `value` as `kind`, allowing an int for a float and a string for an enum.

    Raises:
        ConfigError: if it is of another kind.
    """
    if kind is float and isinstance(value, int) and not isinstance(value, bool):
        return float(value) if abs(value) < MANY else math.inf
    if issubclass(kind, StrEnum) and isinstance(value, str):
        return parse_value(name, value, kind)
    if type(value) is not kind:
        raise ConfigError(f"{shown(value)} is not {describe(kind)}", where=f"setting {name}")
    return value


def shown(value: object) -> str:
    """Return a value as an error shows it: short, whatever it is."""
    try:
        return shortened(repr(value))
    except ValueError:  # more digits than Python prints
        return "this number"


def describe(kind: type[Any]) -> str:
    """Return in words what a value of this kind is."""
    if issubclass(kind, StrEnum):
        return "one of " + ", ".join(kind)
    names: dict[type, str] = {int: "a whole number", float: "a number", str: "text"}
    return names[kind]
