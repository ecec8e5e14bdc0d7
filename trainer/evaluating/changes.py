"""How much likelier, or rarer, training made scored replies that it never saw."""

from collections.abc import Sequence

from db.records import Conversation
from trainer.config import TrainConfig
from trainer.data.rendering import RenderedTurn, Tokenizer
from trainer.data.turns import Turn, build_turns
from trainer.engine.types import ModelInput
from trainer.engines import Sampler
from trainer.evaluating.reply_change import ReplyChange

MOST_REPLIES = 200
"""So many replies are measured at most, the first ones."""


def held_out_replies(
    conversations: Sequence[Conversation],
    evaluation: Sequence[Conversation],
    config: TrainConfig,
    tokenizer: Tokenizer,
) -> list[tuple[Turn, RenderedTurn]]:
    """Return the scored replies that the run does not train on.

    Args:
        conversations: The run's data; a share of it may be held out.
        evaluation: The project's fixed set.
        config: The run's settings.
        tokenizer: The base model's.
    """
    turns = [turn for turn in build_turns(conversations, config, tokenizer) if turn.held_out]
    turns += build_turns(evaluation, config.replace(held_out=0.0), tokenizer)
    usable = [
        (turn, turn.rendered)
        for turn in turns
        if turn.credit.reward is not None
        and turn.rendered is not None
        and turn.rendered.tokens <= config.max_context_tokens
    ]
    return usable[:MOST_REPLIES]


def mean_logprobs(replies: Sequence[tuple[Turn, RenderedTurn]], sampler: Sampler) -> list[float]:
    """Return the mean log-probability of each reply's tokens, in nats a token."""
    means: list[float] = []
    for _, rendered in replies:
        whole = ModelInput.from_ints([*rendered.prompt_ids, *rendered.response_ids])
        told = sampler.compute_logprobs(whole).result()[len(rendered.prompt_ids) :]
        known = [logprob for logprob in told if logprob is not None]
        means.append(sum(known) / len(known))
    return means


def changes_before(
    replies: Sequence[tuple[Turn, RenderedTurn]], means: Sequence[float]
) -> list[ReplyChange]:
    """Return what is known of the replies before training."""
    return [
        ReplyChange(
            title=turn.title,
            turn=turn.turn,
            text=turn.text,
            reward=turn.credit.reward or 0.0,
            tokens=len(rendered.response_ids),
            before=mean,
        )
        for (turn, rendered), mean in zip(replies, means, strict=True)
    ]
