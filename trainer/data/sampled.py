"""Whether what was stored when a reply was sampled still belongs to it. No torch."""

import hashlib
from collections.abc import Sequence

from db.records import Message

PROMPT_MARK = "prompt_mark"
"""The key in `Message.sampling` under which the mark of the prompt's tokens is kept."""


def prompt_mark(prompt_ids: Sequence[int]) -> str:
    """Return a short text that tells the tokens of a prompt from others."""
    text = ",".join(str(token) for token in prompt_ids)
    return hashlib.sha256(text.encode("ascii")).hexdigest()[:16]


def why_not(message: Message, prompt_ids: Sequence[int], spelt: str) -> str:
    """Return why a reply's stored log-probabilities cannot be used; empty if they can.

    Args:
        message: The reply, with token ids and log-probabilities.
        prompt_ids: What the model sees before it now.
        spelt: What the stored ids spell, control tokens left out.
    """
    ids, logprobs = message.token_ids or (), message.logprobs or ()
    if len(ids) != len(logprobs) or spelt.strip() != message.content.strip():
        return "the stored tokens no longer spell the reply"
    mark = (message.sampling or {}).get(PROMPT_MARK)
    if mark is not None and mark != prompt_mark(prompt_ids):
        return "what the model sees before the reply has changed (a message, or the chat template)"
    return ""
