"""JSON lines for readers that take the types of all columns from the first part of a file.

`datasets` does, from the first 10 MB: a tool call or a null that first occurs after that is of no
type that it knows, and loading ends with an error. So the first row of each shape is moved forward.
"""

import json
import tempfile
from collections.abc import Iterable, Iterator
from typing import Any, cast

EARLY_BYTES = 4 * 2**20
"""So much stays in its place; so much more, at most, is moved up behind it."""


def typed_early(rows: Iterable[dict[str, Any]]) -> Iterator[bytes]:
    """Yield rows as lines: in their order, but for late ones of a shape that none before had.

    What comes after those waits in a temporary file; short exports need none.

    Raises:
        ValueError: if a number is not finite.
    """
    known: set[object] = set()
    late: list[bytes] = []
    free_early = free_late = EARLY_BYTES
    with tempfile.SpooledTemporaryFile(max_size=EARLY_BYTES) as rest:
        for row in rows:
            line = json.dumps(row, ensure_ascii=False, allow_nan=False).encode() + b"\n"
            is_new = False
            if free_late:
                shape = _shape(row)
                is_new = shape not in known
                known.add(shape)
            if len(line) <= free_early:
                free_early -= len(line)
                yield line
                continue
            free_early = 0  # what follows shall not overtake
            if is_new and len(line) <= free_late:
                free_late -= len(line)
                late.append(line)
                continue
            if is_new:
                free_late = 0  # so that what is known of shapes stays bounded too
            rest.write(line)
        yield from late
        rest.seek(0)
        yield from rest


def _shape(value: object) -> object:
    """Return what two values have in common that are of one type to a reader."""
    if isinstance(value, dict):
        items = cast("dict[str, object]", value).items()
        return frozenset((key, _shape(entry)) for key, entry in items)
    if isinstance(value, list):
        return (frozenset(_shape(entry) for entry in cast("list[object]", value)),)
    return type(value)
