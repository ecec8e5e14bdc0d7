"""`serve`: the chat endpoint."""

import argparse

from db.settings import read_settings
from trainer.commands.console import say
from trainer.config import Device

# ruff: noqa: PLC0415 - see the package


def add_commands(commands: "argparse._SubParsersAction[argparse.ArgumentParser]") -> None:
    """Add the subcommand."""
    serve = commands.add_parser("serve", help="OpenAI-compatible chat endpoint on 127.0.0.1")
    serve.add_argument("--port", type=int, default=8600, help="0 for any free one (%(default)s)")
    serve.add_argument("--model", help="listed name, hub id or folder of the base model")
    serve.add_argument("--device", type=Device, choices=list(Device), default=Device.AUTO)
    serve.add_argument(
        "--token", help="what clients must present (better: EVERYTURN_SERVE_TOKEN); default: new"
    )
    serve.add_argument(
        "--adapter", action="append", default=[], metavar="NAME=FOLDER", help="one more adapter"
    )
    serve.add_argument(
        "--idle-timeout", type=float, default=0, metavar="S", help="end after so many idle seconds"
    )
    serve.set_defaults(command=serve_models)


def serve_models(options: argparse.Namespace) -> int:
    """Answer chats until somebody ends it."""
    from trainer.catalog import default_model
    from trainer.serving.adapters import parse_named
    from trainer.serving.server import ServeOptions, serve

    chosen = ServeOptions(
        model=options.model or default_model(),
        port=options.port,
        device=options.device,
        token=options.token,
        adapters=parse_named(options.adapter),
        idle_timeout_s=options.idle_timeout,
    )
    serve(read_settings(), chosen, report=say)
    return 0
