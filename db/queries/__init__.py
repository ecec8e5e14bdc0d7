"""Everything that is read from the database: a `Database` in, frozen records out."""

from db.queries.agreement import agreement_figures, count_shared_turns, shared_turns
from db.queries.assigning import assigned_names, workloads
from db.queries.collecting import collection, collections, prompts_left, run_that_wants
from db.queries.conversations import (
    all_sources,
    all_tags,
    conversation,
    conversation_ids,
    conversation_rows,
    conversations,
    count_conversations,
    filter_options,
    matching_ids,
)
from db.queries.endpoints import endpoint, endpoints
from db.queries.history import turn_history
from db.queries.imports import import_, imports, undo_effects
from db.queries.insight import data_version, insight_figures, texts
from db.queries.labelling import (
    edited_at,
    has_turns,
    last_place,
    next_unscored,
    own_turns,
    pace,
    pending_notes,
    queue_counts,
    review_state,
    score_events,
)
from db.queries.lineage import ancestors, last_kl_base, mean_score, next_rounds
from db.queries.overview import local_user, overview
from db.queries.runs import (
    artifacts,
    latest_step_metrics,
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
from db.queries.users import admitted_user, people, refusals, session_user

__all__ = [
    "admitted_user",
    "agreement_figures",
    "all_sources",
    "all_tags",
    "ancestors",
    "artifacts",
    "assigned_names",
    "collection",
    "collections",
    "conversation",
    "conversation_ids",
    "conversation_rows",
    "conversations",
    "count_conversations",
    "count_shared_turns",
    "data_version",
    "edited_at",
    "endpoint",
    "endpoints",
    "filter_options",
    "has_turns",
    "ids_of_same",
    "import_",
    "imports",
    "insight_figures",
    "last_kl_base",
    "last_place",
    "latest_step_metrics",
    "local_user",
    "matching_ids",
    "mean_score",
    "new_turn_metrics",
    "next_rounds",
    "next_unscored",
    "overview",
    "own_turns",
    "pace",
    "pending_notes",
    "people",
    "project_settings",
    "prompts_left",
    "queue_counts",
    "queue_position",
    "refusals",
    "review_state",
    "run",
    "run_that_wants",
    "runs",
    "runs_ended_after",
    "runs_with_status",
    "score_events",
    "session_user",
    "shared_turns",
    "step_metrics",
    "texts",
    "turn_history",
    "turn_metrics",
    "undo_effects",
    "user_settings",
    "workloads",
]
