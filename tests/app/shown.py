"""What a page shows of people's texts, read out of the component that draws them."""

import json
from typing import Any

from streamlit.testing.v1 import AppTest


def texts(app: AppTest) -> list[str]:
    """Return the text of every message on the page, as a reader sees it."""
    return [_text(tree) for tree in trees(app)]


def trees(app: AppTest) -> list[Any]:
    """Return the trees of elements from which the browser builds the messages."""
    return [
        json.loads(element.proto.json)
        for element in app.get("bidi_component")
        if element.proto.component_name == "everyturn_prose"
    ]


def elements(tree: Any) -> set[str]:
    """Return the names of the elements in a tree."""
    found: set[str] = set()
    for node in tree:
        if isinstance(node, list):
            found |= {node[0]} | elements(node[1])
    return found


def _text(tree: Any) -> str:
    return "".join(node if isinstance(node, str) else _text(node[1]) for node in tree)
