"""Everything the pages read, cached for a moment, and the one door through which they write.

Reads of runs first let `trainer.runs.reconcile` find dead processes, so that no page ever shows a
run as alive that is not.
"""

import io
from collections.abc import Callable, Sequence
from datetime import datetime
from typing import Any, Concatenate, ParamSpec, TypeVar

import streamlit as st

from app import auth, permissions
from app.connection import database, settings
from app.import_jobs import reconcile_imports
from db import queries
from db.engine import Database
from db.enums import ReviewState, RunStatus
from db.exporting import export as export_to
from db.records import (
    Artifact,
    Collection,
    Conversation,
    ConversationFilter,
    ConversationRow,
    Endpoint,
    FilterOptions,
    Import,
    NewTurnMetrics,
    Overview,
    OwnTurn,
    Pace,
    Person,
    ProjectSettings,
    QueueCounts,
    Refusal,
    Round,
    Run,
    ScoreEvent,
    StepMetric,
    TurnChange,
    TurnMetric,
    UndoEffects,
    UserSettings,
    Workload,
)
from db.records.agreement import AgreementFigures, SharedTurn
from db.records.insight import Insight
from trainer.collecting.life import reconcile_collections
from trainer.runs.lineage import chain_of
from trainer.runs.reconcile import reconcile

P = ParamSpec("P")
T = TypeVar("T")

ROWS_TTL_S = 2.0
"""How long another process's writes may stay unseen; our own are seen at once (`write`)."""


def write(command: Callable[Concatenate[Database, P], T], *args: P.args, **kwargs: P.kwargs) -> T:
    """Run a command that changes the database, and forget every row read before it.

    Example: `data.write(commands.set_tags, [3], ("support",))`.

    Raises:
        RefusedError: if the signed-in person may not run it (`app.permissions`).
        NotSignedInError: if nobody is signed in.
    """
    permissions.check(database(), auth.acting_user(), command, kwargs)
    try:
        return command(database(), *args, **kwargs)
    finally:
        refresh()


def refresh() -> None:
    """Forget what was read, so that the next read sees the database as it is now."""
    _cached.clear()


def overview() -> Overview:
    """Return the numbers of the home page."""
    _reconcile()
    return _read(queries.overview)


def project_settings() -> ProjectSettings:
    """Return what holds for everybody who works on the project."""
    return _read(queries.project_settings)


def endpoints() -> list[Endpoint]:
    """Return the endpoints that runs can be sent to, by name."""
    return _read(queries.endpoints)


def refusals(*, limit: int) -> list[Refusal]:
    """Return the latest attempts that were refused, newest first; for admins.

    Raises:
        RefusedError: if an annotator asks.
    """
    permissions.require_admin(database(), auth.current_user(), "see the refusals")
    return _read(queries.refusals, limit=limit)


def user_settings(*, user_id: int) -> UserSettings:
    """Return what one person has set for themselves."""
    return _read(queries.user_settings, user_id=user_id)


def data_version() -> tuple[int, ...]:
    """Return numbers that change with everything that agreement and insight are made of."""
    return _read(queries.data_version)


def agreement_figures(*, sample_turns: int) -> AgreementFigures:
    """Return what agreement is told by; not cached: `app.analysis` keeps what it makes of it."""
    return queries.agreement_figures(database(), sample_turns=sample_turns)


def insight() -> Insight:
    """Return what all scores together say; not cached: `app.analysis` keeps it."""
    return queries.insight_figures(database())


def texts(ids: Sequence[int]) -> dict[int, str]:
    """Return all that is said in each of some conversations; not cached: it may be much."""
    return queries.texts(database(), ids)


def people() -> list[Person]:
    """Return everybody who may sign in or has scored a turn, by name."""
    return _read(queries.people)


def workloads() -> list[Workload]:
    """Return how much each person was asked to score and has handled."""
    return _read(queries.workloads)


def count_shared_turns(*, least_spread: float, undecided: bool) -> int:
    """Return how many turns several people scored, at least so far apart."""
    return _read(queries.count_shared_turns, least_spread=least_spread, undecided=undecided)


