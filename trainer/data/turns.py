"""Conversations and a configuration become the table of turns that a run would train on.

The launch page shows this table before a run starts, and the run trains on the same one.
"""

from collections.abc import Sequence
from dataclasses import dataclass

from db.records import Conversation, Message
from trainer.choices import Guard, LossName, Rendering
from trainer.config import TrainConfig
from trainer.data.credit import ConversationRewards, TurnCredit, assign_credit
from trainer.data.rendering import RenderedTurn, Tokenizer, render_conversation
from trainer.data.rewards import conversation_rewards
from trainer.data.split import hold_out
from trainer.errors import NotFiniteError


@dataclass(frozen=True, slots=True, kw_only=True)
class Turn:
    """One assistant turn with its credit and, once there is a tokenizer, its token ids.

    Attributes:
        conversation: Position in the data, from 0.
        turn: Assistant turn within the conversation, from 0.
        title: The conversation's title.
        text: The reply.
        held_out: Whether the conversation judges the run and is not trained on.
        silenced: Whether the guard takes the turn's gradient away.
    """

    conversation: int
    turn: int
    title: str
    text: str
    credit: TurnCredit
    rendered: RenderedTurn | None
    held_out: bool
    silenced: bool

    @property
    def place(self) -> str:
        """Where the turn is, in words that a person can find it by."""
        return f"{_name(self.conversation, self.title)}, turn {self.turn + 1}"

    @property
    def is_trained(self) -> bool:
        """Whether a run trains on the turn, as far as that is known without its length."""
        return self.credit.advantage is not None and not self.held_out


@dataclass(frozen=True, slots=True, kw_only=True)
class TrainableTurn:
    """A turn that a run can learn from or be judged by: advantage and token ids are known."""

    conversation: int
    turn: int
    place: str
    reward: float | None
    advantage: float
    rendered: RenderedTurn


def at_turn(
    error: NotFiniteError, when: str, turns: Sequence[TrainableTurn], group: Sequence[int]
) -> NotFiniteError:
    """Return the error of a pass in the run's own terms: when, and at which turn of the group."""
    where = when if error.datum is None else f"{when}, {turns[group[error.datum]].place}"
    return NotFiniteError(error.what, where=where, remedy=error.remedy)


def build_turns(
    conversations: Sequence[Conversation], config: TrainConfig, tokenizer: Tokenizer | None = None
) -> list[Turn]:
    """Return every assistant turn of the data with its credit, rendered if there is a tokenizer.

    Raises:
        ChatTemplateError: if the model has no chat template, or it refuses a conversation.
    """
    rewards = [
        conversation_rewards(conversation, aggregation=config.aggregation, rater=config.rater)
        for conversation in conversations
    ]
    credits, held_out = _split_credit(rewards, config)
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
                    held_out=index in held_out,
                    silenced=_is_silenced(message, ids, one, config),
                )
            )
    return turns


def _split_credit(
    rewards: Sequence[ConversationRewards], config: TrainConfig
) -> tuple[list[list[TurnCredit]], frozenset[int]]:
    """Return each conversation's credit, and which conversations are held out.

    Held-out conversations take no part in the baselines of the others: training is exactly what
    it would be without them. Their own advantages are taken against all conversations.
    """

    def credit(of: Sequence[ConversationRewards]) -> list[list[TurnCredit]]:
        return assign_credit(
            of, mode=config.credit, gamma=config.gamma, outcome_weight=config.outcome_weight
        )

    credits = credit(rewards)
    openings = {
        index: rewards[index].group
        for index, turns in enumerate(credits)
        if any(turn.advantage is not None for turn in turns)
    }
    held_out = hold_out(openings, config.held_out, config.seed)
    if held_out:
        trained = [index for index in range(len(rewards)) if index not in held_out]
        for index, one in zip(trained, credit([rewards[i] for i in trained]), strict=True):
            credits[index] = one
    return credits, held_out


def _is_silenced(
    message: Message, rendered: RenderedTurn | None, credit: TurnCredit, config: TrainConfig
) -> bool:
    if config.guard is not Guard.POSITIVE_ONLY or config.loss is LossName.CROSS_ENTROPY:
        return False
    if rendered is not None:
        is_sampled = rendered.sampled_logprobs is not None
    else:
        has_sample = bool(message.token_ids and message.logprobs)
        is_sampled = has_sample and config.rendering is Rendering.TEMPLATE
    return not is_sampled and credit.advantage is not None and credit.advantage < 0


def _name(index: int, title: str) -> str:
    return f"conversation {index + 1} ({title!r})"


def trainable_turns(turns: Sequence[Turn], config: TrainConfig) -> list[TrainableTurn]:
    """Return the turns that a run trains on: with an advantage, and within the context limit."""
    return _usable([turn for turn in turns if not turn.held_out], config)


def held_out_turns(turns: Sequence[Turn], config: TrainConfig) -> list[TrainableTurn]:
    """Return the turns that a run is judged by: like the trained ones, of other conversations."""
    return _usable([turn for turn in turns if turn.held_out], config)


def _usable(turns: Sequence[Turn], config: TrainConfig) -> list[TrainableTurn]:
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
