"""What is wrong with data or settings, or worth knowing, before a run trains on them."""

import math
from collections.abc import Sequence
from dataclasses import dataclass

from db.records import Conversation
from trainer.choices import CreditMode, OldLogprobs, Rendering
from trainer.config import TrainConfig
from trainer.data.rewards import aggregate
from trainer.data.turns import Turn, held_out_turns, trainable_turns

FEW = 5
"""Held-out conversations below this number judge an epoch mostly by chance."""

NAMED = 3
"""So many places a finding names where it is about many."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Finding:
    """Something about data or settings that people should know before they train on it.

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
    trained = [turn for turn in turns if turn.is_trained]
    advantages = [turn.credit.advantage for turn in trained]
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
    if all(turn.silenced or not turn.credit.advantage for turn in trained):
        text = (
            "No turn teaches anything: each is low-scored, and the guard positive_only takes "
            "the gradient from those. Choose the guard truncate, or add better replies."
        )
        return [Finding(kind="all_silenced", text=text, blocking=True)]
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
            _finding_of_stale(trained, config),
            _finding_of_guard(trained),
            _finding_of_held_out(turns, config),
            _finding_of_warmup(trained, config),
        )
        if finding is not None
    ]


def _finding_of_baseline(turns: Sequence[Turn], config: TrainConfig) -> Finding | None:
    if (
        config.credit is CreditMode.RECIPE
        or len({t.conversation for t in turns if not t.held_out}) > 1
    ):
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
    with_outcome = sum(
        aggregate(conversations[index].outcomes, aggregation=config.aggregation, rater=config.rater)
        is not None
        for index in trained
    )
    if not config.outcome_weight or with_outcome in (0, len(trained)):
        return None
    text = (
        f"{with_outcome} of {len(trained)} conversations have a score for the whole. The others "
        "count as if theirs were the mean of those: score them as a whole, too, to say more."
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


def _finding_of_stale(trained: Sequence[Turn], config: TrainConfig) -> Finding | None:
    stale = [turn for turn in trained if turn.rendered is not None and turn.rendered.stale]
    if not stale or config.old_logprobs is OldLogprobs.CONSTANT:
        return None
    reasons = sorted({turn.rendered.stale for turn in stale if turn.rendered is not None})
    more = f" and {len(stale) - NAMED} more" if len(stale) > NAMED else ""
    places = "; ".join(turn.place for turn in stale[:NAMED])
    text = (
        f"{len(stale)} of {len(trained)} scored turns have log-probabilities from when they were "
        f"sampled that are not used, because {', and '.join(reasons)}: {places}{more}. They are "
        "measured anew before the first step, as for replies that somebody typed."
    )
    return Finding(kind="stale_logprobs", text=text)


def _finding_of_guard(trained: Sequence[Turn]) -> Finding | None:
    silenced = sum(turn.silenced for turn in trained)
    if not silenced:
        return None
    text = (
        f"{silenced} of {len(trained)} scored turns carry no gradient: they are low-scored, no "
        "known policy sampled them, and the guard is positive_only."
    )
    return Finding(kind="silenced", text=text)


def _finding_of_held_out(turns: Sequence[Turn], config: TrainConfig) -> Finding | None:
    if not config.held_out:
        return None
    judges = [turn for turn in turns if turn.held_out and turn.credit.advantage is not None]
    rendered = any(turn.rendered is not None for turn in turns)
    if not judges:
        text = (
            "Nothing can be held out: all scored conversations begin alike, and those that do "
            "stay together. Set the held-out share to 0, or add conversations that begin otherwise."
        )
        return Finding(kind="none_held_out", text=text, blocking=True)
    if rendered and not held_out_turns(turns, config):
        text = (
            "Every held-out turn is longer than the context limit. Raise the limit, set the "
            "held-out share to 0, or try another seed."
        )
        return Finding(kind="held_out_too_long", text=text, blocking=True)
    if not any(turn.credit.advantage for turn in judges):
        text = (
            "Every held-out advantage is 0, so the epochs cannot be compared. Set the held-out "
            "share to 0, or try another seed."
        )
        return Finding(kind="held_out_no_signal", text=text, blocking=True)
    conversations = len({turn.conversation for turn in judges})
    if conversations < FEW:
        text = (
            f"Only {conversations} of the conversations will judge the epochs: chance decides "
            "which comes out best. Hold out more, or none."
        )
        return Finding(kind="few_held_out", text=text)
    return None


def _finding_of_warmup(trained: Sequence[Turn], config: TrainConfig) -> Finding | None:
    conversations = len({turn.conversation for turn in trained})
    an_epoch = math.ceil(conversations / (config.batch_conversations or conversations))
    steps = an_epoch * config.epochs
    if config.warmup_steps < steps:
        return None
    text = (
        f"The warm-up takes {config.warmup_steps} steps and the run only {steps}: the learning "
        "rate never gets to its full size. Shorten the warm-up, or take more epochs or fewer "
        "conversations a step."
    )
    return Finding(kind="long_warmup", text=text)
