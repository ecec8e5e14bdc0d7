"""Where a rater is, and what every key and button of the label page does.

A key and the button that names it run the same action. An action is in the database when it
returns; only then does the page say "saved".
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace

from app import data
from app.components.label_queue import Queue
from app.components.label_reading import require_as_read
from app.components.label_scale import Scale, nudged
from app.components.label_told import undone
from db import commands
from db.enums import ReviewState
from db.errors import DataError
from db.records import OwnTurn, User


@dataclass(frozen=True, slots=True)
class Desk:
    """Where a rater is.

    Attributes:
        turn: Assistant turn that keys score, counted from 0; None for the first without a score.
        notice: What the last action has to tell, as Markdown.
    """

    user: User
    queue: Queue
    scale: Scale
    conversation_id: int
    turn: int | None
    notice: str = ""
    shows_help: bool = False

    def turns(self) -> tuple[OwnTurn, ...]:
        """Return the conversation's assistant turns with this person's scores."""
        return data.own_turns(user_id=self.user.id, conversation_id=self.conversation_id)

    def at(self, turns: tuple[OwnTurn, ...]) -> int:
        """Return the marked turn as a number."""
        if self.turn is not None and 0 <= self.turn < len(turns):
            return self.turn
        return first_unscored(turns)

    def moved(self, turns: tuple[OwnTurn, ...], to: int) -> "Desk":
        """Mark another turn, or stay at the ends."""
        return replace(self, turn=max(0, min(to, len(turns) - 1)))

    def opened(self, conversation_id: int | None, otherwise: str) -> "Desk":
        """Go to another conversation; say something where there is none."""
        if conversation_id is None:
            return replace(self, notice=otherwise)
        return replace(self, conversation_id=conversation_id, turn=None)


def first_unscored(turns: tuple[OwnTurn, ...]) -> int:
    """Return the first turn without an own score, 0 if all have one."""
    return next((number for number, turn in enumerate(turns) if turn.value is None), 0)


def perform(desk: Desk, action: str) -> Desk:
    """Do one thing; return where that leads.

    Raises:
        DataError: if there is no such action.
        EveryTurnError: if it cannot be done; nothing has changed then.
    """
    name, _, argument = action.partition(":")
    does = _ACTIONS.get(name)
    if does is None:
        raise DataError(f"there is no action {action[:40]!r}", where="label page")
    return does(replace(desk, notice=""), argument)


def _score(desk: Desk, argument: str) -> Desk:
    value = next(
        (choice.value for choice in desk.scale.choices if str(choice.value) == argument), None
    )
    if value is None:
        raise DataError(
            f"{argument[:40]!r} is not on the scale",
            where="score",
            remedy="Load the page again: the scale may have been changed.",
        )
    turns = desk.turns()
    if not turns:
        return replace(desk, notice="This conversation has no turn to score.")
    at = desk.at(turns)
    require_as_read(desk.conversation_id)
    data.write(
        commands.set_score, user_id=desk.user.id, message_id=turns[at].message_id, value=value
    )
    return desk.moved(turns, at + 1)


def _nudge(desk: Desk, argument: str) -> Desk:
    """Change a score by a step: the marked turn's or, where a digit moved on, the one it gave."""
    turns = desk.turns()
    at = desk.at(turns)
    turn = next(
        (turn for turn in turns[max(0, at - 1) : at + 1][::-1] if turn.value is not None), None
    )
    if turn is None or turn.value is None:
        return replace(desk, notice="The marked turn has no score to change by 0.05 yet.")
    require_as_read(desk.conversation_id)
    value = nudged(turn.value, 1 if argument == "1" else -1, low=desk.scale.low)
    data.write(commands.set_score, user_id=desk.user.id, message_id=turn.message_id, value=value)
    return desk.moved(turns, at)


def _clear(desk: Desk, argument: str) -> Desk:
    turns = desk.turns()
    number = int(argument) if argument.isdecimal() else desk.at(turns)
    require_as_read(desk.conversation_id)
    if number < len(turns):
        message_id = turns[number].message_id
        data.write(commands.set_score, user_id=desk.user.id, message_id=message_id, value=None)
    return desk.moved(turns, number)


def _turn(desk: Desk, argument: str) -> Desk:
    turns = desk.turns()
    return desk.moved(turns, int(argument)) if argument.isdecimal() and len(argument) < 9 else desk


