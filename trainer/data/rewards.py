"""What people said of a conversation becomes one reward a turn and one for the whole."""

from collections.abc import Sequence
from statistics import fmean

from db.enums import Role
from db.records import Conversation, Score
from trainer.data.credit import ConversationRewards


def conversation_rewards(conversation: Conversation) -> ConversationRewards:
    """Return the mean score of each assistant turn and of the whole; None where nobody scored."""
    return ConversationRewards(
        turns=tuple(_mean(message.scores) for message in conversation.assistant_messages),
        outcome=_mean(conversation.outcomes),
        group=_opening(conversation),
    )


def _mean(scores: Sequence[Score]) -> float | None:
    return fmean(score.value for score in scores) if scores else None


def _opening(conversation: Conversation) -> tuple[str, ...]:
    """What the model saw before its first reply: conversations that share it can be compared."""
    opening = [conversation.system]
    for message in conversation.messages:
        if message.role is Role.ASSISTANT:
            break
        opening += [message.role, message.content]
    return tuple(opening)
