"""Collections: replies that a model is asked for in the background, to be scored."""

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from datetime import datetime
from typing import Any, Self

from db.enums import CollectionState, Partner

SOURCE = "collected:"
"""What the source of a collected conversation begins with; the collection's number follows."""


@dataclass(frozen=True, slots=True, kw_only=True)
class CollectionPlan:
    """What is asked of which model. It decides, with the prompts, what is sampled.

    Attributes:
        name: What people call the collection.
        base_model: The base model, as `trainer.catalog` names it.
        run_id: The run whose adapter answers; None for the base model itself.
        replies: How many replies, or conversations, are sampled for each prompt.
        partner: Who speaks between the replies, if the conversation goes on.
        script: Partner.SCRIPT: what the user says, in order, each after a reply.
        persona: Partner.MODEL: the system prompt for the user's part, which the base model plays.
        turns: Partner.MODEL: how many replies a conversation gets at most.
        temperature: 0 takes the likeliest token each time.
        top_p: Share of the probability that is sampled from.
        max_tokens: Most tokens of one reply.
        seed: Fixes the dice of every reply.
    """

    name: str
    base_model: str
    run_id: int | None = None
    replies: int = 4
    partner: Partner = Partner.NOBODY
    script: tuple[str, ...] = ()
    persona: str = ""
    turns: int = 1
    temperature: float = 1.0
    top_p: float = 1.0
    max_tokens: int = 256
    seed: int = 0

    @property
    def replies_each(self) -> int:
        """How many replies one conversation gets at most."""
        match self.partner:
            case Partner.NOBODY:
                return 1
            case Partner.SCRIPT:
                return 1 + len(self.script)
            case Partner.MODEL:
                return self.turns

    def to_json(self) -> dict[str, Any]:
        """Return the plan as JSON data; `from_json` is its inverse."""
        return asdict(self)

    @classmethod
    def from_json(cls, data: Mapping[str, Any]) -> Self:
        """Return the plan that `to_json` gave."""
        fields: dict[str, Any] = {**data}
        fields["partner"] = Partner(data["partner"])
        fields["script"] = tuple(data["script"])
        return cls(**fields)


@dataclass(frozen=True, slots=True, kw_only=True)
class Collection:
    """A collection, from the moment it is asked for.

    Attributes:
        user: Name of who asked for it, empty if they are gone.
        prompts: How many prompts it has.
        done: How many of them have all their replies stored.
        conversations: How many conversations are stored.
        repeats: How many were left out because another reply to the same prompt said the same.
        device: "cpu" or "cuda": what it computes on, as far as no run wants it.
        process: What tells the process that works on it from all others, empty if none does.
        progress: Share of the work that is done, from 0 to 1.
        message: What is being done, or waited for, in words.
        error_text: Why it failed.
        changed_at: When its state changed last.
    """

    id: int
    state: CollectionState
    user: str
    plan: CollectionPlan
    prompts: int
    done: int
    conversations: int
    repeats: int
    device: str
    process: str
    progress: float
    message: str
    error_text: str
    created_at: datetime
    changed_at: datetime

    @property
    def source(self) -> str:
        """The source of the conversations that it brings."""
        return f"{SOURCE}{self.id}"
