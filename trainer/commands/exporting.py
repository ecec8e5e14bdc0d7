"""`export`: take an adapter or a merged model away."""

import argparse
from pathlib import Path

from db.settings import read_settings
from trainer.commands.console import is_id, say
from trainer.runs.folder import RunFolder

# ruff: noqa: PLC0415 - see the package


def add_commands(commands: "argparse._SubParsersAction[argparse.ArgumentParser]") -> None:
    """Add the subcommand."""
    export = commands.add_parser("export", help="take the adapter, or a merged model, away")
    export.add_argument("run", help="folder of a run, or id of a run of the database")
    export.add_argument("--to", choices=["adapter", "merged"], required=True)
    export.add_argument("--out", type=Path, required=True, help="folder to write (must not exist)")
    export.set_defaults(command=export_run)


def export_run(options: argparse.Namespace) -> int:
    """Take the adapter, or a merged model, away."""
    from trainer.export import export_adapter, export_merged

    settings = read_settings()
    path = settings.run_dir(int(options.run)) if is_id(options.run) else Path(options.run)
    if options.to == "adapter":
        export_adapter(RunFolder(path), options.out)
    else:
        export_merged(RunFolder(path), options.out, settings)
    say(f"Written to {options.out}")
    return 0
