"""How fast the engine is, how near to the machine's limit, and how much memory it takes.

`python -m tests.bench` prints two tables and writes every figure to `bench.json` in EVERYTURN_HOME;
`--quick` measures short conversations only, for development, and writes `bench-quick.json`.
What is measured and how: docs/performance.md.
"""

import argparse
import json
import sys
from dataclasses import asdict
from functools import partial
from pathlib import Path
from typing import Any

from db.settings import read_settings
from tests.bench.children import in_child
from tests.bench.parts import PARTS
from tests.bench.results import Machine, Results
from tests.bench.stored import in_words
from tests.bench.table import lines_table, targets_table
from tests.bench.targets import targets
from tests.bench.workloads import PEAK_CASES, QUICK_ROWS, ROWS


def main() -> None:
    """Measure everything, each step in a child process, or do one step."""
    parser = argparse.ArgumentParser(prog="python -m tests.bench", description=__doc__)
    parser.add_argument("--quick", action="store_true", help="short conversations, no memory")
    steps = parser.add_subparsers(dest="step", metavar="STEP", title="one step instead of all")
    steps.add_parser("times", help="measure the lines' times, print JSON")
    steps.add_parser("peak", help="measure the peak memory of a pass, print JSON").add_argument(
        "case", choices=PEAK_CASES
    )
    for name, part in PARTS.items():
        steps.add_parser(name, help=part.about).add_argument(
            "part", choices=part.steps, nargs="?", help="one step of it here, prints JSON"
        )
    steps.add_parser("table", help="print the tables of the last whole run again")
    arguments = parser.parse_args()
    if arguments.step is None:
        report(quick=arguments.quick)
    elif arguments.step == "times":
        print(json.dumps(times(quick=arguments.quick)))
    elif arguments.step == "peak":
        print(json.dumps(peak(arguments.case)))
    elif arguments.step == "table":
        show(last_results(quick=arguments.quick))
    elif arguments.part is None:
        part = PARTS[arguments.step]
        print(part.text(part.measure()))
    else:
        print(json.dumps(PARTS[arguments.step].in_this_process(arguments.part)))


def report(*, quick: bool) -> None:
    """Collect the children's figures and print them.

    Each part is written down as soon as it is measured: a part that fails costs no other's figures.
    """
    path = results_file(quick=quick)
    data = in_child(*(["--quick"] if quick else []), "times") | {"peak_bytes": {}}
    keep(path, data)
    if not quick:
        for case in PEAK_CASES:
            progress(f"peak memory: {case}")
            data["peak_bytes"][case] = in_child("peak", case)
            keep(path, data)
        for name, part in PARTS.items():
            progress(name)
            data[name] = asdict(part.measure())
            keep(path, data)
    show(data)
    progress(f"written to {path}")


def keep(path: Path, data: dict[str, Any]) -> None:
    """Write down what is measured so far, with the targets it allows to judge."""
    reached = list(targets(Results.from_json(data)))
    for name, part in PARTS.items():
        if name in data:
            reached += part.targets(part.read(data[name]))
    judged = [asdict(target) | {"reached": target.is_reached} for target in reached]
    text = json.dumps(data | {"targets": judged}, indent=2, ensure_ascii=False)
    path.write_text(text + "\n", encoding="utf-8")


def results_file(*, quick: bool) -> Path:
    """Return where the figures are kept; a quick run does not write over a whole one."""
    return read_settings().home / ("bench-quick.json" if quick else "bench.json")


def last_results(*, quick: bool) -> dict[str, Any]:
    """Return the figures of the last run; without one, end with a word."""
    path = results_file(quick=quick)
    if not path.exists():
        sys.exit(f"There are no figures in {path} yet. Measure first: python -m tests.bench")
    return json.loads(path.read_text(encoding="utf-8"))


def show(data: dict[str, Any]) -> None:
    """Print the tables."""
    print(in_words("engine", lambda: _engine_text(data)))
    for name, part in PARTS.items():
        if name in data:
            print("", in_words(name, partial(part.text_of, data[name])), sep="\n")


def _engine_text(data: dict[str, Any]) -> str:
    results = Results.from_json(data)
    machine = results.machine
    where = f"{machine.processor}, {machine.torch_threads} threads, fp32, torch {machine.torch}"
    return f"{where}\n\n{lines_table(results)}\n\n{targets_table(targets(results))}"


def times(*, quick: bool) -> dict[str, object]:
    """Time every line in this process."""
    import torch  # noqa: PLC0415 - the parent process stays small

    from tests.bench.results import processor_name, usable_cores  # noqa: PLC0415
    from tests.bench.timing import Contestants  # noqa: PLC0415

    contestants = Contestants.load(read_settings())
    rows = QUICK_ROWS if quick else ROWS
    contestants.warm_up(rows[0])
    measured = []
    for row in rows:
        progress(f"times: {row.name}")
        measured.append(asdict(contestants.measure(row)))
    machine = Machine(
        processor=processor_name(),
        cores=usable_cores(),
        torch_threads=torch.get_num_threads(),
        torch=torch.__version__,
    )
    return {"machine": asdict(machine), "rows": measured}


def peak(case: str) -> int:
    """Return the peak memory of this process after one pass."""
    from tests.bench.memory import peak_bytes  # noqa: PLC0415 - the parent process stays small

    return peak_bytes(read_settings(), case)


def progress(text: str) -> None:
    """Say what is being measured, where it is not in the way of the results."""
    print(text, file=sys.stderr, flush=True)


if __name__ == "__main__":
    main()
