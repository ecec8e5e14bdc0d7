"""What a run would do with these conversations: tokens, advantages, cost, warnings; no training."""

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any

from db.records import Conversation
from trainer.config import TrainConfig
from trainer.data.findings import Finding, find_problems
from trainer.data.rendering import Tokenizer
from trainer.data.turns import Turn, build_turns, held_out_turns, trainable_turns
from trainer.engine.prefix_tree import count_distinct
from trainer.errors import BadDataError
from trainer.estimate import Estimate, estimate_run
from trainer.fit import find_misfits
from trainer.pass_costs import Machine
from trainer.remote.fitting import SentTokens, sent_tokens, unfit


@dataclass(frozen=True, slots=True, kw_only=True)
class TurnPreview:
    """One line of the preview; token counts are None until a tokenizer has been at work.

    Attributes:
        held_out: Whether the conversation judges the run and is not trained on.
        silenced: Whether the guard takes the turn's gradient away.
    """

    conversation: int
    turn: int
    title: str
    tokens: int | None
    response_tokens: int | None
    reward: float | None
    return_: float | None
    advantage: float | None
    held_out: bool
    silenced: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class Preview:
    """The table of turns and what is worth knowing about it.

    Attributes:
        distinct_tokens: Tokens that the engine computes in one epoch: shared prefixes once.
        turn_tokens: Tokens that one pass a turn would compute.
        estimate: Time and memory of the run; None without a calibrated machine.
        sent: Tokens that go to an endpoint; None without one, or without a tokenizer.
    """

    turns: tuple[TurnPreview, ...]
    distinct_tokens: int | None
    turn_tokens: int | None
    estimate: Estimate | None
    warnings: tuple[Finding, ...]
    sent: SentTokens | None = None

    @property
    def blocked(self) -> bool:
        """Whether a run with this data would be refused."""
        return any(warning.blocking for warning in self.warnings)

    def to_json(self) -> dict[str, Any]:
        """Return the preview as JSON data, in the form that `preview --json` prints."""
        return {
            "turns": [
                {
                    "conversation": turn.conversation,
                    "turn": turn.turn,
                    "title": turn.title,
                    "tokens": turn.tokens,
                    "response_tokens": turn.response_tokens,
                    "reward": turn.reward,
                    "return": turn.return_,
                    "advantage": turn.advantage,
                    "held_out": turn.held_out,
                    "silenced": turn.silenced,
                }
                for turn in self.turns
            ],
            "distinct_tokens": self.distinct_tokens,
            "turn_tokens": self.turn_tokens,
            "estimate": self.estimate.to_json() if self.estimate else None,
            "sent": asdict(self.sent) if self.sent else None,
            "warnings": [
                {
                    "kind": warning.kind,
                    "text": warning.text,
                    "conversation": warning.conversation,
                    "turn": warning.turn,
                    "blocking": warning.blocking,
                }
                for warning in self.warnings
            ],
        }


def preview(
    conversations: Sequence[Conversation],
    config: TrainConfig,
    tokenizer: Tokenizer | None = None,
    *,
    obstacle: str | None = None,
    machine: Machine | None = None,
) -> Preview:
    """Return what a run would train on; without a tokenizer at once, but without token counts.

    Args:
        conversations: The data.
        config: The settings.
        tokenizer: The base model's; None leaves the token counts out.
        obstacle: Why the model cannot compute shared prefixes once, None if it can.
        machine: What a calibration says; with it and a tokenizer, time and memory are estimated.

    Raises:
        ChatTemplateError: if the model has no chat template, or it refuses a conversation.
    """
    turns = build_turns(conversations, config, tokenizer)
    trained = trainable_turns(turns, config)
    findings = [
        *find_problems(conversations, turns, config),
        *_slower_path(obstacle),
        *unfit(config),
    ]
    estimate = None
    if machine is not None and trained:
        answers = min(config.sample_prompts, len(conversations))
        held_out = held_out_turns(turns, config)
        estimate = estimate_run(trained, held_out, config, machine, answers=answers)
        findings += find_misfits(trained, config, machine, pass_tokens=estimate.longest_pass_tokens)
    return Preview(
        turns=tuple(_line(turn) for turn in turns),
        distinct_tokens=count_distinct([turn.rendered.model_input for turn in trained])
        if tokenizer
        else None,
        turn_tokens=sum(turn.rendered.tokens for turn in trained) if tokenizer else None,
        estimate=estimate,
        sent=sent_tokens(trained, held_out_turns(turns, config), config)
        if tokenizer and config.endpoint
        else None,
        warnings=tuple(sorted(findings, key=lambda finding: not finding.blocking)),
    )


def _slower_path(obstacle: str | None) -> list[Finding]:
    if obstacle is None:
        return []
    text = (
        f"This model computes one pass for each turn, because {obstacle}. The result is the same; "
        "long conversations take longer and shared beginnings save nothing."
    )
    return [Finding(kind="one_pass_a_turn", text=text)]


def refuse_blocked(table: Preview) -> None:
    """Raise what blocks a run with this data, if anything does.

    Raises:
        BadDataError: with the first blocking finding.
    """
    for warning in table.warnings:
        if warning.blocking:
            raise BadDataError(warning.text, where="data")


def _line(turn: Turn) -> TurnPreview:
    return TurnPreview(
        conversation=turn.conversation,
        turn=turn.turn,
        title=turn.title,
        tokens=turn.rendered.tokens if turn.rendered else None,
        response_tokens=len(turn.rendered.response_ids) if turn.rendered else None,
        reward=turn.credit.reward,
        return_=turn.credit.return_,
        advantage=turn.credit.advantage,
        held_out=turn.held_out,
        silenced=turn.silenced,
    )
