"""Messages that name their parents: each way from a root to a leaf is a conversation."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from db.enums import Role
from db.formats.draft import Piece, group_key
from db.formats.result import Notes, RowError
from db.records import Message

_MOST_MESSAGES = 500_000
"""Of all conversations of one tree together."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Node:
    """A part of a tree.

    Attributes:
        row: Its row in the file.
        field: Where it stands in the row.
        pieces: What is said in it; may be nothing.
    """

    id: str
    parent: str | None
    row: int
    field: str
    pieces: tuple[Piece, ...]


def unique(nodes: Sequence[Node], notes: Notes) -> dict[str, Node]:
    """Index nodes by id; of several with the same id the first stays."""
    found: dict[str, Node] = {}
    for node in nodes:
        known = found.setdefault(node.id, node)
        if known is node:
            continue
        notes.row = node.row
        if (known.parent, known.pieces) == (node.parent, node.pieces):
            notes.merge(node.field, f"row {known.row} says the same under the same id")
        else:
            notes.skip(
                node.field,
                f"the id {node.id[:40]!r} is that of row {known.row}, which says something else",
                "Give every message an id of its own.",
            )
    return found


def paths(
    nodes: Mapping[str, Node], notes: Notes, left_out: frozenset[str] = frozenset()
) -> Iterator[tuple[Node, ...]]:
    """Yield each way from a root to a leaf, children in the order of the file.

    A node whose parent is not there begins a conversation of its own; what follows a node that
    was left out is left out too, like nodes whose parents form a circle.

    Args:
        nodes: The tree, by id (see `unique`).
        notes: Takes what is remarkable.
        left_out: Ids of nodes that are not wanted.

    Raises:
        RowError: if the conversations would have too many messages.
    """
    children: dict[str | None, list[Node]] = {}
    for node in nodes.values():
        parent = node.parent
        if parent is not None and parent not in nodes and parent not in left_out:
            notes.row = node.row
            notes.flag(
                node.field,
                f"its parent {parent[:40]!r} is not in the file: a conversation begins with it",
                "Import the file that holds the parent as well, if there is one.",
            )
            parent = None
        children.setdefault(parent, []).append(node)
    reached: set[str] = set()
    yield from _walk(children, reached)
    after_left_out = _following(children, left_out)
    for node in nodes.values():
        if node.id in reached:
            continue
        notes.row = node.row
        if node.id in after_left_out:
            notes.skip(node.field, "what it answers was left out", "Nothing needs to be done.")
        else:
            notes.skip(
                node.field,
                "its parents form a circle, so that it has no beginning",
                "Correct the parents.",
            )


def _walk(
    children: Mapping[str | None, list[Node]], reached: set[str]
) -> Iterator[tuple[Node, ...]]:
    way: list[Node] = []
    waiting = [iter(children.get(None, ()))]
    messages = 0
    while waiting:
        node = next(waiting[-1], None)
        if node is None:
            waiting.pop()
            if way:
                way.pop()
            continue
        reached.add(node.id)
        way.append(node)
        following = children.get(node.id, [])
        if not following:
            messages += len(way)
            if messages > _MOST_MESSAGES:
                raise RowError(
                    f"its branches would make more than {_MOST_MESSAGES:,} messages",
                    where=node.field,
                    remedy="Import a part of the tree.",
                )
            yield tuple(way)
        waiting.append(iter(following))


def _following(
    children: Mapping[str | None, list[Node]], beginnings: frozenset[str]
) -> frozenset[str]:
    """Return the ids of all nodes that come after one of the beginnings."""
    found: set[str] = set()
    waiting = [*beginnings]
    while waiting:
        for node in children.get(waiting.pop(), ()):
            if node.id not in found:
                found.add(node.id)
                waiting.append(node.id)
    return frozenset(found)


def pieces_of(way: Sequence[Node]) -> list[Piece]:
    """Return what is said along a way."""
    return [piece for node in way for piece in node.pieces]


def opening_key(pieces: Sequence[Piece]) -> str:
    """Return the key of what is said before the first reply."""
    opening: list[Message] = []
    for piece in pieces:
        if piece.message.role is Role.ASSISTANT:
            break
        opening.append(piece.message)
    return group_key(opening)
