"""The trainer's command line: parse, build the configuration, call."""

import argparse
import json
import os
import shutil
import sys
from collections.abc import Sequence
from pathlib import Path

from db import queries
from db.engine import Database, open_database
from db.enums import RunStatus
from db.errors import DataError, EveryTurnError
from db.formats import parse, write
from db.records import Conversation
from db.settings import read_settings
from trainer.assignments import parse_assignments
from trainer.compute_environment import restart_with_compute_environment
from trainer.config import Device, Preset, TrainConfig
from trainer.errors import CheckpointError
from trainer.estimate import Machine
from trainer.runs.folder import RunFolder, read_json
from trainer.runs.process import is_launched, is_leader

# torch takes seconds to load: each command imports what it needs, when it runs.
# ruff: noqa: PLC0415


def main(arguments: Sequence[str] | None = None) -> int:
    """Run one command; return the exit status: 0 done, 1 failed with one readable line."""
    options = build_parser().parse_args(arguments)
    try:
        return options.command(options)
    except EveryTurnError as error:
        return _fail(str(error))
    except BrokenPipeError:  # whoever read our output has seen enough
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 0
    except (MemoryError, OSError) as error:
        return _explain(error)
    except KeyboardInterrupt:
        _say("Interrupted.")
        return 130


def build_parser() -> argparse.ArgumentParser:
    """Return the parser of all commands."""
    parser = argparse.ArgumentParser(
        prog="python -m trainer", description="Train a LoRA adapter on per-turn scores."
    )
    commands = parser.add_subparsers(required=True, metavar="COMMAND")

    models = commands.add_parser("models", help="list base models and where each comes from")
    models.add_argument("--json", action="store_true", help="print one JSON object")
    models.set_defaults(command=show_models)

    pull = commands.add_parser("pull", help="make a base model available offline")
    pull.add_argument("model", help="listed name or hub id")
    pull.set_defaults(command=pull_model)

    train = commands.add_parser("train", help="a run in the foreground, without the web app")
    _add_data_options(train)
    train.add_argument("--out", type=Path, required=True, help="folder for everything it writes")
    train.set_defaults(command=train_in_foreground)

    run = commands.add_parser("run", help="carry out a run of the database")
    run.add_argument("id", type=int)
    run.set_defaults(command=run_from_database)

    resume = commands.add_parser("resume", help="go on from the last checkpoint")
    resume.add_argument("run", help="folder of a run, or id of a run of the database")
    resume.set_defaults(command=resume_run)

    preview = commands.add_parser("preview", help="the table of turns; no training")
    _add_data_options(preview)
    preview.add_argument(
        "--estimate", action="store_true", help="try the model, and tell time and memory of a run"
    )
    preview.add_argument("--json", action="store_true", help="print one JSON object")
    preview.set_defaults(command=show_preview)

    verify = commands.add_parser("verify", help="the seed's verified run beside its figures")
    verify.add_argument("--model", help="base model (default: the seed's, else the embedded one)")
    verify.add_argument("--json", action="store_true", help="print one JSON object")
    verify.set_defaults(command=verify_engine)

    export = commands.add_parser("export", help="take the adapter, or a merged model, away")
    export.add_argument("run", help="folder of a run, or id of a run of the database")
    export.add_argument("--to", choices=["adapter", "merged"], required=True)
    export.add_argument("--out", type=Path, required=True, help="folder to write (must not exist)")
    export.set_defaults(command=export_run)

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
    return parser


