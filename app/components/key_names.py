"""How keys are printed on the controls that they stand for."""

from collections.abc import Mapping

from db.enums import LabelAction

_SIGNS = {
    "ArrowUp": "↑",
    "ArrowDown": "↓",
    "ArrowLeft": "←",
    "ArrowRight": "→",
    "Enter": "⏎",
    "*": "✱",
}


def printed(key: str) -> str:
    """Return a key as it is printed: "ArrowUp" is "↑", "Ctrl+Enter" is "Ctrl ⏎"."""
    if len(key) == 1 or "+" not in key:
        return _SIGNS.get(key, key)
    held, last = (key[:-2], "+") if key.endswith("++") else key.rsplit("+", 1)
    return " ".join((*held.split("+"), _SIGNS.get(last, last)))


def labelled(text: str, key: str) -> str:
    """Return a button's label with its key beside it, as Markdown."""
    return f"{text} :gray-badge[{_escaped(printed(key))}]"


def with_action(text: str, keys: Mapping[LabelAction, str], action: LabelAction) -> str:
    """Return a button's label with the key of its action."""
    return labelled(text, keys[action])


def _escaped(text: str) -> str:
    return "".join(f"\\{sign}" if sign in r"\`*_[]()#+-.!|~<>:$" else sign for sign in text)
