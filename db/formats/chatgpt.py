"""ChatGPT's own export: a tree of messages for each conversation, and the branch that is shown."""

from collections.abc import Iterator, Sequence
from typing import cast

from db.enums import Role
from db.formats.draft import Draft, Piece, draft
from db.formats.fields import (
    JsonObject,
    as_object,
    as_text,
    is_object_with,
    optional_text,
    required,
)
from db.formats.format import Format, each_row
from db.formats.messages import make_message
from db.formats.result import Notes, share
from db.formats.trees import Node, opening_key, paths, pieces_of
from db.records import Message

_HIDDEN = "is_visually_hidden_from_conversation"


def _confidence(rows: Sequence[object]) -> float:
    return share(rows, _fits)


def _fits(row: object) -> bool:
    return is_object_with(row, "mapping") and isinstance(cast(JsonObject, row)["mapping"], dict)


def _parse_row(row: object, notes: Notes) -> Iterator[Draft]:
    data = as_object(row, "")
    mapping = as_object(required(data, "mapping", ""), "mapping")
    number = notes.row
    nodes = {id: _node(id, value, number, notes) for id, value in mapping.items()}
    ways = [way for way in paths(nodes, notes) if pieces_of(way)]
    notes.row = number
    current = optional_text(data, "current_node", "")
    shown = [way for way in ways if any(node.id == current for node in way)]
    if not shown and current:
        notes.flag(
            "current_node", "it is not in the mapping: no branch counts as the shown one", ""
        )
    active = shown[0] if shown else ways[-1] if ways else ()
    ordered = [active, *(way for way in ways if way is not active)]
    if len(ways) > 1:
        notes.add(
            f"{len(ways) - 1} side branch{'es' if len(ways) > 2 else ''} of the conversation came "
            "in as conversations of their own, in the same group",
            "mapping",
            "Archive them if only the shown branch matters.",
        )
    title = optional_text(data, "title", "")
    for way in ordered:
        said = _until(way, current) if way is active else way
        pieces = pieces_of(said)
        yield draft(
            pieces,
            path="mapping",
            title=title,
            group=opening_key(pieces) if len(ways) > 1 else "",
        )


def _until(way: Sequence[Node], current: str) -> Sequence[Node]:
    """Cut the shown branch at its current node."""
    ids = [node.id for node in way]
    return way[: ids.index(current) + 1] if current in ids else way


def _node(id: str, value: object, row: int, notes: Notes) -> Node:
    path = f"mapping.{id[:40]}"
    data = as_object(value, path)
    parent = optional_text(data, "parent", path) or None
    message = data.get("message")
    piece = None if message is None else _piece(as_object(message, f"{path}.message"), path, notes)
    return Node(id=id, parent=parent, row=row, field=path, pieces=() if piece is None else (piece,))


def _piece(data: JsonObject, path: str, notes: Notes) -> Piece | None:
    """Read a message; empty system messages and hidden ones are not part of what was said."""
    author = as_object(required(data, "author", path), f"{path}.author")
    content = as_object(required(data, "content", path), f"{path}.content")
    text = _text(content, f"{path}.content", notes)
    role_name = as_text(required(author, "role", path), f"{path}.author.role")
    metadata = data.get("metadata")
    hidden = is_object_with(metadata, _HIDDEN) and cast(JsonObject, metadata)[_HIDDEN] is True
    if hidden or not text:
        return None
    message = make_message(role_name, text, f"{path}.author.role", notes)
    if message.role is Role.ASSISTANT:
        message = Message(role=message.role, content=message.content, model=_model(metadata))
    return Piece(message)


def _model(metadata: object) -> str | None:
    slug = cast(JsonObject, metadata).get("model_slug") if isinstance(metadata, dict) else None
    return slug if isinstance(slug, str) and slug else None


def _text(content: JsonObject, path: str, notes: Notes) -> str:
    parts = content.get("parts")
    if not isinstance(parts, list):
        text = content.get("text")
        return as_text(text, f"{path}.text") if isinstance(text, str) else ""
    texts: list[str] = []
    for part in cast("list[object]", parts):
        if isinstance(part, str):
            texts.append(as_text(part, path))
        elif is_object_with(part, "text") and isinstance(cast(JsonObject, part)["text"], str):
            texts.append(as_text(cast(JsonObject, part)["text"], path))
        elif part is not None:
            notes.add("a picture, sound or file was left out of a message", path)
    return "\n".join(text for text in texts if text)


CHATGPT = Format(
    name="chatgpt",
    title="ChatGPT export",
    about=(
        "`conversations.json` of a ChatGPT export: nodes in `mapping`, the branch that ends at "
        "`current_node` is the conversation. Branches beside it (edited questions, regenerated "
        "replies) come in as conversations of their own in the same group, and are reported. "
        "Pictures, sound and files are left out of messages, and reported. Empty and hidden "
        "messages are no turns."
    ),
    example=(
        '[{"title": "Colours", "current_node": "c", "mapping": {"a": {"id": "a", "message": null, '
        '"parent": null, "children": ["b"]}, "b": {"id": "b", "message": {"author": {"role": '
        '"user"}, "content": {"content_type": "text", "parts": ["Name a colour."]}}, "parent": '
        '"a", "children": ["c"]}, "c": {"id": "c", "message": {"author": {"role": "assistant"}, '
        '"content": {"content_type": "text", "parts": ["Blue."]}}, "parent": "b", "children": []}}}]\n'
    ),
    confidence=_confidence,
    parse=each_row(_parse_row),
)
