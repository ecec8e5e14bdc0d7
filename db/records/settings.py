"""What people have set: for the whole project, and each person for themselves."""

from collections.abc import Mapping
from dataclasses import dataclass, field

from db.enums import Aggregation, LabelAction, ScoreScale

DEFAULT_KEYS: Mapping[LabelAction, str] = {
    LabelAction.PREVIOUS_TURN: "ArrowUp",
    LabelAction.NEXT_TURN: "ArrowDown",
    LabelAction.PREVIOUS_CONVERSATION: "ArrowLeft",
    LabelAction.NEXT_CONVERSATION: "ArrowRight",
    LabelAction.DONE: "Ctrl+Enter",
    LabelAction.UNDO: "Ctrl+Z",
    LabelAction.REDO: "Ctrl+Shift+Z",
    LabelAction.SKIP: "S",
    LabelAction.FLAG: "F",
    LabelAction.NOTE: "N",
    LabelAction.HELP: "?",
}
"""The keys as delivered: the browser's name of the key, after "Ctrl+", "Alt+" or "Shift+"."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ProjectSettings:
    """What holds for everybody who works on the project; only admins change it.

    Attributes:
        scale: How people give scores.
        guidelines: Markdown that is shown beside the chat.
        blind: Whether others' scores of a turn stay hidden until one's own is in.
        target_raters: How many people should score a conversation before it counts as done.
        aggregation: What Launch offers first when several people scored a turn.
        webhook_url: Where a run's end is told by HTTP POST; empty for nowhere.
        session_hours: How long a password sign-in lasts.
        evaluation_prompts: Openings, one a line, that each run answers before and after training.
        evaluation_tag: Tag of conversations whose openings are answered as well and whose scored
            replies are measured; they are never trained on. Empty for none.
        judge_url: Root of an OpenAI-compatible API whose model compares the answers; empty for none.
        judge_model: That model's name.
    """

    scale: ScoreScale = ScoreScale.UNIT
    guidelines: str = ""
    blind: bool = False
    target_raters: int = 1
    aggregation: Aggregation = Aggregation.ADJUDICATED
    webhook_url: str = ""
    session_hours: int = 12
    evaluation_prompts: str = ""
    evaluation_tag: str = ""
    judge_url: str = ""
    judge_model: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class UserSettings:
    """What one person has set for themselves.

    Attributes:
        keys: The key of each action on the label page; complete, defaults filled in.
    """

    keys: Mapping[LabelAction, str] = field(default_factory=lambda: dict(DEFAULT_KEYS))
