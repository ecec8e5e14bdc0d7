"""`preview` and `verify`: what a run would do, and whether the engine computes right."""

import argparse
import json

from db.settings import read_settings
from trainer.commands.data import add_data_options, read_config, read_conversations
from trainer.config import TrainConfig
from trainer.pass_costs import Machine

# ruff: noqa: PLC0415 - see the package


def add_commands(commands: "argparse._SubParsersAction[argparse.ArgumentParser]") -> None:
    """Add the subcommands."""
    preview = commands.add_parser("preview", help="the table of turns; no training")
    add_data_options(preview)
    preview.add_argument(
        "--estimate", action="store_true", help="try the model, and tell time and memory of a run"
    )
    preview.add_argument("--json", action="store_true", help="print one JSON object")
    preview.set_defaults(command=show_preview)

    verify = commands.add_parser("verify", help="the published recipe's run beside its figures")
    verify.add_argument("--model", help="base model (default: the recipe's, else the embedded one)")
    verify.add_argument("--json", action="store_true", help="print one JSON object")
    verify.set_defaults(command=verify_engine)


def show_preview(options: argparse.Namespace) -> int:
    """Print the table of turns; no training."""
    config, conversations = read_config(options), read_conversations(options.data)

    from trainer.engine.sharing import config_obstacle  # seconds: a wrong path is told before
    from trainer.models import load_config, load_tokenizer
    from trainer.preview import preview

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
    """Hold the engine against the published figures and against a plain pass a turn."""
    from trainer.verify import verify

    report = verify(read_settings(), options.model)
    print(json.dumps(report.to_json()) if options.json else report.to_text())
    return 0 if report.passed else 1


def _number(value: float | None, form: str) -> str:
    width = int(form.strip("+").split(".")[0])
    return "-".rjust(width) if value is None else format(value, form)
