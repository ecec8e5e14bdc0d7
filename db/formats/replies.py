"""Scored replies with their prompts: what trainers of other libraries take."""

import hashlib
import json
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any

from db.enums import Role
from db.formats.openai import write_message, write_messages
from db.records import Conversation, Message
from db.text import clean_json


@dataclass(frozen=True, slots=True)
class ScoredReply:
    """One assistant turn that somebody scored.

    Attributes:
        index: Its place among the conversation's messages.
        score: The mean over its raters.
        prompt_hash: A hash of all that was said before, and of the tools.
    """

    conversation: Conversation
    index: int
    score: float
    prompt_hash: bytes

    @property
    def message(self) -> Message:
        """The reply."""
        return self.conversation.messages[self.index]

    def prompt(self) -> list[dict[str, Any]]:
        """Return all that was said before as messages, the system prompt first."""
        messages = write_messages(self.conversation)
        lead = len(messages) - len(self.conversation.messages)
        return messages[: lead + self.index]


def scored_replies(conversations: Iterable[Conversation]) -> Iterator[ScoredReply]:
    """Yield each scored reply once, however many conversations it begins.

    A reply without anything before it has no prompt and is left out. Where branches of a tree
    repeat a turn with the same prompt and reply, the first one stands for all.
    """
    seen: set[bytes] = set()
    for conversation in conversations:
        opening = clean_json([conversation.system, conversation.tools])
        digest = hashlib.sha256(json.dumps(opening, sort_keys=True).encode())
        for index, message in enumerate(conversation.messages):
            prompt_hash = digest.digest()
            said = json.dumps(clean_json(write_message(message)), sort_keys=True)
            digest.update(said.encode())
            has_prompt = index > 0 or bool(conversation.system)
            if message.role is not Role.ASSISTANT or not message.scores or not has_prompt:
                continue
            if digest.digest() in seen:
                continue
            seen.add(digest.digest())
            values = [score.value for score in message.scores]
            mean = values[0] if len(set(values)) == 1 else sum(values) / len(values)
            yield ScoredReply(conversation, index, mean, prompt_hash)