def shared_turns(*, least_spread: float, undecided: bool, limit: int) -> list[SharedTurn]:
    """Return the turns that people disagree on, those with the widest spread first."""
    return _read(queries.shared_turns, least_spread=least_spread, undecided=undecided, limit=limit)


def count_conversations(filter: ConversationFilter, *, user_id: int) -> int:
    """Return how many conversations the filter lets through."""
    return _read(queries.count_conversations, filter, user_id=user_id)


def conversation_rows(
    filter: ConversationFilter, *, user_id: int, limit: int = 50, offset: int = 0
) -> list[ConversationRow]:
    """Return one page of the conversations table."""
    return _read(queries.conversation_rows, filter, user_id=user_id, limit=limit, offset=offset)


def conversation_ids(filter: ConversationFilter, *, user_id: int) -> list[int]:
    """Return the ids of all conversations the filter lets through, in its order."""
    return _read(queries.conversation_ids, filter, user_id=user_id)


def conversation(conversation_id: int) -> Conversation:
    """Return one conversation.

    Raises:
        NotFoundError: if there is none with this id.
    """
    return _read(queries.conversation, conversation_id)


def conversations(ids: tuple[int, ...]) -> list[Conversation]:
    """Return several conversations in the order of their ids."""
    return _read(queries.conversations, ids)


def next_unscored(*, user_id: int, ids: tuple[int, ...] | None = None) -> tuple[int, int] | None:
    """Return the first (conversation, message) that this person has not scored, if any."""
    return _read(queries.next_unscored, user_id=user_id, ids=ids)


def queue_counts(filter: ConversationFilter, *, user_id: int) -> QueueCounts:
    """Return how many conversations and turns a person's queue holds."""
    return _read(queries.queue_counts, filter, user_id=user_id)


def matching_ids(filter: ConversationFilter, ids: tuple[int, ...], *, user_id: int) -> set[int]:
    """Return which of these conversations the filter lets through."""
    return _read(queries.matching_ids, filter, ids, user_id=user_id)


def last_place(*, user_id: int) -> int | None:
    """Return the conversation in which this person made their latest change."""
    return _read(queries.last_place, user_id=user_id)


def pending_notes(*, user_id: int, conversation_id: int) -> dict[int, str]:
    """Return a person's notes that wait for a score, by message."""
    return _read(queries.pending_notes, user_id=user_id, conversation_id=conversation_id)


def todays_pace(*, user_id: int) -> Pace:
    """Return how a person's labelling goes today, by this machine's clock."""
    midnight = datetime.now().astimezone().replace(hour=0, minute=0, second=0, microsecond=0)
    return _read(queries.pace, user_id=user_id, since=midnight)


def own_turns(*, user_id: int, conversation_id: int) -> tuple[OwnTurn, ...]:
    """Return a conversation's assistant turns with a person's own scores."""
    return _read(queries.own_turns, user_id=user_id, conversation_id=conversation_id)


def has_turns() -> bool:
    """Return whether there is anything to score."""
    return _read(queries.has_turns)


def filter_options() -> FilterOptions:
    """Return what there is to filter conversations by."""
    return _read(queries.filter_options)


def turn_history(message_id: int) -> list[TurnChange]:
    """Return what became of one turn, newest first."""
    return _read(queries.turn_history, message_id)


def all_tags() -> list[str]:
    """Return every tag in use."""
    return _read(queries.all_tags)


def all_sources() -> list[str]:
    """Return every source conversations came from."""
    return _read(queries.all_sources)


def review_state(*, user_id: int, conversation_id: int) -> ReviewState:
    """Return where a conversation stands in a person's queue."""
    return _read(queries.review_state, user_id=user_id, conversation_id=conversation_id)


def score_events(
    *, conversation_id: int | None = None, user_id: int | None = None, limit: int = 100
) -> list[ScoreEvent]:
    """Return the latest changes to scores, newest first."""
    return _read(
        queries.score_events, conversation_id=conversation_id, user_id=user_id, limit=limit
    )


def import_(import_id: int) -> Import:
    """Return one import as it stands at this moment.

    Raises:
        NotFoundError: if there is none with this id.
    """
    auth.current_user()
    reconcile_imports(database())
    return queries.import_(database(), import_id)


