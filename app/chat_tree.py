"""A chat as plain data: a tree of turns, each with the replies of every model that takes part.

A turn that is asked anew becomes a branch beside the old one; nothing is lost. What is shown is one
path through the tree, from its first turn to `leaf`.
"""

import re
import secrets
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from enum import StrEnum
from random import SystemRandom
from typing import Any

from pydantic import TypeAdapter, ValidationError

from db.enums import Role
from db.errors import DataError
from db.formats import parse
from db.records import Conversation
from trainer.data.rendering import chat_messages

BASE = "base"
"""The name of the model without any adapter, as the endpoint calls it; adapters are `run-7`."""

_RUN = re.compile(r"run-([0-9]{1,18})")


class Ending(StrEnum):
    """Why a reply ends where it ends."""

    STOP = "stop"
    """The model ended it."""
    LENGTH = "length"
    """The most tokens that were allowed."""
    STOPPED = "stopped"
    """A person stopped it, or nobody looked any more."""
    FAILED = "failed"
    """Something broke; `problem` says what."""


class Vote(StrEnum):
    """What a person said of two replies whose models they did not know."""

    FIRST = "first"
    SECOND = "second"
    SAME = "same"
    BAD = "bad"


@dataclass(frozen=True, slots=True, kw_only=True)
class Sampling:
    """How replies are drawn.

    Attributes:
        temperature: 0 takes the likeliest token each time; 1 is the model's own policy.
        top_p: Only the fewest likeliest tokens that reach this probability.
        top_k: Only so many of the likeliest tokens; 0 for all.
        max_tokens: Most tokens of a reply.
        seed: Same seed, same reply; None for another one each time.
    """

    temperature: float = 0.7
    top_p: float = 1.0
    top_k: int = 0
    max_tokens: int = 256
    seed: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Reply:
    """What one model answered.

    Attributes:
        lane: The model, `base` or `run-7`.
        token_ids: The sampled tokens.
        logprobs: The log-probability of each under the model without temperature.
        fingerprint: Which weights it were.
        prompt_mark: Tells what the model saw before it from other prompts.
        sampling: How it was drawn; the seed is the one that was used.
        seconds: From the question to the last token.
        first_s: From the question to the first token.
    """

    lane: str
    text: str
    base_model: str
    ending: Ending
    sampling: Sampling
    token_ids: tuple[int, ...] = ()
    logprobs: tuple[float, ...] = ()
    fingerprint: str = ""
    prompt_mark: str = ""
    seconds: float = 0.0
    first_s: float = 0.0
    problem: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Turn:
    """One question and its replies.

    Attributes:
        parent: The turn before it; None for the first.
        order: The models in the order of their columns; shuffled where their names are hidden.
        replies: All replies, in the order they came; a model may have answered several times.
        shown: For some models which of their replies is meant, by its place among them; others
            mean their latest.
        blind: Whether names are hidden until the vote.
        conversations: Where a vote stored both replies, in their order.
    """

    id: str
    asked: str
    order: tuple[str, ...]
    parent: str | None = None
    replies: tuple[Reply, ...] = ()
    shown: dict[str, int] = field(default_factory=dict)
    blind: bool = False
    vote: Vote | None = None
    conversations: tuple[int, ...] = ()

    def replies_of(self, lane: str) -> tuple[Reply, ...]:
        """Return one model's replies, oldest first."""
        return tuple(reply for reply in self.replies if reply.lane == lane)

    def reply(self, lane: str) -> Reply | None:
        """Return the reply of a model that is meant; None if it has not answered."""
        own = self.replies_of(lane)
        return own[min(self.shown.get(lane, len(own) - 1), len(own) - 1)] if own else None

    def answer(self, lane: str) -> Reply | None:
        """Return the reply that a model goes on from.

        After a vote all models go on from the better reply, so that the next two share a prompt
        again; a model that was not there yet goes on from the first reply.
        """
        kept = self.order[1] if self.vote is Vote.SECOND else self.order[0]
        first = kept if self.vote is not None else lane
        for name in (first, *self.order):
            reply = self.reply(name)
            if reply is not None and reply.text:
                return reply
        return None

    @property
    def awaits_vote(self) -> bool:
        """Whether somebody has to say which reply is better before the chat goes on."""
        replies = [self.reply(lane) for lane in self.order]
        said = {reply.text for reply in replies if reply is not None and reply.text}
        return self.blind and self.vote is None and len(said) == 2

    @property
    def hides_names(self) -> bool:
        """Whether nobody may see yet who said what: until the vote, or until both said the same."""
        settled = all((reply := self.reply(lane)) and reply.text for lane in self.order)
        return self.blind and self.vote is None and (self.awaits_vote or not settled)


