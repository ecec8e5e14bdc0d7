"""People's and tags' names as charts can show them."""

from collections.abc import Sequence

from app.components.format import shortened

_CHARS = 24
_LOOKS_LIKE = str.maketrans({"<": "‹", ">": "›", "&": "＆"})
"""Plotly reads a little HTML in labels; these signs look alike and are none."""


def chart_names(names: Sequence[str]) -> list[str]:
    """Return the names short, without markup, and distinct from each other."""
    short = [shortened(name, _CHARS).translate(_LOOKS_LIKE) for name in names]
    return [
        name if short.count(name) == 1 else f"{name} ({index + 1})"
        for index, name in enumerate(short)
    ]
