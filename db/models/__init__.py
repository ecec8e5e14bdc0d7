"""The tables. ORM objects stay inside `db`; what leaves it are the records of `db.records`."""

from db.models.adjudications import AdjudicationTable, AssignmentTable
from db.models.base import Base, now
from db.models.collecting import CollectedPromptTable, CollectionTable
from db.models.conversations import ConversationTable, MessageTable, MessageVersionTable, TagTable
from db.models.endpoints import EndpointTable
from db.models.imports import ImportedScoreTable, ImportTable
from db.models.labels import EventTable, OutcomeTable, PendingNoteTable, ReviewTable, ScoreTable
from db.models.runs import ArtifactTable, RunTable, StepMetricTable, TurnMetricTable
from db.models.settings import ProjectSettingsTable, UserSettingsTable
from db.models.users import RefusalTable, SessionTable, SignInFailureTable, UserTable

__all__ = [
    "AdjudicationTable",
    "ArtifactTable",
    "AssignmentTable",
    "Base",
    "CollectedPromptTable",
    "CollectionTable",
    "ConversationTable",
    "EndpointTable",
    "EventTable",
    "ImportTable",
    "ImportedScoreTable",
    "MessageTable",
    "MessageVersionTable",
    "OutcomeTable",
    "PendingNoteTable",
    "ProjectSettingsTable",
    "RefusalTable",
    "ReviewTable",
    "RunTable",
    "ScoreTable",
    "SessionTable",
    "SignInFailureTable",
    "StepMetricTable",
    "TagTable",
    "TurnMetricTable",
    "UserSettingsTable",
    "UserTable",
    "now",
]
