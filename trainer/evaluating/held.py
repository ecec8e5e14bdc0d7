"""The fixed set that runs are evaluated by: frozen into each run's folder, never trained on."""

from db import queries
from db.engine import Database
from db.formats import parse, write
from db.records import Conversation, ConversationFilter
from trainer.collecting.prompts import from_lines
from trainer.runs.folder import RunFolder, write_text

MOST_CONVERSATIONS = 64
"""So many openings are answered at most, before and after: each answer takes time."""


def evaluation_set(database: Database) -> list[Conversation]:
    """Return what the project's settings name: typed prompts, and conversations with the tag."""
    settings = queries.project_settings(database)
    found = from_lines(settings.evaluation_prompts)
    if settings.evaluation_tag:
        chosen = ConversationFilter(tags=(settings.evaluation_tag,), order="oldest")
        user_id = queries.local_user(database).id
        ids = queries.conversation_ids(database, chosen, user_id=user_id)
        found += queries.conversations(database, ids[:MOST_CONVERSATIONS])
    return found[:MOST_CONVERSATIONS]


def freeze_evaluation(database: Database, folder: RunFolder) -> None:
    """Write the run's own copy of the set, so that before and after are asked the same."""
    found = evaluation_set(database)
    if found:
        write_text(folder.evaluation, write(found, "native"))


def read_evaluation(folder: RunFolder) -> tuple[Conversation, ...]:
    """Return a run's own copy of the set; empty if it has none."""
    if not folder.evaluation.exists():
        return ()
    return parse(folder.evaluation.read_bytes(), format="native").conversations
