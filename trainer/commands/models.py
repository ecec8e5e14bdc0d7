"""`models` and `pull`: which base models there are, and making one available offline."""

import argparse
import json

from db.settings import read_settings
from trainer.commands.console import say

# ruff: noqa: PLC0415 - see the package


def add_commands(commands: "argparse._SubParsersAction[argparse.ArgumentParser]") -> None:
    """Add the subcommands."""
    models = commands.add_parser("models", help="list base models and where each comes from")
    models.add_argument("--json", action="store_true", help="print one JSON object")
    models.set_defaults(command=show_models)

    pull = commands.add_parser("pull", help="make a base model available offline")
    pull.add_argument("model", help="listed name or hub id")
    pull.set_defaults(command=pull_model)


def show_models(options: argparse.Namespace) -> int:
    """List base models."""
    from trainer.catalog import default_model, list_models

    models, default = list_models(read_settings()), default_model()
    if options.json:
        rows = [
            {
                "name": model.name,
                "title": model.title,
                "parameters": model.parameters,
                "source": model.source,
                "hub_id": model.hub_id,
                "available": model.available,
                "default": model.name == default,
                "note": model.note,
            }
            for model in models
        ]
        print(json.dumps({"models": rows}))
        return 0
    for model in models:
        state = "here" if model.available else f"from {model.source}"
        mark = "*" if model.name == default else " "
        print(f"{mark} {model.name:40} {model.parameters:>6}  {state:14} {model.note}")
    print("\n* the default on this machine. Any hub id or local folder of a causal LM works too.")
    return 0


def pull_model(options: argparse.Namespace) -> int:
    """Make a base model available offline."""
    from trainer.models import pull

    pull(read_settings(), options.model, report=say)
    return 0
