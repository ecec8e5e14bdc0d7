"""Who can be talked to: base models that are here, and the adapters that runs left for each."""

from app import data
from app.chat_tree import BASE, lane_of, run_of
from app.components.format import plain, shortened
from app.run_files import folder
from db.enums import RunStatus
from db.records import Run
from trainer import catalog


def adapters_for(base_model: str) -> list[Run]:
    """Return the runs whose adapters fit a base model, newest first."""
    return [
        run
        for run in data.runs()
        if run.base_model == base_model and folder(run.id).adapter.is_dir()
    ]


def run_on(device: str) -> Run | None:
    """Return the run that holds a device, if one does."""
    active = [status for status in RunStatus if status.has_process]
    return next((run for run in data.runs_with_status(*active) if run.device == device), None)


def base_models() -> list[str]:
    """Return the base models that are on this machine, and those that adapters were trained on."""
    here = [model.name for model in catalog.list_models(data.settings()) if model.available]
    trained = [run.base_model for run in data.runs() if folder(run.id).adapter.is_dir()]
    return list(dict.fromkeys([*here, *trained]))


def default_base_model() -> str:
    """Return the base model to talk to: that of the newest adapter, else what suits this machine."""
    trained = [run.base_model for run in data.runs() if folder(run.id).adapter.is_dir()]
    if trained:
        return trained[0]
    usual = catalog.default_model()
    here = base_models()
    return usual if usual in here or not here else here[0]


def lanes_for(base_model: str) -> tuple[str, ...]:
    """Return the base model, and beside it the newest adapter, if there is one."""
    return (BASE, *(lane_of(run.id) for run in adapters_for(base_model)[:1]))


def base_title(name: str) -> str:
    """Return what people call a base model."""
    found = next((m for m in catalog.list_models(data.settings()) if m.name == name), None)
    return found.title if found else name.rpartition("/")[2]


def lane_title(lane: str) -> str:
    """Return what people call a model of a chat, as Markdown."""
    run_id = run_of(lane)
    if run_id is None:
        return "Base model"
    name = next((run.name for run in data.runs() if run.id == run_id), "")
    return f"Run {run_id}: {plain(shortened(name, 30))}" if name else f"Run {run_id}"
