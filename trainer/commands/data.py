"""The options that say what a run is made of, and what they stand for."""

import argparse
from pathlib import Path

from db.errors import DataError
from db.formats import parse
from db.records import Conversation
from trainer.assignments import parse_assignments
from trainer.catalog import default_model
from trainer.commands.console import say
from trainer.config import Device, Preset, TrainConfig


def add_data_options(parser: argparse.ArgumentParser) -> None:
    """Add --data, --model, --preset, --set and --device."""
    parser.add_argument("--data", type=Path, required=True, help="conversations (JSON or JSONL)")
    parser.add_argument("--model", help="listed name, hub id or folder of the base model")
    parser.add_argument(
        "--preset", type=Preset, choices=list(Preset), default=Preset.STANDARD, help="%(choices)s"
    )
    parser.add_argument(
        "--set", action="append", default=[], metavar="KEY=VALUE", help="change one setting"
    )
    parser.add_argument("--device", type=Device, choices=list(Device), default=Device.AUTO)


def read_config(options: argparse.Namespace) -> TrainConfig:
    """Return the configuration that the options ask for."""
    settings = parse_assignments(options.set)
    chosen = {"base_model": options.model or default_model(), "device": options.device}
    return TrainConfig.for_preset(options.preset, **{**chosen, **settings})


def read_conversations(path: Path) -> tuple[Conversation, ...]:
    """Read the data of a run; a file with a faulty row is refused, never trained on in part."""
    content = path.read_bytes()
    try:
        parsed = parse(content)
    except DataError as error:
        where = f"{path}, {error.where}" if error.where else str(path)
        raise DataError(error.what, where=where, remedy=error.remedy) from error
    if parsed.skipped:
        issue = parsed.skipped[0]
        more = f" ({len(parsed.skipped) - 1} more rows are faulty)" if parsed.skipped[1:] else ""
        raise DataError(
            f"{issue.reason}{more}",
            where=f"{path}, row {issue.row}, field {issue.field}",
            remedy=issue.remedy,
        )
    for warning in parsed.warnings:
        say(f"note: {warning}")
    return parsed.conversations
