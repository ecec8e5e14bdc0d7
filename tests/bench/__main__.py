"""How fast the engine is, how near to the machine's limit, and how much memory it takes.

`python -m tests.bench` prints two tables and writes every figure to `bench.json` in EVERYTURN_HOME;
`--quick` measures short conversations only, for development, and writes `bench-quick.json`.
What is measured and how: docs/performance.md.
"""

import argparse
import json
import sys
from dataclasses import asdict
from pathlib import Path

from db.settings import read_settings
from tests.bench.children import in_child
from tests.bench.results import Machine, Results
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
    steps.add_parser("table", help="print the tables of the last whole run again")
    arguments = parser.parse_args()
    if arguments.step == "times":
        print(json.dumps(times(quick=arguments.quick)))
    elif arguments.step == "peak":
        print(json.dumps(peak(arguments.case)))
    elif arguments.step == "table":
        path = results_file(quick=arguments.quick)
        show(Results.from_json(json.loads(path.read_text(encoding="utf-8"))))
    else:
        report(quick=arguments.quick)


def report(*, quick: bool) -> None:
    """Collect the children's figures, write and print them."""
    measured = in_child(*(["--quick"] if quick else []), "times")
    peaks: dict[str, int] = {}
    for case in [] if quick else PEAK_CASES:
        progress(f"peak memory: {case}")
        peaks[case] = in_child("peak", case)
    results = Results.from_json(measured | {"peak_bytes": peaks})
    path = results_file(quick=quick)
    reached = [asdict(target) | {"reached": target.is_reached} for target in targets(results)]
    data = results.to_json() | {"targets": reached}
    path.write_text(json.dumps(data, indent=2, ensure_ascii=False) + "\n", encoding="utf-8")
    show(results)
    progress(f"written to {path}")


def results_file(*, quick: bool) -> Path:
    """Return where the figures are kept; a quick run does not write over a whole one."""
    return read_settings().home / ("bench-quick.json" if quick else "bench.json")


def show(results: Results) -> None:
    """Print the tables."""
    machine = results.machine
    print(f"{machine.processor}, {machine.torch_threads} threads, fp32, torch {machine.torch}\n")
    print(lines_table(results), targets_table(results), sep="\n\n")


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