@dataclass(frozen=True, slots=True, kw_only=True)
class Chat:
    """A chat.

    Attributes:
        id: What the address calls it; it begins with its owner's id. Empty before it is stored.
        lanes: The models that answer.
        blind: Whether the next turns hide the models' names.
        tools: The functions that the models may call, from the conversation that the chat goes on from.
        opening: A conversation that the chat goes on from (native form); empty if there is none.
        turns: All turns, in the order they were asked.
        leaf: The last turn that is shown.
        conversations: Where the chat was sent to be labelled.
    """

    id: str = ""
    base_model: str
    lanes: tuple[str, ...] = (BASE,)
    system: str = ""
    sampling: Sampling = Sampling()
    blind: bool = False
    tools: tuple[dict[str, Any], ...] = ()
    opening: str = ""
    turns: tuple[Turn, ...] = ()
    leaf: str | None = None
    conversations: tuple[int, ...] = ()

    @property
    def path(self) -> tuple[Turn, ...]:
        """The turns that are shown, first to last."""
        by_id = {turn.id: turn for turn in self.turns}
        found: list[Turn] = []
        at = self.leaf
        while at is not None:
            found.append(by_id[at])
            at = by_id[at].parent
        return tuple(reversed(found))

    @property
    def last(self) -> Turn | None:
        """The last turn that is shown."""
        path = self.path
        return path[-1] if path else None

    def turn(self, turn_id: str) -> Turn:
        """Return a turn by its id."""
        return next(turn for turn in self.turns if turn.id == turn_id)

    def siblings(self, turn: Turn) -> tuple[Turn, ...]:
        """Return the turns asked at the same place, itself among them."""
        return tuple(other for other in self.turns if other.parent == turn.parent)


_adapter: TypeAdapter[Chat] = TypeAdapter(Chat)


def to_json(chat: Chat) -> str:
    """Return the chat as text; `from_json` is its inverse."""
    return _adapter.dump_json(chat).decode()


def from_json(text: str) -> Chat:
    """Read what `to_json` wrote.

    Raises:
        DataError: if it is something else.
    """
    try:
        return _adapter.validate_json(text)
    except ValidationError:
        raise DataError(
            "this chat's file is damaged",
            where="chat",
            remedy="Begin a new chat, and delete this one.",
        ) from None


def ask(chat: Chat, text: str, *, after: str | None) -> Chat:
    """Put a question after a turn (None: at the beginning), beside any that was asked there."""
    lanes = list(chat.lanes)
    blind = chat.blind and len(lanes) == 2
    if blind:
        SystemRandom().shuffle(lanes)
    turn = Turn(id=secrets.token_hex(4), asked=text, order=tuple(lanes), parent=after, blind=blind)
    return replace(chat, turns=(*chat.turns, turn), leaf=turn.id)


def with_replies(chat: Chat, turn_id: str, replies: Sequence[Reply]) -> Chat:
    """Add replies to a turn; each is now the one that is meant."""
    turn = chat.turn(turn_id)
    fresh = {reply.lane for reply in replies}
    shown = {lane: index for lane, index in turn.shown.items() if lane not in fresh}
    failed = [r for r in turn.replies if r.lane in fresh and r.ending is Ending.FAILED]
    kept = tuple(reply for reply in turn.replies if reply not in failed)  # a retry replaces it
    return with_turn(chat, replace(turn, replies=(*kept, *replies), shown=shown))


def with_turn(chat: Chat, changed: Turn) -> Chat:
    """Replace a turn by what it has become."""
    turns = tuple(changed if turn.id == changed.id else turn for turn in chat.turns)
    return replace(chat, turns=turns)


def switched(chat: Chat, turn_id: str) -> Chat:
    """Show the branch of a turn, up to what was asked last in it."""
    leaf = turn_id
    for turn in chat.turns:  # children come after their parents
        if turn.parent == leaf:
            leaf = max((t for t in chat.turns if t.parent == leaf), key=chat.turns.index).id
    return replace(chat, leaf=leaf)


def opening_of(chat: Chat) -> Conversation | None:
    """Return the conversation that the chat goes on from, if there is one."""
    return parse(chat.opening.encode(), format="native").conversations[0] if chat.opening else None


def history(chat: Chat, turn: Turn, lane: str) -> list[dict[str, Any]]:
    """Return what a model is asked: all messages up to the turn's question, in OpenAI's form."""
    opening = opening_of(chat)
    messages: list[dict[str, Any]] = []
    if chat.system:
        messages.append({"role": Role.SYSTEM.value, "content": chat.system})
    if opening is not None:
        messages += chat_messages(replace(opening, system=""))
    at = replace(chat, leaf=turn.id).path
    for earlier in at[:-1]:
        messages.append({"role": Role.USER.value, "content": earlier.asked})
        answer = earlier.answer(lane)
        if answer is not None:
            messages.append({"role": Role.ASSISTANT.value, "content": answer.text})
    messages.append({"role": Role.USER.value, "content": turn.asked})
    return messages


def run_of(lane: str) -> int | None:
    """Return the run whose adapter a model is; None for the base."""
    found = _RUN.fullmatch(lane)
    return int(found[1]) if found else None


def lane_of(run_id: int) -> str:
    """Return what the endpoint calls the adapter of a run."""
    return f"run-{run_id}"
