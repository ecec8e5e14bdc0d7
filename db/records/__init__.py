"""The frozen records that enter and leave the database: plain data, no session behind them.

One `Conversation` type serves typed, imported, stored and snapshotted conversations alike: the
`id` fields are None until the database has given them.
"""

from db.records.collecting import Collection, CollectionPlan
from db.records.conversations import (
    IMPORTED_RATER,
    SCORE_MAX,
    SCORE_MIN,
    Conversation,
    Message,
    Score,
)
from db.records.endpoints import Endpoint
from db.records.imports import (
    HubSet,
    Import,
    ImportFile,
    ImportIssue,
    ImportReport,
    IssueOutcome,
    UndoEffects,
)
from db.records.labels import OwnTurn, Pace, QueueCounts, ScoreEvent, TurnChange, Workload
from db.records.lineage import Round
from db.records.overviews import (
    ConversationFilter,
    ConversationOrder,
    ConversationRow,
    FilterOptions,
    Overview,
    ScoredFilter,
)
from db.records.runs import Artifact, NewTurnMetrics, Run, StepMetric, TurnMetric
from db.records.settings import DEFAULT_KEYS, ProjectSettings, UserSettings
from db.records.users import Person, Refusal, User

__all__ = [
    "DEFAULT_KEYS",
    "IMPORTED_RATER",
    "SCORE_MAX",
    "SCORE_MIN",
    "Artifact",
    "Collection",
    "CollectionPlan",
    "Conversation",
    "ConversationFilter",
    "ConversationOrder",
    "ConversationRow",
    "Endpoint",
    "FilterOptions",
    "HubSet",
    "Import",
    "ImportFile",
    "ImportIssue",
    "ImportReport",
    "IssueOutcome",
    "Message",
    "NewTurnMetrics",
    "Overview",
    "OwnTurn",
    "Pace",
    "Person",
    "ProjectSettings",
    "QueueCounts",
    "Refusal",
    "Round",
    "Run",
    "Score",
    "ScoreEvent",
    "ScoredFilter",
    "StepMetric",
    "TurnChange",
    "TurnMetric",
    "UndoEffects",
    "User",
    "UserSettings",
    "Workload",
]
