"""OpenAssistant's trees: one message a line with its parent, or one whole tree a line."""

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import cast

from db.enums import Role
from db.formats.draft import Draft, Piece, RawScore, draft
from db.formats.fields import (
    JsonObject,
    as_list,
    as_object,
    is_object_with,
    optional_text,
    required,
    required_text,
)
from db.formats.format import Format
from db.formats.messages import make_message
from db.formats.result import Notes, RowError, share
from db.formats.rows import Row
from db.formats.scales import Scale, ScaleKind
from db.formats.trees import Node, opening_key, paths, pieces_of, unique

_LABELS = ("quality", "helpfulness", "creativity")
_MAX_DEPTH = 400  # of nested replies: two levels a message


def _confidence(rows: Sequence[object]) -> float:
    return share(
        rows, lambda row: _is_tree(row) or is_object_with(row, "message_id", "text", "role")
    )


def _is_tree(row: object) -> bool:
    return is_object_with(row, "prompt") and isinstance(cast(JsonObject, row)["prompt"], dict)


def _links(row: object) -> tuple[str, ...]:
    """Messages of one tree belong together: by the tree's id, or by their parents."""
    if not isinstance(row, dict) or _is_tree(cast(object, row)):
        return ()
    data = cast(JsonObject, row)
    tree = data.get("message_tree_id")
    if isinstance(tree, str) and tree:
        return (f"tree {tree}",)
    ids = (data.get("message_id"), data.get("parent_id"))
    return tuple(f"message {id}" for id in ids if isinstance(id, str) and id)


def _parse(rows: Sequence[Row], notes: Notes) -> Iterator[Draft]:
    found: list[tuple[Node, JsonObject]] = []
    left_out: set[str] = set()
    for row in rows:
        notes.row = row.number
        data = as_object(row.value, "")
        if _is_tree(data):
            found += _nodes_of_tree(data["prompt"], row.number, notes)
            continue
        try:
            found.append((_node(data, row.number, "", _parent(data), notes), data))
        except RowError as error:
            notes.skip(error.where, f"{error.what}; what follows it is left out", error.remedy)
            if isinstance(data.get("message_id"), str):
                left_out.add(cast(str, data["message_id"]))
    left_out |= {node.id for node, data in found if _is_unwanted(node, data, notes)}
    nodes = unique([node for node, _ in found if node.id not in left_out], notes)
    nodes = _ranked(nodes, found)
    ways = list(paths(nodes, notes, frozenset(left_out)))
    for way in ways:
        notes.row = way[0].row
        pieces = pieces_of(way)
        yield draft(pieces, path="text", group=opening_key(pieces) if len(ways) > 1 else "")


def _parent(data: JsonObject) -> str | None:
    return optional_text(data, "parent_id", "") or None


def _nodes_of_tree(root: object, row: int, notes: Notes) -> Iterator[tuple[Node, JsonObject]]:
    waiting: list[tuple[object, str, str | None]] = [(root, "prompt", None)]
    while waiting:
        value, path, parent = waiting.pop()
        data = as_object(value, path)
        node = _node(data, row, path, parent, notes)
        yield node, data
        field = f"{path}.replies"
        replies = as_list(data.get("replies") or [], field)
        waiting += [
            (reply, f"{field}[{index}]", node.id)
            for index, reply in reversed([*enumerate(replies)])
        ]


def _node(data: JsonObject, row: int, path: str, parent: str | None, notes: Notes) -> Node:
    # a reply inside a tree may come without an id; where it stands tells it apart
    given = optional_text(data, "message_id", path)
    role = required_text(data, "role", path)
    message = make_message(role, required_text(data, "text", path), f"{path}.role", notes)
    if message.role is Role.ASSISTANT:
        message = replace(message, model=optional_text(data, "model_name", path) or None)
    if not given and not path:
        required(data, "message_id", path)
    return Node(
        id=given or f"{row} {path}",
        parent=parent,
        row=row,
        field=path or "message_id",
        pieces=(Piece(message, tuple(_labels(data, path))),),
    )


