"""What of a run's settings an endpoint can be told, and what it costs in tokens. No torch."""

from collections.abc import Sequence
from dataclasses import dataclass

from trainer.choices import Guard, LossName, OldLogprobs
from trainer.config import TrainConfig
from trainer.data.findings import Finding
from trainer.data.turns import TrainableTurn

ALPHA = 32.0
"""The alpha of every adapter in the Tinker / MinT API, which cannot be told another."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SentTokens:
    """Tokens that a run sends to an endpoint; each turn goes with its whole context.

    Attributes:
        training: In passes that are trained on, over all epochs.
        scoring: In passes that only ask: before training, for a loss of our own, and to judge.
        sampled: At most so many in answers to the sample prompts, before and after.
    """

    training: int
    scoring: int
    sampled: int


def unfit(config: TrainConfig) -> list[Finding]:
    """Return what stands in the way of a run on an endpoint; nothing for one on this machine."""
    if not config.endpoint:
        return []
    texts: list[str] = []
    if config.lora_alpha != ALPHA:
        texts.append(f"An endpoint trains with LoRA alpha {ALPHA:g} only: set it to that.")
    if config.start_from:
        texts.append("A run on an endpoint starts from the base model: adapters cannot be sent.")
    return [Finding(kind="endpoint", text=text, blocking=True) for text in texts]


def is_plain(config: TrainConfig) -> bool:
    """Return whether an endpoint knows the loss; else one more pass asks for log-probabilities."""
    guard = config.guard is not Guard.NONE and config.loss is not LossName.CROSS_ENTROPY
    return (
        not guard
        and not config.kl_weight
        and (config.loss is not LossName.PPO or not config.dual_clip)
    )


def sent_tokens(
    trained: Sequence[TrainableTurn], held_out: Sequence[TrainableTurn], config: TrainConfig
) -> SentTokens:
    """Return what a run sends if it goes through all its epochs."""
    turns = sum(turn.rendered.tokens for turn in trained)
    judged = sum(turn.rendered.tokens for turn in held_out) * (config.epochs + 1)
    unknown = config.old_logprobs is OldLogprobs.STORED_OR_RECOMPUTED and any(
        turn.rendered.sampled_logprobs is None for turn in trained
    )
    before = turns if unknown or config.kl_weight or config.max_kl else 0
    own_loss = 0 if is_plain(config) else turns * config.epochs
    return SentTokens(
        training=turns * config.epochs,
        scoring=before + own_loss + judged,
        sampled=2 * config.sample_prompts * config.sample_tokens,
    )
