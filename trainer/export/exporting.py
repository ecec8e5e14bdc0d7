"""One way out for all forms: write into a temporary folder, load it again, compare, then keep it."""

import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import cast

import torch
from peft import LoraModel, PeftModel
from safetensors import SafetensorError
from transformers import AutoModelForCausalLM, GgufConfig, PreTrainedModel
from transformers.utils import logging as transformers_logging

from db.errors import StorageError
from db.settings import Settings
from trainer.adapter_config import CONFIG_FILE, WEIGHTS_FILE
from trainer.catalog import find_model
from trainer.config import TrainConfig
from trainer.errors import CheckpointError
from trainer.export.adapter import copy_adapter
from trainer.export.card import model_card, portable_name
from trainer.export.checking import EXACT_NATS, Check, Reference, compare, reference_of
from trainer.export.gguf_adapter import read_gguf_adapter, write_gguf_adapter
from trainer.export.gguf_model import write_gguf_model
from trainer.export.modelfile import modelfile
from trainer.export.usage import ADAPTER_FILE, MODEL_FILE, Form, GgufType
from trainer.models import load_base_model, load_tokenizer
from trainer.runs.failure import is_disk_full
from trainer.runs.folder import RunFolder, atomic_folder, read_json, write_text

CPU = torch.device("cpu")

NO_SPACE = "no space is left on the disk"

ROUNDING_NATS = {GgufType.F32: EXACT_NATS, GgufType.F16: 0.02, GgufType.Q8_0: 0.1}
"""Largest mean difference that a GGUF type's rounding explains."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Exported:
    """An export that was checked.

    Attributes:
        form: What it is.
        folder: Where it lies.
        check: How it compares with the trained model.
    """

    form: Form
    folder: Path
    check: Check


def export(
    run: RunFolder,
    form: Form,
    out: Path,
    settings: Settings,
    *,
    gguf_type: GgufType = GgufType.F16,
    report: Callable[[str], None] = lambda _: None,
) -> Exported:
    """Write a finished run's model in one of its forms; `out` appears only if it passed the check.

    Args:
        run: The run's folder.
        form: Which form.
        out: The folder to write, which must not exist.
        settings: Where base models are.
        gguf_type: How GGUF files hold their matrices.
        report: Told what is being done.

    Raises:
        CheckpointError: if the run has no adapter, `out` is taken, the model's kind has no such
            form, or what was written does not say what the trained model says.
        NotFiniteError: if the trained model says NaN.
        ModelError: if the base model cannot be had.
        StorageError: if it cannot be written, most often because the disk is full.
    """
    adapter = _adapter_of(run, out)
    config = TrainConfig.from_json(read_json(run.config))
    report("1/2 Asking the trained model.")
    reference = reference_of(config, adapter, settings)
    writer = {
        Form.ADAPTER: _write_adapter,
        Form.MERGED: _write_merged,
        Form.GGUF: _write_gguf,
        Form.GGUF_ADAPTER: _write_gguf_adapter,
    }[form]
    with _told_if_unwritable(out), atomic_folder(out) as temporary, _without_progress_bars():
        report("2/2 Writing it, loading it again, and comparing.")
        order = _Order(config, adapter, settings, gguf_type, reference, out)
        check = writer(order, temporary)
        card = model_card(config, run, settings, form, notes=[str(check)])
        write_text(temporary / "README.md", card)
    return Exported(form=form, folder=out, check=check)


@dataclass(frozen=True, slots=True)
class _Order:
    """What is to be exported."""

    config: TrainConfig
    adapter: Path
    settings: Settings
    gguf_type: GgufType
    reference: Reference
    out: Path

    def base(self) -> PreTrainedModel:
        return load_base_model(self.settings, self.config.base_model, device=CPU)

    def adapted(self, adapter: Path) -> PreTrainedModel:
        """Load the base with an adapter by peft, as anybody would."""
        base = self.base()
        _put_into(base, adapter)
        return base

    def merged(self) -> PreTrainedModel:
        adapted = cast(LoraModel, _put_into(self.base(), self.adapter).base_model)
        return adapted.merge_and_unload()  # pyright: ignore[reportReturnType]

    def compare(
        self, load: Callable[[], PreTrainedModel], *, mean_nats: float = EXACT_NATS
    ) -> Check:
        return compare(self.reference, load, mean_nats=mean_nats, where=self.out)

    def title(self) -> str:
        return portable_name(find_model(self.settings, self.config.base_model))


def _write_adapter(order: _Order, folder: Path) -> Check:
    copy_adapter(order.adapter, folder, base_name=order.title())
    return order.compare(lambda: order.adapted(folder))


def _write_merged(order: _Order, folder: Path) -> Check:
    merged = order.merged()
    merged.config._name_or_path = ""
    merged.save_pretrained(folder)
    load_tokenizer(order.settings, order.config.base_model).save_pretrained(folder)
    del merged
    return order.compare(
        lambda: AutoModelForCausalLM.from_pretrained(
            folder, dtype="auto", local_files_only=True, use_safetensors=True
        )
    )


def _write_gguf(order: _Order, folder: Path) -> Check:
    tokenizer = load_tokenizer(order.settings, order.config.base_model)
    path = folder / MODEL_FILE
    merged = order.merged()
    write_gguf_model(merged, tokenizer, path, order.gguf_type, name=order.title())
    write_text(folder / "Modelfile", modelfile(tokenizer, FROM=MODEL_FILE))

    def load() -> PreTrainedModel:
        return AutoModelForCausalLM.from_pretrained(
            folder,
            gguf_file=MODEL_FILE,
            config=merged.config,  # transformers overlooks a head's width in some kinds of files
            quantization_config=GgufConfig(dequantize=True),
            dtype=torch.float32,
        )

    return order.compare(load, mean_nats=ROUNDING_NATS[order.gguf_type])


def _write_gguf_adapter(order: _Order, folder: Path) -> Check:
    tokenizer = load_tokenizer(order.settings, order.config.base_model)
    base, path = order.base(), folder / ADAPTER_FILE
    write_gguf_adapter(base.config, order.adapter, path, order.gguf_type)
    write_text(folder / "Modelfile", modelfile(tokenizer, FROM="base.gguf", ADAPTER=ADAPTER_FILE))

    def load() -> PreTrainedModel:
        again = folder / ".again"
        read_gguf_adapter(base.config, path, like=order.adapter, into=again)
        try:
            return order.adapted(again)
        finally:
            for file in (CONFIG_FILE, WEIGHTS_FILE):
                (again / file).unlink()
            again.rmdir()

    return order.compare(load, mean_nats=ROUNDING_NATS[order.gguf_type])


def _put_into(base: PreTrainedModel, adapter: Path) -> PeftModel:
    """Put an adapter's layers into a base model."""
    with warnings.catch_warnings():
        # peft asks transformers for a name that transformers is about to drop.
        warnings.simplefilter("ignore", FutureWarning)
        return PeftModel.from_pretrained(base, str(adapter))


