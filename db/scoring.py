"""What counts as a score: the one rule that typed, imported and stored scores obey."""

import math

from db.enums import Role
from db.errors import DataError
from db.records import SCORE_MAX, SCORE_MIN, Conversation, Message, Score

REMEDY = f"A score is a number from {SCORE_MIN:g} to {SCORE_MAX:g}; leave it out if there is none."


def score_problem(value: object) -> str | None:
    """Return in words why `value` is no score, None if it is one."""
    if isinstance(value, bool) or not isinstance(value, int | float):
        return f"{_shorten(value)} is not a number"
    if isinstance(value, float) and not math.isfinite(value):
        return f"{value} is not a finite number"
    if not SCORE_MIN <= value <= SCORE_MAX:
        told = f"{value:g}" if abs(value) < 10**40 else "a number this large"
        return f"{told} is outside the range from {SCORE_MIN:g} to {SCORE_MAX:g}"
    return None


def check_score(value: float, where: str) -> None:
    """Refuse a value that is no score.

    Raises:
        DataError: naming `where`.
    """
    problem = score_problem(value)
    if problem is not None:
        raise DataError(problem, where=where, remedy=REMEDY)


def check_conversation(conversation: Conversation) -> None:
    """Refuse a conversation that cannot be stored as it is.

    Raises:
        DataError: if it has no message, scores a message that is no reply, or holds a value that
            is no score, a score without a rater or two by the same one.
    """
    name = f"conversation {conversation.title!r}" if conversation.title else "conversation"
    if not conversation.messages:
        raise DataError("there is no message", where=name, remedy="Add at least one message.")
    for number, message in enumerate(conversation.messages, start=1):
        is_scored = bool(message.scores) or message.adjudicated is not None
        if not is_scored and not message.tool_calls and not message.logprobs:
            continue
        where = f"{name}, message {number}"
        if is_scored and message.role is not Role.ASSISTANT:
            raise DataError(
                f"a {message.role} message carries a score",
                where=where,
                remedy="Only replies of the assistant are scored.",
            )
        if message.tool_calls and message.role is not Role.ASSISTANT:
            raise DataError(
                f"a {message.role} message makes tool calls",
                where=where,
                remedy="Only the assistant makes tool calls.",
            )
        _check_sampled(message, where)
        _check_scores(message.scores, where)
        if message.adjudicated is not None:
            _check_scores((message.adjudicated,), where)
    _check_scores(conversation.outcomes, f"{name}, outcome")


def _check_sampled(message: Message, where: str) -> None:
    logprobs = message.logprobs or ()
    if not all(math.isfinite(logprob) for logprob in logprobs):
        raise DataError(
            "a log-probability is not finite",
            where=where,
            remedy="Leave token ids and log-probabilities out; they will be computed again.",
        )
    if logprobs and len(logprobs) != len(message.token_ids or ()):
        raise DataError(
            f"there are {len(logprobs)} log-probabilities for {len(message.token_ids or ())} tokens",
            where=where,
            remedy="Leave both out; they will be computed again.",
        )


def _check_scores(scores: tuple[Score, ...], where: str) -> None:
    if len(scores) > 1 and len({score.rater for score in scores}) < len(scores):
        raise DataError(
            "one rater scores it twice", where=where, remedy="Keep one score for each rater."
        )
    for score in scores:
        if not score.rater.strip():
            raise DataError("a score names no rater", where=where, remedy="Say who scored it.")
        check_score(score.value, where)


def _shorten(value: object) -> str:
    text = repr(value)
    return text if len(text) <= 40 else f"{text[:37]}..."
