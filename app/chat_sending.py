"""From a chat to conversations that can be labelled: with tokens, log-probabilities and settings.

The rule for votes: the better reply's turn gets 1, the other one the lowest score of the project's
scale; "about the same" gives both the middle, "both are bad" both the lowest. Both conversations
stand as one group, so that training holds the one reply against the other.
"""

from collections.abc import Iterable, Sequence
from dataclasses import asdict, replace

from app import data
from app.chat_tree import Chat, Reply, Turn, Vote, opening_of, run_of
from app.components.format import shortened
from app.components.label_scale import SCALES
from db.enums import Role
from db.records import SCORE_MAX, Conversation, Message
from trainer.data.sampled import PROMPT_MARK

SOURCE = "chat"
"""What conversations from here are filed under."""


def conversations_of(chat: Chat) -> list[Conversation]:
    """Return what was said on the path that is shown, once for each model; the same only once.

    Conversations with several models share a group, as they answer the same first question.
    """
    lanes = tuple(dict.fromkeys(lane for turn in chat.path for lane in turn.order))
    found: list[Conversation] = []
    for lane in lanes:
        messages = _messages(chat.path, lane)
        if any(message.role is Role.ASSISTANT for message in messages):
            conversation = _conversation(chat, messages)
            if conversation not in found:
                found.append(conversation)
    if len(found) > 1:
        key = f"chat-{chat.id}-{chat.path[0].id}"
        found = [replace(conversation, group=key) for conversation in found]
    return found


def pair_of(chat: Chat, turn: Turn) -> list[Conversation]:
    """Return the two conversations that a vote compares: the same prompt, and either reply."""
    path = replace(chat, leaf=turn.id).path
    before = _messages(path[:-1], turn.order[0])
    found: list[Conversation] = []
    for lane in turn.order:
        reply = turn.reply(lane)
        assert reply is not None  # nobody votes before both have answered
        asked = Message(role=Role.USER, content=turn.asked)
        messages = [*before, asked, _message(reply, _known_runs())]
        group = f"chat-{chat.id}-{turn.id}"
        found.append(replace(_conversation(chat, messages), group=group))
    return found


def scores_of(vote: Vote) -> tuple[float, float]:
    """Return the scores of the first and the second reply; the rule above."""
    low = SCALES[data.project_settings().scale].low
    middle = (low + SCORE_MAX) / 2
    return {
        Vote.FIRST: (SCORE_MAX, low),
        Vote.SECOND: (low, SCORE_MAX),
        Vote.SAME: (middle, middle),
        Vote.BAD: (low, low),
    }[vote]


def _conversation(chat: Chat, messages: Sequence[Message]) -> Conversation:
    opening = opening_of(chat)
    earlier = opening.messages if opening else ()
    first = next(message for message in messages if message.role is Role.USER)
    return Conversation(
        messages=(*earlier, *messages),
        title=shortened((opening.title if opening else "") or first.content),
        system=chat.system,
        tools=chat.tools,
        source=SOURCE,
    )


def _messages(path: Iterable[Turn], lane: str) -> list[Message]:
    """Return what was said with one model, up to its last answer."""
    runs = _known_runs()
    messages: list[Message] = []
    for turn in path:
        answer = turn.answer(lane)
        messages.append(Message(role=Role.USER, content=turn.asked))
        if answer is not None:
            messages.append(_message(answer, runs))
    while messages and messages[-1].role is Role.USER:
        messages.pop()
    return messages


def _message(reply: Reply, runs: set[int]) -> Message:
    run_id = run_of(reply.lane)
    return Message(
        role=Role.ASSISTANT,
        content=reply.text,
        model=reply.base_model if run_id is None else f"{reply.base_model}, run {run_id}",
        run_id=run_id if run_id in runs else None,
        token_ids=reply.token_ids or None,
        logprobs=reply.logprobs or None,
        sampling={
            **asdict(reply.sampling),
            "ending": reply.ending.value,
            "weights": reply.fingerprint,
            **({PROMPT_MARK: reply.prompt_mark} if reply.prompt_mark else {}),
        },
    )


def _known_runs() -> set[int]:
    return {run.id for run in data.runs()}
