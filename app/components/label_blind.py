"""Blind scoring: others' scores stay hidden until one's own is in."""

from dataclasses import replace

from db.records import Conversation, Score


def seen_by(conversation: Conversation, rater: str) -> Conversation:
    """Return the conversation without the scores of others where this rater has none yet.

    What is hidden never leaves the server.
    """
    return replace(
        conversation,
        messages=tuple(
            message
            if _has(message.scores, rater)
            else replace(message, scores=(), adjudicated=None)
            for message in conversation.messages
        ),
        outcomes=conversation.outcomes if _has(conversation.outcomes, rater) else (),
    )


def _has(scores: tuple[Score, ...], rater: str) -> bool:
    return any(score.rater == rater for score in scores)
