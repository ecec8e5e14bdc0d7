"""`judge`: ask the automatic judge about a finished run's answers."""

import argparse

from db.engine import open_database
from trainer.commands.console import say

# ruff: noqa: PLC0415 - see the package


def add_commands(commands: "argparse._SubParsersAction[argparse.ArgumentParser]") -> None:
    """Add the subcommand."""
    judge = commands.add_parser("judge", help="ask the automatic judge about a run's answers")
    judge.add_argument("id", type=int, help="a finished run of the database")
    judge.set_defaults(command=judge_answers)


def judge_answers(options: argparse.Namespace) -> int:
    """Ask about every prompt; say how often the trained model's answer is preferred."""
    from trainer.evaluating.judging import judge_run
    from trainer.evaluating.win_rate import win_rate

    told = judge_run(open_database(), options.id)
    found = win_rate([verdict for verdict in told.verdicts if verdict is not None])
    if told.error:
        say(f"note: {told.error}")
    if found is None:
        return 1
    say(
        f"Automatic judge {told.model}: the trained model's answer is preferred in {found.rate:.0%} "
        f"of {found.prompts} prompts (95 % interval {found.low:.0%} to {found.high:.0%})."
    )
    return 0