def _add_data_options(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--data", type=Path, required=True, help="conversations (JSON or JSONL)")
    parser.add_argument("--model", help="listed name, hub id or folder of the base model")
    parser.add_argument(
        "--preset", type=Preset, choices=list(Preset), default=Preset.STANDARD, help="%(choices)s"
    )
    parser.add_argument(
        "--set", action="append", default=[], metavar="KEY=VALUE", help="change one setting"
    )
    parser.add_argument("--device", type=Device, choices=list(Device), default=Device.AUTO)


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

    pull(read_settings(), options.model, report=_say)
    return 0


def train_in_foreground(options: argparse.Namespace) -> int:
    """Run without the web app, everything in one folder; what is refused leaves no folder."""
    config, folder = _read_config(options), RunFolder(options.out)
    is_new = not options.out.exists()
    if is_leader():
        _begin_folder(options, config, folder)
    try:
        return _train(folder, config)
    except EveryTurnError:
        if is_leader() and is_new and not folder.metrics.exists():
            shutil.rmtree(folder.path)
        raise


def _begin_folder(options: argparse.Namespace, config: TrainConfig, folder: RunFolder) -> None:
    """Write what the run begins from."""
    from trainer.catalog import find_model
    from trainer.preview import preview, refuse_blocked
    from trainer.runs.folder import write_json, write_text

    conversations = _read_conversations(options.data)
    if options.out.exists() and (not options.out.is_dir() or any(options.out.iterdir())):
        raise CheckpointError(
            "there is something already",
            where=str(options.out),
            remedy="Choose another --out, or go on with that run: "
            f"python -m trainer resume {options.out}",
        )
    refuse_blocked(preview(conversations, config))
    config = config.replace(base_model=find_model(read_settings(), config.base_model).name)
    options.out.mkdir(parents=True, exist_ok=True)
    write_json(folder.config, config.to_json())
    write_text(folder.data, write(conversations, "native"))


def _train(folder: RunFolder, config: TrainConfig) -> int:
    from trainer.engine.ranks import join_ranks
    from trainer.runs.recorder import FileRecorder
    from trainer.runs.worker import Ending, run_folder, stop_on_signals

    recorder, ranks = FileRecorder(folder.metrics), join_ranks(config.device)
    stop_on_signals(recorder, ranks)
    ending = run_folder(folder, recorder, read_settings(), ranks)
    if ending is Ending.EARLY:
        _say("The run ended early: a step's KL passed the limit (setting max_kl).")
    if ending is Ending.STOPPED:
        _say(f"Stopped. Go on with: python -m trainer resume {folder.path}")
    else:
        _say(f"Done. The adapter is in {folder.adapter}")
    return 0


def run_from_database(options: argparse.Namespace) -> int:
    """Carry out a run of the database (what the web app starts)."""
    return _work(open_database(), options.id)


def _work(database: Database, run_id: int) -> int:
    from trainer.engine.ranks import join_ranks
    from trainer.runs.worker import work

    # The worker checks the configuration and stores what is wrong with it on the run.
    device = queries.run(database, run_id).config.get("device", Device.AUTO)
    status = work(database, run_id, join_ranks(device))
    return 1 if status is RunStatus.FAILED else 0


def resume_run(options: argparse.Namespace) -> int:
    """Go on from the last checkpoint."""
    if _is_id(options.run):
        from trainer.runs.launch import resume_here
        from trainer.runs.launch import resume_run as resume

        database, run_id = open_database(), int(options.run)
        if is_launched():
            if is_leader():
                resume_here(database, run_id)
            return _work(database, run_id)
        run = resume(database, run_id)
        _say(f"Run {run.id} is {run.status}, attempt {run.attempt}.")
        return 0
    folder = RunFolder(Path(options.run))
    folder.require()
    if folder.adapter.exists():
        return _fail(f"{folder.path}: this run has finished; there is nothing to resume.")
    return _train(folder, TrainConfig.from_json(read_json(folder.config)))


def show_preview(options: argparse.Namespace) -> int:
    """Print the table of turns; no training."""
    from trainer.engine.sharing import config_obstacle
    from trainer.models import load_config, load_tokenizer
    from trainer.preview import preview

    config, conversations = _read_config(options), _read_conversations(options.data)
    tokenizer = load_tokenizer(read_settings(), config.base_model)
    obstacle = config_obstacle(load_config(read_settings(), config.base_model))
    machine = _read_machine(config) if options.estimate else None
    table = preview(conversations, config, tokenizer, obstacle=obstacle, machine=machine)
    if options.json:
        print(json.dumps(table.to_json()))
        return 0
    print("conversation  turn  tokens  response  reward   return  advantage")
    for turn in table.turns:
        print(
            f"{turn.conversation + 1:>12}  {turn.turn + 1:>4}  {turn.tokens:>6}  "
            f"{turn.response_tokens:>8}  {_number(turn.reward, '6.2f')}  "
            f"{_number(turn.return_, '7.3f')}  {_number(turn.advantage, '+9.3f')}"
        )
    print(
        f"\n{table.distinct_tokens} distinct tokens an epoch "
        f"(one pass a turn would compute {table.turn_tokens})"
    )
    if table.estimate:
        print(table.estimate.to_text())
    for warning in table.warnings:
        print(f"{'refused' if warning.blocking else 'note'}: {warning.text}")
    return 0


def _read_machine(config: TrainConfig) -> Machine:
    from trainer.machine import read_machine

    return read_machine(read_settings(), config)


def verify_engine(options: argparse.Namespace) -> int:
    """Hold the engine against the seed's figures and against a plain pass a turn."""
    from trainer.verify import verify

    report = verify(read_settings(), options.model)
    print(json.dumps(report.to_json()) if options.json else report.to_text())
    return 0 if report.passed else 1


def export_run(options: argparse.Namespace) -> int:
    """Take the adapter, or a merged model, away."""
    from trainer.export import export_adapter, export_merged

    settings = read_settings()
    path = settings.run_dir(int(options.run)) if _is_id(options.run) else Path(options.run)
    if options.to == "adapter":
        export_adapter(RunFolder(path), options.out)
    else:
        export_merged(RunFolder(path), options.out, settings)
    _say(f"Written to {options.out}")
    return 0


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
    serve(read_settings(), chosen, report=_say)
    return 0


def _read_config(options: argparse.Namespace) -> TrainConfig:
    from trainer.catalog import default_model

    settings = parse_assignments(options.set)
    chosen = {"base_model": options.model or default_model(), "device": options.device}
    return TrainConfig.for_preset(options.preset, **{**chosen, **settings})


def _read_conversations(path: Path) -> tuple[Conversation, ...]:
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
        _say(f"note: {warning}")
    return parsed.conversations


def _is_id(text: str) -> bool:
    return text.isascii() and text.isdigit() and len(text) < 19


def _number(value: float | None, form: str) -> str:
    width = int(form.strip("+").split(".")[0])
    return "-".rjust(width) if value is None else format(value, form)


def _say(line: str) -> None:
    if is_leader():  # of several ranks that run into the same, one says so
        print(line, file=sys.stderr, flush=True)


def _fail(line: str) -> int:
    _say(f"error: {' '.join(line.split())}")
    return 1


def _explain(error: BaseException) -> int:
    from trainer.runs.failure import explain

    return _fail(explain(error).text)


if __name__ == "__main__":
    restart_with_compute_environment()
    sys.exit(main())
