"""Does it learn? Three experiments on the embedded model, each with what must hold.

Prints their tables and writes all figures to `learn.json` in EVERYTURN_HOME. Ends with status 1
if something does not hold. `python -m tests.learn decision` runs one experiment alone.
"""

import argparse
import json
import sys
import time
from collections.abc import Callable
from typing import Any

import torch

from db.settings import Settings, read_settings
from tests.bench.results import processor_name
from tests.learn import decision, fluency, preference
from tests.learn.outcome import Outcome
from trainer.config import EMBEDDED_MODEL

EXPERIMENTS: dict[str, Callable[[Settings, str, Callable[[str], None]], Outcome]] = {
    "decision": decision.run,
    "preference": preference.run,
    "fluency": fluency.run,
}


def report(text: str) -> None:
    """Say on standard error how far it is."""
    print(text, file=sys.stderr, flush=True)


def main() -> int:
    """Run, print, write; return the exit status."""
    parser = argparse.ArgumentParser(prog="python -m tests.learn", description=__doc__)
    names = ", ".join(EXPERIMENTS)
    parser.add_argument(
        "experiments",
        nargs="*",
        choices=[[], *EXPERIMENTS],  # argparse holds "none given" against the choices, too
        metavar="EXPERIMENT",
        help=f"{names}; all if none is given",
    )
    chosen = parser.parse_args().experiments or list(EXPERIMENTS)
    settings = read_settings()
    settings.home.mkdir(parents=True, exist_ok=True)
    facts = {
        "model": EMBEDDED_MODEL,
        "machine": processor_name(),
        "threads": torch.get_num_threads(),
    }
    print(f"{EMBEDDED_MODEL}, fp32, {facts['threads']} threads, {facts['machine']}")
    passed, results = True, dict[str, Any]()
    for name in chosen:
        started = time.perf_counter()
        outcome = EXPERIMENTS[name](settings, EMBEDDED_MODEL, report)
        seconds = time.perf_counter() - started
        print("", outcome.title, *outcome.lines, sep="\n")
        print(*(check.line for check in outcome.checks), f"({seconds:.0f} s)", sep="\n", flush=True)
        results[name] = {**outcome.to_json(), "seconds": seconds}
        passed &= outcome.passed
    path = settings.home / "learn.json"
    path.write_text(json.dumps({**facts, **results}, indent=2) + "\n", encoding="utf-8")
    print(f"Written to {path}", file=sys.stderr)
    return 0 if passed else 1


sys.exit(main())
