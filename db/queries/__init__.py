"""Everything that is read from the database: a `Database` in, frozen records out."""

from db.queries.assigning import assigned_names, workloads
from db.queries.conversations import (
    all_sources,
    all_tags,
    conversation,
    conversation_ids,
    conversation_rows,
    conversations,
    count_conversations,
)
from db.queries.labelling import next_unscored, review_state, score_events
from db.queries.overview import local_user, overview
from db.queries.runs import (
    artifacts,
    new_turn_metrics,
    queue_position,
    run,
    runs,
    runs_ended_after,
    runs_with_status,
    step_metrics,
    turn_metrics,
)
from db.queries.same import ids_of_same
from db.queries.settings import project_settings, user_settings

__all__ = [
    "all_sources",
    "all_tags",
    "artifacts",
    "assigned_names",
    "conversation",
    "conversation_ids",
    "conversation_rows",
    "conversations",
    "count_conversations",
    "ids_of_same",
    "local_user",
    "new_turn_metrics",
    "next_unscored",
    "overview",
    "project_settings",
    "queue_position",
    "review_state",
    "run",
    "runs",
    "runs_ended_after",
    "runs_with_status",
    "score_events",
    "step_metrics",
    "turn_metrics",
    "user_settings",
    "workloads",
]
