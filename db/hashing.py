"""What makes two conversations the same: a hash of what was said."""

import hashlib
import json

from db.records import Conversation
from db.text import clean, clean_json


def content_hash(conversation: Conversation) -> str:
    """Return a hash over system prompt, messages (role, content, tool calls) and tools.

    Scores, notes, titles, tags and times do not count: the same conversation that two people
    scored is one conversation.
    """
    said: list[object] = [
        clean(conversation.system),
        *(
            [message.role.value, clean(message.content), clean_json(message.tool_calls)]
            for message in conversation.messages
        ),
    ]
    if conversation.tools:  # those without keep the hash that they always had
        said.append({"tools": clean_json(conversation.tools)})
    text = json.dumps(said, sort_keys=True, separators=(",", ":"))
    return hashlib.sha256(text.encode()).hexdigest()