def _labels(data: JsonObject, path: str) -> Iterator[RawScore]:
    """Read labels {"quality": {"value": 0.8}} or {"name": [...], "value": [...]}."""
    labels = data.get("labels")
    role = str(data.get("role")).lower()
    if not isinstance(labels, dict) or role in ("prompter", "user", "human"):
        return
    table = cast(JsonObject, labels)
    field = f"{path}.labels" if path else "labels"
    names, values = table.get("name"), table.get("value")
    if isinstance(names, list) and isinstance(values, list):
        pairs = zip(cast("list[object]", names), cast("list[object]", values), strict=False)
        table = {str(name): {"value": value} for name, value in pairs}
    for name in _LABELS:
        entry = table.get(name)
        if is_object_with(entry, "value"):
            value = cast(JsonObject, entry)["value"]
            yield RawScore(name=name, value=value, field=f"{field}.{name}")


def _is_unwanted(node: Node, data: JsonObject, notes: Notes) -> bool:
    notes.row = node.row
    if data.get("deleted") is True:
        notes.skip(node.field, "it was deleted, and so is what follows it", "Nothing to be done.")
        return True
    if data.get("review_result") is False:
        notes.skip(node.field, "reviewers rejected it, and what follows it", "Nothing to be done.")
        return True
    return False


def _ranked(nodes: dict[str, Node], found: Sequence[tuple[Node, JsonObject]]) -> dict[str, Node]:
    """Add the ranks among siblings, left out ones too; two with the same rank are in doubt."""
    first: dict[str, tuple[Node, object]] = {}
    for node, data in found:
        first.setdefault(node.id, (node, data.get("rank")))
    ranks: dict[str | None, Counter[str]] = {}
    for node, rank in first.values():
        if rank is not None:
            ranks.setdefault(node.parent, Counter())[str(rank)] += 1
    return {id: _with_rank(node, first[id][1], ranks) for id, node in nodes.items()}


def _with_rank(node: Node, rank: object, ranks: dict[str | None, Counter[str]]) -> Node:
    (piece,) = node.pieces
    if rank is None or piece.message.role is not Role.ASSISTANT:
        return node
    field = "rank" if node.field == "message_id" else f"{node.field}.rank"
    among = ranks[node.parent]
    doubt = f"two replies have the rank {str(rank)[:20]}" if among[str(rank)] > 1 else ""
    raw = RawScore(name="rank", value=rank, field=field, siblings=among.total(), doubt=doubt)
    return replace(node, pieces=(replace(piece, scores=(raw, *piece.scores)),))


OASST = Format(
    name="oasst",
    title="OpenAssistant trees",
    about=(
        "Messages with `message_id`, `parent_id`, `text` and `role`, one a line in any order, or "
        "whole trees (`prompt` with nested `replies`). Each way from the root to a leaf becomes a "
        "conversation; those of one tree share a group. `rank` among the replies to one message "
        "becomes the score: the best (0) 1, the last 0. `labels` can be switched on instead. "
        "Deleted and rejected messages are left out with what follows them, and reported; so are "
        "messages whose parents form a circle. A message whose parent is missing begins a "
        "conversation. Of two messages with one id the first stays."
    ),
    example=(
        '{"message_id": "1", "parent_id": null, "text": "Name a colour.", "role": "prompter"}\n'
        '{"message_id": "2", "parent_id": "1", "text": "Blue.", "role": "assistant", "rank": 0}\n'
        '{"message_id": "3", "parent_id": "1", "text": "No.", "role": "assistant", "rank": 1}\n'
    ),
    confidence=_confidence,
    parse=_parse,
    links=_links,
    scales=(
        Scale(name="rank", kind=ScaleKind.RANK, low=1.0, high=0.0, to_low=0.0, to_high=1.0),
        *(Scale(name=n, low=0.0, high=1.0, to_low=0.0, to_high=1.0, used=False) for n in _LABELS),
    ),
    max_depth=_MAX_DEPTH,
)
