"""One held-out reply before and after training, as files and pages know it."""

from dataclasses import asdict, dataclass
from typing import Any


@dataclass(frozen=True, slots=True, kw_only=True)
class ReplyChange:
    """One held-out reply, before and after training.

    Attributes:
        title: Its conversation's.
        turn: Assistant turn within the conversation, from 0.
        text: The reply.
        reward: Its score.
        tokens: How many tokens the reply has.
        before: Mean log-probability of its tokens before training, in nats a token.
        after: The same afterwards; None until then.
    """

    title: str
    turn: int
    text: str
    reward: float
    tokens: int
    before: float
    after: float | None = None

    @property
    def change(self) -> float | None:
        """How far it moved, in nats a token: above 0 it became likelier."""
        return None if self.after is None else self.after - self.before

    def to_json(self) -> dict[str, Any]:
        """Return it as JSON data; `ReplyChange(**data)` is the inverse."""
        return asdict(self)
