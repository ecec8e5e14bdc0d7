"""What to change in a run's settings after a failure, and by how much. No torch."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from db.enums import ErrorKind
from trainer.choices import Rendering
from trainer.config import TrainConfig
from trainer.errors import SMALLEST_TOKEN_BUDGET, token_budget_of

SLOWER = 4
"""By what a learning rate is divided with which a run came to NaN."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Suggestion:
    """One setting to change.

    Attributes:
        setting: Its name in `TrainConfig`.
        before: Its value in the run that failed.
        after: The value to try.
        why: One sentence for people.
    """

    setting: str
    before: Any
    after: Any
    why: str


def suggestions(kind: ErrorKind | None, config: TrainConfig, text: str = "") -> list[Suggestion]:
    """Return what to change before the run is launched again; empty where settings do not help.

    Args:
        kind: The kind of failure.
        config: The settings of the run that failed.
        text: The error's text, which may name the pass that was too large.
    """
    changes: dict[str, tuple[Any, str]] = {}
    match kind:
        case ErrorKind.OUT_OF_MEMORY:
            budget = min(token_budget_of(text) or config.token_budget, config.token_budget // 2)
            changes["token_budget"] = (budget, "A pass over half the tokens takes half the memory.")
        case ErrorKind.KILLED:
            why = "If it was killed because memory ran out: half the tokens a pass take half of it."
            changes["token_budget"] = (config.token_budget // 2, why)
        case ErrorKind.NOT_A_NUMBER:
            why = "Smaller steps keep the numbers finite."
            changes["learning_rate"] = (config.learning_rate / SLOWER, why)
            if config.grad_clip_norm == 0:
                changes["grad_clip_norm"] = (1.0, "One bad turn can then not throw the model off.")
        case ErrorKind.CHAT_TEMPLATE:
            why = "Without a chat template the texts are joined by spaces."
            changes["rendering"] = (Rendering.PLAIN, why)
        case _:
            pass
    if "token_budget" in changes:
        budget, why = changes["token_budget"]
        changes["token_budget"] = (max(budget, SMALLEST_TOKEN_BUDGET), why)
    asked = config.to_json()
    return [
        Suggestion(setting=name, before=asked[name], after=after, why=why)
        for name, (after, why) in changes.items()
        if asked[name] != after
    ]


def with_suggestions(config: TrainConfig, changes: Sequence[Suggestion]) -> TrainConfig:
    """Return the configuration with the suggested changes made."""
    return config.replace(**{change.setting: change.after for change in changes})
