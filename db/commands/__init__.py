"""Everything that changes the database: each command is one transaction."""

from db.commands.adding import add_conversation, add_conversations
from db.commands.adjudication import adjudicate, undo_adjudication
from db.commands.assigning import assign, distribute, unassign
from db.commands.conversations import (
    delete_conversations,
    duplicate_conversation,
    set_archived,
    set_tags,
    update_conversation,
)
from db.commands.figures import (
    add_artifact,
    add_step_metric,
    add_turn_metrics,
    discard_metrics_after,
)
from db.commands.run_life import (
    advance_stop,
    begin_run,
    claim_notice,
    end_run,
    heartbeat,
    record_process,
    request_stop,
)
from db.commands.run_queue import (
    claim_next_run,
    move_waiting_run,
    release_run,
    requeue_run,
)
from db.commands.runs import create_run, delete_run, rename_run, set_snapshot
from db.commands.scores import set_outcome, set_review, set_score, undo_score
from db.commands.settings import change_project_settings, set_keys

__all__ = [
    "add_artifact",
    "add_conversation",
    "add_conversations",
    "add_step_metric",
    "add_turn_metrics",
    "adjudicate",
    "advance_stop",
    "assign",
    "begin_run",
    "change_project_settings",
    "claim_next_run",
    "claim_notice",
    "create_run",
    "delete_conversations",
    "delete_run",
    "discard_metrics_after",
    "distribute",
    "duplicate_conversation",
    "end_run",
    "heartbeat",
    "move_waiting_run",
    "record_process",
    "release_run",
    "rename_run",
    "request_stop",
    "requeue_run",
    "set_archived",
    "set_keys",
    "set_outcome",
    "set_review",
    "set_score",
    "set_snapshot",
    "set_tags",
    "unassign",
    "undo_adjudication",
    "undo_score",
    "update_conversation",
]
