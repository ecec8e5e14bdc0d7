"""What people said of a conversation becomes one reward a turn and one for the whole.

Where several people scored a turn, the setting `aggregation` says which number it becomes.
"""

import json
from collections.abc import Sequence
from statistics import fmean, median

from db.enums import Aggregation, Role
from db.records import Conversation, Message, Score
from trainer.data.credit import ConversationRewards


def conversation_rewards(
    conversation: Conversation, *, aggregation: Aggregation, rater: str = ""
) -> ConversationRewards:
    """Return the reward of each assistant turn and of the whole; None where there is no score.

    Args:
        conversation: With the scores of everybody.
        aggregation: What the scores of several people on one turn become.
        rater: Whose scores count under `one_rater`.
    """
    return ConversationRewards(
        turns=tuple(
            turn_reward(message, aggregation=aggregation, rater=rater)
            for message in conversation.assistant_messages
        ),
        outcome=aggregate(conversation.outcomes, aggregation=aggregation, rater=rater),
        group=_opening(conversation),
    )


def turn_reward(message: Message, *, aggregation: Aggregation, rater: str = "") -> float | None:
    """Return the reward of one reply; under `adjudicated`, a score that was decided goes first."""
    if aggregation is Aggregation.ADJUDICATED and message.adjudicated is not None:
        return message.adjudicated.value
    return aggregate(message.scores, aggregation=aggregation, rater=rater)


def aggregate(
    scores: Sequence[Score], *, aggregation: Aggregation, rater: str = ""
) -> float | None:
    """Return the one number that several people's scores become; None where none counts.

    Without a decided score, `adjudicated` is the mean. The median of an even number of scores is
    the mean of the two in the middle.
    """
    if aggregation is Aggregation.ONE_RATER:
        return next((score.value for score in scores if score.rater == rater), None)
    if not scores:
        return None
    middle = median if aggregation is Aggregation.MEDIAN else fmean
    return middle([score.value for score in scores])


def _opening(conversation: Conversation) -> tuple[str, ...]:
    """What the model saw before its first reply: conversations that share it can be compared."""
    opening = [conversation.system]
    if conversation.tools:
        opening.append(json.dumps(conversation.tools, sort_keys=True))
    for message in conversation.messages:
        if message.role is Role.ASSISTANT:
            break
        opening += [message.role, message.content]
    return tuple(opening)
