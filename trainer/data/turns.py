"""Conversations and a configuration become the table of turns that a run would train on.

The launch page shows this table before a run starts, and the run trains on the same one.
"""

from collections.abc import Sequence
from dataclasses import dataclass

from db.records import Conversation
from trainer.config import CreditMode, Rendering, TrainConfig
from trainer.data.credit import TurnCredit, assign_credit
from trainer.data.rendering import RenderedTurn, Tokenizer, render_conversation
from trainer.data.rewards import conversation_rewards


@dataclass(frozen=True, slots=True, kw_only=True)
class Turn:
    """One assistant turn with its credit and, once there is a tokenizer, its token ids.

    Attributes:
        conversation: Position in the data, from 0.
        turn: Assistant turn within the conversation, from 0.
        title: The conversation's title.
        text: The reply.
    """

    conversation: int
    turn: int
    title: str
    text: str
    credit: TurnCredit
    rendered: RenderedTurn | None

    @property
    def place(self) -> str:
        """Where the turn is, in words that a person can find it by."""
        return f"{_name(self.conversation, self.title)}, turn {self.turn + 1}"


@dataclass(frozen=True, slots=True, kw_only=True)
class TrainableTurn:
    """A turn that carries a gradient: its advantage and its token ids are known."""

    conversation: int
    turn: int
    place: str
    reward: float | None
    advantage: float
    rendered: RenderedTurn


@dataclass(frozen=True, slots=True, kw_only=True)
class Finding:
    """Something about the data that people should know before they train on it.

    Attributes:
        kind: Stable name of the kind of finding.
        text: What it is, where, and what to do.
        conversation: Position in the data, None if it concerns the whole.
        turn: Assistant turn, None if it concerns the conversation.
        blocking: Whether training is refused.
    """

    kind: str
    text: str
    conversation: int | None = None
    turn: int | None = None
    blocking: bool = False


def build_turns(
    conversations: Sequence[Conversation], config: TrainConfig, tokenizer: Tokenizer | None = None
) -> list[Turn]:
    """Return every assistant turn of the data with its credit, rendered if there is a tokenizer.

    Raises:
        ChatTemplateError: if the model has no chat template, or it refuses a conversation.
    """
    credits = assign_credit(
        [conversation_rewards(conversation) for conversation in conversations],
        mode=config.credit,
        gamma=config.gamma,
        outcome_weight=config.outcome_weight,
    )
    turns: list[Turn] = []
    for index, (conversation, credit) in enumerate(zip(conversations, credits, strict=True)):
        title = conversation.title or f"untitled {index + 1}"
        rendered: Sequence[RenderedTurn | None] = (
            render_conversation(conversation, tokenizer, config.rendering, name=_name(index, title))
            if tokenizer
            else [None] * len(credit)
        )
        replies = conversation.assistant_messages
        for turn, (message, one, ids) in enumerate(zip(replies, credit, rendered, strict=True)):
            turns.append(
                Turn(
                    conversation=index,
                    turn=turn,
                    title=title,
                    text=message.content,
                    credit=one,
                    rendered=ids,
                )
            )
    return turns


def _name(index: int, title: str) -> str:
    return f"conversation {index + 1} ({title!r})"


def trainable_turns(turns: Sequence[Turn], config: TrainConfig) -> list[TrainableTurn]:
    """Return the turns that a run trains on: with an advantage, and within the context limit."""
    return [
        TrainableTurn(
            conversation=turn.conversation,
            turn=turn.turn,
            place=turn.place,
            reward=turn.credit.reward,
            advantage=turn.credit.advantage,
            rendered=turn.rendered,
        )
        for turn in turns
        if turn.credit.advantage is not None
        and turn.rendered is not None
        and turn.rendered.tokens <= config.max_context_tokens
    ]


def find_problems(
    conversations: Sequence[Conversation], turns: Sequence[Turn], config: TrainConfig
) -> list[Finding]:
    """Return what is wrong or worth knowing, blocking findings first."""
    findings = [
        *_findings_of_conversations(conversations, turns),
        *_findings_of_turns(turns, config),
        *_findings_of_the_whole(conversations, turns, config),
    ]
    return sorted(findings, key=lambda finding: not finding.blocking)


