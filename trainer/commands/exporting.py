"""`export`: take a run's model away, in one of four forms, and upload it if wanted."""

import argparse
import getpass
import sys
from pathlib import Path

from db.settings import read_settings
from trainer.commands.console import is_id, say
from trainer.export.usage import Form, GgufType
from trainer.runs.folder import RunFolder

# ruff: noqa: PLC0415 - see the package


def add_commands(commands: "argparse._SubParsersAction[argparse.ArgumentParser]") -> None:
    """Add the subcommand."""
    export = commands.add_parser("export", help="take the adapter, or a merged model, away")
    export.add_argument("run", help="folder of a run, or id of a run of the database")
    export.add_argument("--to", type=Form, choices=list(Form), required=True, help="%(choices)s")
    export.add_argument("--out", type=Path, required=True, help="folder to write (must not exist)")
    export.add_argument(
        "--type",
        type=GgufType,
        choices=list(GgufType),
        default=GgufType.F16,
        help="how a GGUF file holds its matrices: %(choices)s (%(default)s)",
    )
    export.add_argument(
        "--push",
        metavar="OWNER/NAME",
        help="upload it to the Hugging Face Hub; the token is asked for and kept nowhere",
    )
    export.add_argument("--public", action="store_true", help="a new repository is seen by all")
    export.set_defaults(command=export_run)

    push = commands.add_parser("push", help="upload an export to the Hugging Face Hub")
    push.add_argument("folder", type=Path, help="what `export` wrote")
    push.add_argument("repository", help="owner/name; the token is asked for and kept nowhere")
    push.add_argument("--public", action="store_true", help="a new repository is seen by all")
    push.set_defaults(command=push_export)


def export_run(options: argparse.Namespace) -> int:
    """Write it, load it again, compare; then upload it if wanted."""
    from trainer.export.exporting import export
    from trainer.export.hub import push

    settings = read_settings()
    path = settings.run_dir(int(options.run)) if is_id(options.run) else Path(options.run)
    token = _ask_for_token() if options.push else ""
    exported = export(
        RunFolder(path), options.to, options.out, settings, gguf_type=options.type, report=say
    )
    say(f"Written to {options.out}. {exported.check}")
    if options.push:
        address = push(options.out, options.push, token, private=not options.public)
        say(f"Uploaded to {address}")
    return 0


def push_export(options: argparse.Namespace) -> int:
    """Upload what an export wrote."""
    from trainer.export.hub import push

    address = push(options.folder, options.repository, _ask_for_token(), private=not options.public)
    say(f"Uploaded to {address}")
    return 0


def _ask_for_token() -> str:
    """Read a token without showing it; from a pipe, its first line."""
    if sys.stdin.isatty():
        return getpass.getpass("Token of the Hugging Face Hub: ")
    return sys.stdin.readline().strip()
