"""Bringing together the rows of one conversation or tree, however they are scattered in a file."""

import json
import sqlite3
from collections.abc import Iterable, Iterator
from contextlib import closing

from db.formats.format import Links
from db.formats.rows import Row
from db.records import ImportIssue

MOST_ROWS = 100_000
"""Rows of one conversation or tree; more are refused."""


def gathered(
    rows: Iterable[Row | ImportIssue], links: Links | None
) -> Iterator[list[Row] | ImportIssue]:
    """Yield lists of rows that are linked with each other, in the order of their first rows.

    Rows without links come at once, each by itself. The others wait in a temporary database that
    spills to the disk, so that only the names of their links stay in memory.
    """
    if links is None:
        for row in rows:
            yield row if isinstance(row, ImportIssue) else [row]
        return
    with closing(sqlite3.connect("")) as store:
        store.execute("PRAGMA cache_size = -32768")  # 32 MB, then to a temporary file
        store.execute("CREATE TABLE waiting (number INTEGER PRIMARY KEY, node INTEGER, value TEXT)")
        components = _Components()
        for row in rows:
            if isinstance(row, ImportIssue):
                yield row
                continue
            names = links(row.value)
            if not names:
                yield [row]
                continue
            node = components.join(names)
            text = json.dumps(row.value)
            store.execute("INSERT INTO waiting VALUES (?, ?, ?)", (row.number, node, text))
        yield from _read_back(store, components)


def _read_back(store: sqlite3.Connection, components: "_Components") -> Iterator[list[Row]]:
    store.execute("CREATE TABLE places (node INTEGER PRIMARY KEY, root INTEGER)")
    roots = ((node, components.root(node)) for node in range(components.size))
    store.executemany("INSERT INTO places VALUES (?, ?)", roots)
    store.execute(
        "CREATE TABLE firsts AS SELECT root, min(number) AS first FROM waiting "
        "JOIN places USING (node) GROUP BY root"
    )
    found = store.execute(
        "SELECT first, number, value FROM waiting JOIN places USING (node) "
        "JOIN firsts USING (root) ORDER BY first, number"
    )
    present, unit = None, list[Row]()
    for first, number, text in found:
        if first != present and unit:
            yield unit
            unit = []
        present = first
        if len(unit) <= MOST_ROWS:
            unit.append(Row(number, json.loads(text)))
    if unit:
        yield unit


class _Components:
    """Names that belong together, as a forest whose trees are the conversations."""

    def __init__(self) -> None:
        self._nodes: dict[str, int] = {}
        self._parents: list[int] = []

    @property
    def size(self) -> int:
        """Number of names."""
        return len(self._parents)

    def join(self, names: tuple[str, ...]) -> int:
        """Put these names into one tree; return a node of it."""
        nodes = [self._node(name) for name in names]
        first = self.root(nodes[0])
        for node in nodes[1:]:
            self._parents[self.root(node)] = first
        return nodes[0]

    def root(self, node: int) -> int:
        """Return the root of a node's tree, shortening the way for the next time."""
        parents = self._parents
        while parents[node] != node:
            parents[node] = parents[parents[node]]
            node = parents[node]
        return node

    def _node(self, name: str) -> int:
        node = self._nodes.setdefault(name, len(self._parents))
        if node == len(self._parents):
            self._parents.append(node)
        return node