def _findings_of_conversations(
    conversations: Sequence[Conversation], turns: Sequence[Turn]
) -> list[Finding]:
    by_conversation: dict[int, list[Turn]] = {}
    for turn in turns:
        by_conversation.setdefault(turn.conversation, []).append(turn)
    findings: list[Finding] = []
    for index, conversation in enumerate(conversations):
        name = f"Conversation {index + 1} ({conversation.title or f'untitled {index + 1}'!r})"
        own = by_conversation.get(index, [])
        trained = [turn for turn in own if turn.credit.advantage is not None]
        if not own:
            text = f"{name} has no assistant turn: there is nothing in it to train on."
            findings.append(Finding(kind="no_assistant_turn", text=text, conversation=index))
        elif not trained:
            text = f"{name} has no score: it is left out."
            findings.append(Finding(kind="unscored", text=text, conversation=index))
        elif all(turn.credit.advantage == 0 for turn in trained):
            text = f"{name} gives no signal: each of its advantages is 0."
            findings.append(Finding(kind="no_signal", text=text, conversation=index))
        elif len(trained) < len(own):
            missing = ", ".join(str(turn.turn + 1) for turn in own if turn.credit.advantage is None)
            text = f"{name}: no score on turn {missing}; these are context only."
            findings.append(Finding(kind="partly_scored", text=text, conversation=index))
    return findings


def _findings_of_turns(turns: Sequence[Turn], config: TrainConfig) -> list[Finding]:
    findings: list[Finding] = []
    for turn in turns:
        if turn.credit.advantage is None:
            continue
        place = turn.place[0].upper() + turn.place[1:]
        if not turn.text.strip():
            findings.append(
                Finding(
                    kind="empty_reply",
                    text=f"{place} is an empty reply with a score. Write it or clear its score.",
                    conversation=turn.conversation,
                    turn=turn.turn,
                    blocking=True,
                )
            )
        elif turn.rendered is not None and turn.rendered.tokens > config.max_context_tokens:
            findings.append(
                Finding(
                    kind="too_long",
                    text=f"{place} is {turn.rendered.tokens} tokens long; the context limit is "
                    f"{config.max_context_tokens}. The turn is left out: shorten the "
                    "conversation or raise the limit.",
                    conversation=turn.conversation,
                    turn=turn.turn,
                )
            )
    return findings


def _findings_of_the_whole(
    conversations: Sequence[Conversation], turns: Sequence[Turn], config: TrainConfig
) -> list[Finding]:
    advantages = [turn.credit.advantage for turn in turns if turn.credit.advantage is not None]
    rendered = any(turn.rendered is not None for turn in turns)
    if not advantages:
        text = "No assistant turn has a score. Score some turns on the Label page first."
        return [Finding(kind="nothing_scored", text=text, blocking=True)]
    if not any(advantages):
        text = (
            "Every advantage is 0, so there is nothing to learn. "
            "Give different turns different scores, or choose another credit mode."
        )
        return [Finding(kind="all_zero", text=text, blocking=True)]
    if rendered and not trainable_turns(turns, config):
        text = (
            f"Every scored turn is longer than the context limit of "
            f"{config.max_context_tokens} tokens. Raise the limit or shorten the conversations."
        )
        return [Finding(kind="all_too_long", text=text, blocking=True)]
    return [
        finding
        for finding in (
            _finding_of_baseline(turns, config),
            _finding_of_outcomes(conversations, turns, config),
            _finding_of_tool_calls(conversations, config),
        )
        if finding is not None
    ]


def _finding_of_baseline(turns: Sequence[Turn], config: TrainConfig) -> Finding | None:
    if config.credit is CreditMode.RECIPE or len({turn.conversation for turn in turns}) > 1:
        return None
    text = (
        "There is only one conversation, so nothing can be compared: its returns are taken "
        "as they are. Add conversations, or choose the credit mode recipe."
    )
    return Finding(kind="no_baseline", text=text)


def _finding_of_outcomes(
    conversations: Sequence[Conversation], turns: Sequence[Turn], config: TrainConfig
) -> Finding | None:
    if config.credit not in (CreditMode.RETURN_TO_GO, CreditMode.OUTCOME):
        return None
    trained = {turn.conversation for turn in turns if turn.credit.advantage is not None}
    with_outcome = sum(bool(conversations[index].outcomes) for index in trained)
    if not config.outcome_weight or with_outcome in (0, len(trained)):
        return None
    text = (
        f"{with_outcome} of {len(trained)} conversations have a score for the whole. Beside them "
        "the others look worse than they are: score all of them as a whole, or none, or set the "
        "outcome weight to 0."
    )
    return Finding(kind="uneven_outcomes", text=text)


def _finding_of_tool_calls(
    conversations: Sequence[Conversation], config: TrainConfig
) -> Finding | None:
    called = any(message.tool_calls for c in conversations for message in c.messages)
    if config.rendering is not Rendering.PLAIN or not called:
        return None
    text = "Plain rendering leaves tool calls out. Choose the template rendering to keep them."
    return Finding(kind="tool_calls", text=text)
