"""The trainer's command line: parse, then hand over to `trainer.commands`."""

import argparse
import os
import sys
from collections.abc import Sequence

from db.errors import EveryTurnError
from trainer.commands import checking, collecting, exporting, judging, models, serving, training
from trainer.commands.console import fail, say
from trainer.compute_environment import restart_with_compute_environment
from trainer.runs.failure import explain


def main(arguments: Sequence[str] | None = None) -> int:
    """Run one command; return the exit status: 0 done, 1 failed with one readable line."""
    options = build_parser().parse_args(arguments)
    try:
        return options.command(options)
    except EveryTurnError as error:
        return fail(str(error))
    except BrokenPipeError:  # whoever read our output has seen enough
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 0
    except (MemoryError, OSError) as error:
        return fail(explain(error).text)
    except KeyboardInterrupt:
        say("Interrupted.")
        return 130


def build_parser() -> argparse.ArgumentParser:
    """Return the parser of all commands."""
    parser = argparse.ArgumentParser(
        prog="python -m trainer", description="Train a LoRA adapter on per-turn scores."
    )
    commands = parser.add_subparsers(required=True, metavar="COMMAND")
    for group in (models, training, checking, exporting, serving, collecting, judging):
        group.add_commands(commands)
    return parser


if __name__ == "__main__":
    restart_with_compute_environment()
    sys.exit(main())
