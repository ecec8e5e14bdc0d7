"""Results as `bench.json` holds them: those of another version are told in words, never misread."""

import inspect
from collections.abc import Callable, Mapping
from typing import Any, ParamSpec, TypeVar

from db.errors import EveryTurnError

P = ParamSpec("P")
T = TypeVar("T")


class OldFiguresError(EveryTurnError):
    """Figures were written by a version of the benchmark that measured something else."""


def read_figures(kind: Callable[P, T], data: Any) -> T:
    """Return the results that `dataclasses.asdict` made `data` of.

    Raises:
        OldFiguresError: if they are not what `kind` holds today.
    """
    expected = inspect.signature(kind).parameters.keys()
    found = data.keys() if isinstance(data, Mapping) else set()
    if expected != found:
        raise OldFiguresError(
            "these figures are of another version of the benchmark; no longer or not yet "
            f"measured: {', '.join(sorted(expected ^ found))}",
            remedy="Measure again: python -m tests.bench",
        )
    return kind(**data)


def in_words(name: str, text: Callable[[], str]) -> str:
    """Return the text that is made of figures; where they are of another version, that instead."""
    try:
        return text()
    except OldFiguresError as error:
        return f"{name}: {error}"
