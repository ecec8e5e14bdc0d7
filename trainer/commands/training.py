"""`train`, `run` and `resume`: what trains."""

import argparse
import shutil
from pathlib import Path

from db import queries
from db.commands import end_run
from db.engine import Database, open_database
from db.enums import RunStatus
from db.formats import write
from db.settings import read_settings
from trainer.commands.console import fail, is_id, say
from trainer.commands.data import add_data_options, read_config, read_conversations
from trainer.config import Device, TrainConfig
from trainer.errors import CheckpointError
from trainer.runs.failure import explain
from trainer.runs.folder import RunFolder, read_json, write_json, write_text
from trainer.runs.process import is_launched, is_leader

# ruff: noqa: PLC0415 - see the package


def add_commands(commands: "argparse._SubParsersAction[argparse.ArgumentParser]") -> None:
    """Add the subcommands."""
    train = commands.add_parser("train", help="a run in the foreground, without the web app")
    add_data_options(train)
    train.add_argument("--out", type=Path, required=True, help="folder for everything it writes")
    train.set_defaults(command=train_in_foreground)

    run = commands.add_parser("run", help="carry out a run of the database")
    run.add_argument("id", type=int)
    run.set_defaults(command=run_from_database)

    resume = commands.add_parser("resume", help="go on from the last checkpoint")
    resume.add_argument("run", help="folder of a run, or id of a run of the database")
    resume.set_defaults(command=resume_run)


def train_in_foreground(options: argparse.Namespace) -> int:
    """Run without the web app, everything in one folder; what is refused leaves no folder."""
    config, folder = read_config(options), RunFolder(options.out)
    is_new = not options.out.exists()
    if is_leader():
        _begin_folder(options, config, folder)
    try:
        return _train(folder, config)
    except BaseException:
        if is_leader() and is_new and not folder.metrics.exists():
            shutil.rmtree(folder.path)
        raise


def _begin_folder(options: argparse.Namespace, config: TrainConfig, folder: RunFolder) -> None:
    """Write what the run begins from."""
    conversations = read_conversations(options.data)
    if options.out.exists() and (not options.out.is_dir() or any(options.out.iterdir())):
        raise CheckpointError(
            "there is something already",
            where=str(options.out),
            remedy="Choose another --out, or go on with that run: "
            f"python -m trainer resume {options.out}",
        )

    from trainer.catalog import find_model
    from trainer.preview import preview, refuse_blocked
    from trainer.starting import copy_start, find_start, settled

    refuse_blocked(preview(conversations, config))
    settings = read_settings()
    config = config.replace(base_model=find_model(settings, config.base_model).name)
    start = find_start(settings, config)
    config = settled(config, start)
    options.out.mkdir(parents=True, exist_ok=True)
    write_json(folder.config, config.to_json())
    write_text(folder.data, write(conversations, "native"))
    copy_start(start, folder)


def _train(folder: RunFolder, config: TrainConfig) -> int:
    from trainer.engine.ranks import join_ranks
    from trainer.runs.recorder import FileRecorder
    from trainer.runs.worker import Ending, run_folder, stop_on_signals

    recorder, ranks = FileRecorder(folder.metrics), join_ranks(config.device)
    stop_on_signals(recorder, ranks)
    ending = run_folder(folder, recorder, read_settings(), ranks)
    if ending is Ending.EARLY:
        say("The run ended early: a step's KL passed the limit (setting max_kl).")
    if ending is Ending.STOPPED:
        say(f"Stopped. Go on with: python -m trainer resume {folder.path}")
    else:
        say(f"Done. The adapter is in {folder.adapter}")
    return 0


def run_from_database(options: argparse.Namespace) -> int:
    """Carry out a run of the database (what the web app starts)."""
    return _work(open_database(), options.id)


def _work(database: Database, run_id: int) -> int:
    try:
        from trainer.engine.ranks import join_ranks
        from trainer.runs.worker import work
    except (ImportError, OSError) as error:  # the worker, which stores all else, is not there
        if is_leader():
            reason = explain(error)
            end_run(
                database, run_id, RunStatus.FAILED, error_kind=reason.kind, error_text=reason.text
            )
        raise
    # The worker checks the configuration and stores what is wrong with it on the run.
    device = queries.run(database, run_id).config.get("device", Device.AUTO)
    status = work(database, run_id, join_ranks(device))
    return 1 if status is RunStatus.FAILED else 0


def resume_run(options: argparse.Namespace) -> int:
    """Go on from the last checkpoint."""
    if is_id(options.run):
        from trainer.runs.launch import resume_here
        from trainer.runs.launch import resume_run as resume

        database, run_id = open_database(), int(options.run)
        if is_launched():
            if is_leader():
                resume_here(database, run_id)
            return _work(database, run_id)
        run = resume(database, run_id)
        say(f"Run {run.id} is {run.status}, attempt {run.attempt}.")
        return 0
    folder = RunFolder(Path(options.run))
    folder.require()
    if folder.adapter.exists():
        return fail(f"{folder.path}: this run has finished; there is nothing to resume.")
    return _train(folder, TrainConfig.from_json(read_json(folder.config)))