def imports() -> list[Import]:
    """Return the latest imports, newest first."""
    auth.current_user()
    reconcile_imports(database())
    return queries.imports(database(), limit=20)


def collection(collection_id: int) -> Collection:
    """Return one collection as it stands at this moment.

    Raises:
        NotFoundError: if there is none with this id.
    """
    auth.current_user()
    reconcile_collections(database())
    return queries.collection(database(), collection_id)


def collections() -> list[Collection]:
    """Return the latest collections, newest first."""
    auth.current_user()
    reconcile_collections(database())
    return queries.collections(database(), limit=20)


def undo_effects(import_id: int) -> UndoEffects:
    """Return what undoing an import would take away."""
    auth.current_user()
    return queries.undo_effects(database(), import_id)


def export(filter: ConversationFilter, *, user_id: int, format: str) -> bytes:
    """Return a file with all conversations that the filter lets through, in its order."""
    stream = io.BytesIO()
    export_to(database(), conversation_ids(filter, user_id=user_id), format, stream)
    return stream.getvalue()


def run(run_id: int) -> Run:
    """Return one run.

    Raises:
        NotFoundError: if there is none with this id.
    """
    _reconcile()
    return _read(queries.run, run_id)


def runs() -> list[Run]:
    """Return all runs, newest first."""
    _reconcile()
    return _read(queries.runs)


def runs_with_status(*statuses: RunStatus) -> list[Run]:
    """Return the runs in any of these states, oldest first."""
    _reconcile()
    return _read(queries.runs_with_status, *statuses)


def runs_ended_after(moment: datetime) -> list[Run]:
    """Return the runs that have ended since a moment, the latest end first."""
    _reconcile()
    return _read(queries.runs_ended_after, moment)


def queue_position(run_id: int) -> int | None:
    """Return how many runs wait before this one; None if it does not wait itself."""
    return _read(queries.queue_position, run_id)


def turn_metrics(run_id: int, *, conversation: int | None = None) -> list[TurnMetric]:
    """Return a run's per-turn figures, of all conversations or of one, in order of steps.

    Not cached: there may be many. `app.metrics` keeps what the charts need.
    """
    return queries.turn_metrics(database(), run_id, conversation=conversation)


def new_turn_metrics(run_id: int, *, mark: int) -> NewTurnMetrics:
    """Return a run's per-turn figures that were written behind a mark; 0 asks for all of them."""
    return queries.new_turn_metrics(database(), run_id, mark=mark)


def step_metrics(run_id: int, *, after_step: int = -1) -> list[StepMetric]:
    """Return a run's per-step figures after `after_step`, in order."""
    return queries.step_metrics(database(), run_id, after_step=after_step)


def ids_of_same(conversations: tuple[Conversation, ...]) -> tuple[int, ...]:
    """Return the ids of the stored conversations with the same messages, in the given order."""
    return queries.ids_of_same(database(), conversations)


def latest_step_metrics(run_id: int, *, most: int) -> list[StepMetric]:
    """Return a run's figures of its last optimiser steps, at most so many, in order."""
    return _read(queries.latest_step_metrics, run_id, most=most)


def rounds(run_id: int) -> tuple[Round, ...]:
    """Return the chain of runs that started from each other, up to and with this one."""
    return _read(chain_of, run_id)


def next_rounds(run_id: int) -> list[Run]:
    """Return the runs that started from this run's adapter, oldest first."""
    return _read(queries.next_rounds, run_id)


def artifacts(run_id: int) -> list[Artifact]:
    """Return what a run left in its folder."""
    return _read(queries.artifacts, run_id)


@st.cache_data(ttl=ROWS_TTL_S, max_entries=2000, show_spinner=False)
def _cached(
    _query: Callable[..., Any],
    name: str,
    address: str,
    args: tuple[Any, ...],
    kwargs: dict[str, Any],
) -> Any:
    return _query(database(), *args, **kwargs)


def _read(query: Callable[Concatenate[Database, P], T], *args: P.args, **kwargs: P.kwargs) -> T:
    auth.current_user()  # a page that stays open shows nothing more once its person has left
    return _cached(query, query.__name__, settings().database_url, args, kwargs)


def _reconcile() -> None:
    _read(reconcile)
