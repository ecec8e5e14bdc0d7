"""Blind scoring: others' scores stay hidden until one's own is in."""

from dataclasses import replace

from db.enums import UserRole
from db.records import Conversation, ProjectSettings, Score, User


def hides_from(user: User, project: ProjectSettings) -> bool:
    """Return whether others' scores are kept from this person; admins see everyone's.

    On the label page they are kept from admins, too, who score like anybody else there.
    """
    return project.blind and user.role is not UserRole.ADMIN


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