@contextmanager
def _told_if_unwritable(out: Path) -> Iterator[None]:
    """Put into words that the disk is full, or cannot be written; what was begun is gone by then."""
    try:
        yield
    except (OSError, SafetensorError) as error:
        reason = NO_SPACE if is_disk_full(error) else str(error).partition("\n")[0]
        raise StorageError(
            f"the export cannot be written ({reason})",
            where=str(out),
            remedy="Free some space on that disk, or choose another one, and make it again. "
            "Nothing half is left.",
        ) from error


@contextmanager
def _without_progress_bars() -> Iterator[None]:
    shown = transformers_logging.is_progress_bar_enabled()
    transformers_logging.disable_progress_bar()
    try:
        yield
    finally:
        if shown:
            transformers_logging.enable_progress_bar()


def _adapter_of(run: RunFolder, out: Path) -> Path:
    if not run.path.is_dir():
        raise CheckpointError(
            "there is no such run here (any more)",
            where=str(run.path),
            remedy="Take the number of a finished run, as the page Runs shows it.",
        )
    if not run.adapter.is_dir():
        raise CheckpointError(
            "this run has no adapter (yet)",
            where=str(run.path),
            remedy="Let it finish, or resume it with `python -m trainer resume`.",
        )
    if out.exists():
        raise CheckpointError(
            "there is something already", where=str(out), remedy="Choose another name."
        )
    return run.adapter
