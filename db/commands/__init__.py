"""Everything that changes the database: each command is one transaction."""

from db.commands.adding import add_conversation, add_conversations
from db.commands.adjudication import adjudicate
from db.commands.assigning import assign, distribute, unassign
from db.commands.chats import keep_chat
from db.commands.collecting import (
    create_collection,
    end_collection,
    forget_collection,
    go_on_collecting,
    record_collection_process,
    report_collection,
    store_collected,
)
from db.commands.conversations import (
    add_tags,
    delete_conversations,
    duplicate_conversation,
    set_archived,
    set_tags,
    update_conversation,
)
from db.commands.endpoints import forget_endpoint, set_endpoint
from db.commands.figures import (
    add_artifact,
    add_step_metric,
    add_step_metrics,
    add_turn_metrics,
    discard_metrics_after,
    report,
)
from db.commands.imports import (
    cancel_import,
    check_import,
    create_import,
    discard_import,
    fail_import,
    name_import_files,
    record_import_process,
    report_import_progress,
    settle_check,
    start_import,
    undo_import,
)
from db.commands.people import admit_person, dismiss_person
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
from db.commands.scores import (
    score_remaining,
    set_note,
    set_outcome,
    set_outcome_note,
    set_review,
    set_score,
)
from db.commands.sessions import TooManyAttemptsError, log_refusal, sign_in, sign_out
from db.commands.settings import change_project_settings, set_keys
from db.commands.undoing import redo, redo_adjudication, undo, undo_adjudication

__all__ = [
    "TooManyAttemptsError",
    "add_artifact",
    "add_conversation",
    "add_conversations",
    "add_step_metric",
    "add_step_metrics",
    "add_tags",
    "add_turn_metrics",
    "adjudicate",
    "admit_person",
    "advance_stop",
    "assign",
    "begin_run",
    "cancel_import",
    "change_project_settings",
    "check_import",
    "claim_next_run",
    "claim_notice",
    "create_collection",
    "create_import",
    "create_run",
    "delete_conversations",
    "delete_run",
    "discard_import",
    "discard_metrics_after",
    "dismiss_person",
    "distribute",
    "duplicate_conversation",
    "end_collection",
    "end_run",
    "fail_import",
    "forget_collection",
    "forget_endpoint",
    "go_on_collecting",
    "heartbeat",
    "keep_chat",
    "log_refusal",
    "move_waiting_run",
    "name_import_files",
    "record_collection_process",
    "record_import_process",
    "record_process",
    "redo",
    "redo_adjudication",
    "release_run",
    "rename_run",
    "report",
    "report_collection",
    "report_import_progress",
    "request_stop",
    "requeue_run",
    "score_remaining",
    "set_archived",
    "set_endpoint",
    "set_keys",
    "set_note",
    "set_outcome",
    "set_outcome_note",
    "set_review",
    "set_score",
    "set_snapshot",
    "set_tags",
    "settle_check",
    "sign_in",
    "sign_out",
    "start_import",
    "store_collected",
    "unassign",
    "undo",
    "undo_adjudication",
    "undo_import",
    "update_conversation",
]
