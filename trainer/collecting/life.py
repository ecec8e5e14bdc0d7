"""A collection's life as a process: begun, waiting for its turn, cancelled, gone on with. No torch."""

from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from pathlib import Path

from db import commands, queries
from db.engine import Database
from db.enums import CollectionState, Partner
from db.records import Collection, CollectionPlan, Conversation
from db.settings import Settings
from trainer.catalog import find_model, has_gpu
from trainer.config import Device
from trainer.detached import start_detached
from trainer.errors import BadDataError, ConfigError, TrainerError
from trainer.fields import Limits
from trainer.runs.folder import RunFolder
from trainer.runs.process import Mark, Sign, end, own_machine
from trainer.serving.talking import somebody_talks

START_GRACE = timedelta(seconds=30)
"""How long it may take until a process that was started is known."""

LIMITS = {
    "replies": Limits(low=1, high=32),
    "turns": Limits(low=1, high=32),
    "temperature": Limits(low=0, high=2),
    "top_p": Limits(low=0, high=1, exclusive=True),
    "max_tokens": Limits(low=1, high=4096),
    "seed": Limits(low=0, high=2**31 - 1),
}
"""The range of each number of a plan."""

MOST_PROMPTS = 2000

_DIED = (
    "The process that did it ended without a word, most often because the machine's memory ran "
    "out or somebody ended it. What it had stored is kept: go on with the rest."
)


def start_collection(
    database: Database,
    plan: CollectionPlan,
    prompts: Sequence[Conversation],
    *,
    start_token: str,
    user_id: int,
    in_background: bool = True,
) -> int:
    """Begin a collection and, if wanted, its process; return its id.

    Args:
        database: Where it is recorded.
        plan: What is asked of which model.
        prompts: What the conversations begin with.
        start_token: Any string; the same token gives the same collection, so two clicks begin one.
        user_id: Who asks.
        in_background: Whether a process is started here; else the caller does the work.

    Raises:
        ConfigError: if a number is out of range, or something is missing.
        BadDataError: if there is no prompt, or there are too many.
        ModelError: if there is no such base model.
        TrainerError: if the process cannot be started.
    """
    check_plan(database, plan, prompts)
    collection_id, is_new = commands.create_collection(
        database,
        plan,
        prompts,
        device=Device.CUDA.value if has_gpu() else Device.CPU.value,
        start_token=start_token,
        user_id=user_id,
    )
    if is_new and in_background:
        _spawn(database, collection_id)
    return collection_id


def check_plan(database: Database, plan: CollectionPlan, prompts: Sequence[Conversation]) -> None:
    """Refuse what cannot be collected; see `start_collection`."""
    for name, limits in LIMITS.items():
        value = plan.to_json()[name]
        if not limits.allow(value):
            raise ConfigError(
                f"{value} is out of range", where=name, remedy=f"It must be {limits}."
            )
    if plan.partner is Partner.SCRIPT and not plan.script:
        raise ConfigError(
            "the script is empty", where="script", remedy="Write one user turn a line."
        )
    if plan.partner is Partner.MODEL and not plan.persona.strip():
        raise ConfigError(
            "it is not said whom the model plays",
            where="the user's part",
            remedy="Say who the user is, what they want, and how they speak.",
        )
    if not prompts:
        raise BadDataError("there is no prompt", where="prompts", remedy="Give at least one.")
    if len(prompts) > MOST_PROMPTS:
        raise BadDataError(
            f"there are {len(prompts):,} prompts",
            where="prompts",
            remedy=f"Take at most {MOST_PROMPTS:,} at once.",
        )
    find_model(database.settings, plan.base_model)
    if plan.run_id is not None:
        _check_adapter(database, plan, plan.run_id)


def resume_collection(database: Database, collection_id: int) -> None:
    """Let a collection go on with the prompts that are not done; two clicks are one.

    Raises:
        NotFoundError, ConflictError: as `commands.go_on_collecting`.
        TrainerError: if the process cannot be started.
    """
    if commands.go_on_collecting(database, collection_id):
        _spawn(database, collection_id)


def cancel_collection(database: Database, collection_id: int) -> None:
    """End a collection; what it has stored stays. A prompt is stored whole, so nothing is half."""
    process = queries.collection(database, collection_id).process
    commands.end_collection(database, collection_id, CollectionState.CANCELLED)
    if process:
        mark = Mark.from_text(process)
        if mark.machine == own_machine():
            end(mark.pid, mark.started_at, force=True)


def reconcile_collections(database: Database) -> None:
    """End collections whose process is gone; only writes where something has changed."""
    for collection in queries.collections(database, CollectionState.COLLECTING):
        if collection.process:
            is_gone = Mark.from_text(collection.process).sign() in (Sign.GONE, Sign.RESTARTED)
        else:
            is_gone = datetime.now(UTC) - collection.changed_at > START_GRACE
        if is_gone:
            commands.end_collection(
                database, collection.id, CollectionState.FAILED, error_text=_DIED
            )


def goes_first(database: Database, collection: Collection) -> str:
    """Return in words what a collection gives the device up for, at any moment; else nothing."""
    run_id = queries.run_that_wants(database, collection.device)
    if run_id is not None:
        return f"run {run_id} has the device"
    if somebody_talks(database.settings, collection.device):
        return "somebody chats, and this goes on once they have been quiet for a minute"
    return ""


def held_by(database: Database, collection: Collection) -> str:
    """Return in words what a collection has to wait for; empty if it may have the device now.

    A run goes first, whether it has the device or waits for it; then whoever chats, since people
    wait for that; then collections in their order.
    """
    first = goes_first(database, collection)
    if first:
        return f"Waiting: {first}"
    reconcile_collections(database)
    earlier = [
        other.id
        for other in queries.collections(database, CollectionState.COLLECTING)
        if other.id < collection.id and other.device == collection.device
    ]
    return f"Waiting: collection {min(earlier)} comes first" if earlier else ""


def folder_of(settings: Settings, collection_id: int) -> Path:
    """Return the folder with the log and the lock of a collection's process."""
    return settings.home / "collections" / str(collection_id)


def _check_adapter(database: Database, plan: CollectionPlan, run_id: int) -> None:
    run = queries.run(database, run_id)
    if run.base_model != plan.base_model:
        raise ConfigError(
            f"run {run_id} was trained on {run.base_model}, not on {plan.base_model}",
            where="model",
            remedy=f"Choose {run.base_model} as the base model.",
        )
    if not RunFolder(database.settings.run_dir(run_id)).adapter.is_dir():
        raise ConfigError(
            f"run {run_id} has no adapter (any more)",
            where="model",
            remedy="Choose a finished run, or the base model.",
        )


def _spawn(database: Database, collection_id: int) -> None:
    log = folder_of(database.settings, collection_id) / "collect.log"
    command = ["trainer", "collect", str(collection_id), "--spawned"]
    try:
        mark = start_detached(database.settings, command, log)
    except OSError as error:
        text = f"The process could not be started ({error.strerror})."
        commands.end_collection(database, collection_id, CollectionState.FAILED, error_text=text)
        raise TrainerError(
            f"the process could not be started ({error.strerror})",
            where=f"collection {collection_id}",
            remedy="Make room on the disk or in memory, then go on with it.",
        ) from error
    if mark is not None:
        commands.record_collection_process(database, collection_id, str(mark))