def _go(desk: Desk, argument: str) -> Desk:
    match argument:
        case "previous_turn" | "next_turn":
            turns = desk.turns()
            return desk.moved(turns, desk.at(turns) + (1 if argument == "next_turn" else -1))
        case "previous_conversation":
            there = desk.queue.neighbour(desk.conversation_id, -1)
            return desk.opened(there, "This is the first conversation of the queue.")
        case "next_conversation":
            there = desk.queue.neighbour(desk.conversation_id, 1)
            return desk.opened(there, "This is the last conversation of the queue.")
        case "unscored":
            return _next_unscored(desk)
        case _:
            return desk


def _next_unscored(desk: Desk) -> Desk:
    """Mark the next turn without a score, here or in a later conversation of the queue."""
    turns = desk.turns()
    at = desk.at(turns)
    numbers = [*range(at + 1, len(turns)), *range(at)]
    here = next((number for number in numbers if turns[number].value is None), None)
    if here is not None:
        return desk.moved(turns, here)
    place = desk.queue.places.get(desk.conversation_id, -1)
    ids = (*desk.queue.ids[place + 1 :], *desk.queue.ids[: max(place, 0)])
    found = data.next_unscored(user_id=desk.user.id, ids=ids)
    return desk.opened(
        None if found is None else found[0], "Every turn of this queue has your score."
    )


def _review(stance: ReviewState) -> Callable[[Desk, str], Desk]:
    def does(desk: Desk, argument: str) -> Desk:
        del argument
        _set_review(desk, stance)
        left = sum(turn.value is None for turn in desk.turns())
        notice = ""
        if stance is ReviewState.DONE and left:
            notice = f"Marked done with {left} of its turns not scored."
        onward = desk.queue.onward(desk.conversation_id)
        ended = f"{notice} That was the last one of this queue.".strip()
        return replace(desk.opened(onward, ended), notice=notice if onward else ended)

    return does


def _flag(desk: Desk, argument: str) -> Desk:
    """Flag ("on") or no longer ("off"), as the button said; the key turns it over."""
    stance = data.review_state(user_id=desk.user.id, conversation_id=desk.conversation_id)
    flags = argument == "on" or (not argument and stance is not ReviewState.FLAGGED)
    _set_review(desk, ReviewState.FLAGGED if flags else ReviewState.OPEN)
    return desk


def _reopen(desk: Desk, argument: str) -> Desk:
    del argument
    _set_review(desk, ReviewState.OPEN)
    return desk


def _set_review(desk: Desk, stance: ReviewState) -> None:
    data.write(
        commands.set_review,
        user_id=desk.user.id,
        conversation_id=desk.conversation_id,
        state=stance,
    )


def _remaining(desk: Desk, argument: str) -> Desk:
    choice = next((c for c in desk.scale.choices if str(c.value) == argument), None)
    if choice is None:
        raise DataError(f"{argument[:40]!r} is not on the scale", where="score")
    require_as_read(desk.conversation_id)
    count = data.write(
        commands.score_remaining,
        user_id=desk.user.id,
        conversation_id=desk.conversation_id,
        value=choice.value,
    )
    return replace(desk, notice=f"{count} turns scored {choice.label}. One undo takes it back.")


def _undo(desk: Desk, argument: str) -> Desk:
    del argument
    return _reversed(desk, commands.undo, "There is nothing to undo.")


def _redo(desk: Desk, argument: str) -> Desk:
    del argument
    return _reversed(desk, commands.redo, "There is nothing to redo.")


def _reversed(desk: Desk, command: Callable[..., tuple], nothing: str) -> Desk:  # type: ignore[type-arg]
    """Undo or redo, and show the place where it happened."""
    events = data.write(command, user_id=desk.user.id)
    if not events:
        return replace(desk, notice=nothing)
    event = events[-1]
    desk = replace(desk, conversation_id=event.conversation_id, turn=None)
    turns = desk.turns()
    numbers = [turn.message_id for turn in turns]
    if event.message_id in numbers:
        desk = replace(desk, turn=numbers.index(event.message_id))
    return replace(desk, notice=undone(events, numbers, desk.scale))


def _help(desk: Desk, argument: str) -> Desk:
    del argument
    return replace(desk, shows_help=True)


_ACTIONS: Mapping[str, Callable[[Desk, str], Desk]] = {
    "score": _score,
    "nudge": _nudge,
    "clear": _clear,
    "turn": _turn,
    "go": _go,
    "done": _review(ReviewState.DONE),
    "skip": _review(ReviewState.SKIPPED),
    "flag": _flag,
    "reopen": _reopen,
    "remaining": _remaining,
    "undo": _undo,
    "redo": _redo,
    "help": _help,
}
