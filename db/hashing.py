"""What makes two conversations the same: a hash of what was said."""

import hashlib
import json

from db.records import Conversation
from db.text import clean_json


def content_hash(conversation: Conversation) -> str:
    """Return a hash over system prompt and messages (role, content, tool calls).

    Scores, notes, titles, tags and times do not count: the same conversation that two people
    scored is one conversation.
    """
    said = [
        conversation.system,
        *([m.role.value, m.content, list(m.tool_calls)] for m in conversation.messages),
    ]
    text = json.dumps(clean_json(said), sort_keys=True, separators=(",", ":"))
    return hashlib.sha256(text.encode()).hexdigest()
