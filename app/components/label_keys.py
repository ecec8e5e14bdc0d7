"""The keyboard of the label page: one component that hears every key, exactly once, in order.

Streamlit's own shortcuts belong to widgets that a redraw replaces: a key that is pressed at that
moment is lost, numpad digits never arrive, and a text field does not put them to sleep. What
the browser does is in `label_keys.js`.
"""

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from uuid import uuid4

from streamlit.components import v2

from app import state
from app.components.label_scale import Scale
from db.enums import LabelAction
from db.errors import EveryTurnError

WIDGET = "label-keys"

ACTIONS: Mapping[LabelAction, str] = {
    LabelAction.PREVIOUS_TURN: "go:previous_turn",
    LabelAction.NEXT_TURN: "go:next_turn",
    LabelAction.PREVIOUS_CONVERSATION: "go:previous_conversation",
    LabelAction.NEXT_CONVERSATION: "go:next_conversation",
    LabelAction.DONE: "done",
    LabelAction.UNDO: "undo",
    LabelAction.REDO: "redo",
    LabelAction.SKIP: "skip",
    LabelAction.FLAG: "flag",
    LabelAction.NOTE: "go:note",
    LabelAction.HELP: "help",
}

_TEXTS = {
    "awake": "Keys are awake",
    "asleep": "Keys are asleep while you type (Esc wakes them)",
    "waiting": {
        "one": "Not stored yet: 1 key, and the server does not answer. Everything marked saved is "
        "stored.",
        "other": "Not stored yet: {n} keys, and the server does not answer. Everything marked saved "
        "is stored.",
    },
    "cut": "No connection to the server: keys do nothing until it is back. Everything marked saved "
    "is stored.",
    "cut_waiting": {
        "one": "No connection to the server: 1 key waits for it, more of them do nothing until it is "
        "back. Everything marked saved is stored.",
        "other": "No connection to the server: {n} keys wait for it, more of them do nothing until it "
        "is back. Everything marked saved is stored.",
    },
    "dropped": {
        "one": "The key that was pressed without a connection did nothing: see which turn is marked.",
        "other": "The {n} keys that were pressed without a connection did nothing: see which turn is "
        "marked.",
    },
    "left_out": {
        "one": "The key pressed after the one that failed was left out: see which turn is marked.",
        "other": "The {n} keys pressed after the one that failed were left out: see which turn is "
        "marked.",
    },
    "lost": {
        "one": "The server started anew while the last key was on its way: see whether its turn is "
        "scored.",
        "other": "The server started anew while the last {n} keys were on their way: see which turns "
        "are scored.",
    },
}

_STYLE = """
[role=status] { font-size: 0.8rem; color: var(--st-gray-text-color); min-height: 1.2em; }
[role=status].bad { color: var(--st-red-text-color); font-weight: 600; }
"""

_mount = v2.component(
    "everyturn_label_keys",
    html='<div role="status" aria-live="polite"></div>',
    css=_STYLE,
    js=Path(__file__).with_suffix(".js").read_text(encoding="utf-8"),
)


@dataclass(slots=True)
class KeyLog:
    """Which keys of this session have been applied.

    It is changed in place, so that nothing comes between applying a key and noting it.

    Attributes:
        session: Keys that were pressed under another one are not taken.
        applied: The number of the last key that was applied, or left out.
        failure: Why the session was begun anew, until a key has been applied again.
    """

    session: str = field(default_factory=lambda: uuid4().hex)
    applied: int = 0
    failure: EveryTurnError | None = None

    def leave_out(self, number: int, failure: EveryTurnError) -> None:
        """Take no key that was pressed before the browser knows that one of them failed."""
        self.session, self.applied, self.failure = uuid4().hex, number, failure


KEY_LOG: state.Slot[KeyLog] = state.Slot("label.key_log", KeyLog)


def hear_keys(
    *,
    keys: Mapping[LabelAction, str],
    scale: Scale,
    place: str,
    focus: str,
    note: str,
    on_keys: Callable[[], None],
) -> None:
    """Put the keyboard on the page, with a line that says how it is.

    Args:
        keys: The person's key of each action.
        scale: What digits give.
        place: Names the marked turn among all; another one is brought into view.
        focus: Key of its container.
        note: Key of the container with the field for its note; empty if there is none.
        on_keys: Called when keys have arrived; it takes them with `arrived_keys`.
    """
    log = KEY_LOG.get()
    _mount(
        key=WIDGET,
        data={
            "session": log.session,
            "applied": log.applied,
            "failed": log.failure is not None,
            "keys": key_map(keys, scale),
            "place": place,
            "focus": focus,
            "note": note,
            "texts": _TEXTS,
        },
        on_pressed_change=on_keys,
    )


def key_map(keys: Mapping[LabelAction, str], scale: Scale) -> dict[str, str]:
    """Return what each key does; none has two meanings (`db.setting_values.SCORE_KEYS`)."""
    scores = {key: f"score:{value}" for key, value in scale.keys.items()}
    steps = {"+": "nudge:1", "=": "nudge:1", "-": "nudge:-1"} if scale.is_fine else {}
    return {**steps, **scores, **{keys[action]: does for action, does in ACTIONS.items()}}


def arrived_keys() -> list[tuple[int, str]]:
    """Return the (number, action) pairs that were pressed and are not applied yet, in order.

    What the browser sends is not trusted: anything of another form is passed over.
    """
    log = KEY_LOG.get()
    arrived = state.widget_value(WIDGET)
    return unapplied(json.loads(json.dumps(arrived, default=dict)), log)


def unapplied(arrived: Any, log: KeyLog) -> list[tuple[int, str]]:
    """Return the pressed keys of this session that `log` does not know as applied, in order."""
    match arrived:
        case {"pressed": {"session": log.session, "keys": list(keys)}}:
            pass
        case _:
            return []
    found: dict[int, str] = {}
    for key in keys:
        match key:
            case {"number": int(number), "action": str(action)} if number > log.applied:
                found[number] = action
            case _:
                pass
    return sorted(found.items())
