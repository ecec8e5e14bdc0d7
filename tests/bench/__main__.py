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
from typing import Any

from db.settings import read_settings
from tests.bench.children import in_child
from tests.bench.imports import ImportResults, import_targets, imports_table, measure_imports
from tests.bench.labelling import (
    LabellingResults,
    labelling_table,
    labelling_targets,
    measure_labelling,
)
from tests.bench.results import Machine, Results
from tests.bench.runs import RunResults, measure_runs, run_targets, runs_table
from tests.bench.serving import ServingResults, measure_serving, serving_table, serving_targets
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
    steps.add_parser("imports", help="measure only how files come in").add_argument(
        "part", choices=("times", "memory"), nargs="?", help="one part, print JSON"
    )
    steps.add_parser("serving", help="measure only the chat endpoint").add_argument(
        "part", choices=("times",), nargs="?", help="the measuring process, prints JSON"
    )
    steps.add_parser("labelling", help="measure only the label page").add_argument(
        "part", choices=("times",), nargs="?", help="the measuring process, prints JSON"
    )
    steps.add_parser(
        "runs", help="measure only what runs cost their viewers and themselves"
    ).add_argument("part", choices=("polls", "recording"), nargs="?", help="one part, print JSON")
    steps.add_parser("table", help="print the tables of the last whole run again")
    arguments = parser.parse_args()
    if arguments.step == "times":
        print(json.dumps(times(quick=arguments.quick)))
    elif arguments.step == "peak":
        print(json.dumps(peak(arguments.case)))
    elif arguments.step == "table":
        path = results_file(quick=arguments.quick)
        show(json.loads(path.read_text(encoding="utf-8")))
    elif arguments.step == "imports":
        if arguments.part is None:
            show_imports(measure_imports())
        else:
            print(json.dumps(imports(arguments.part)))
    elif arguments.step == "serving":
        if arguments.part is None:
            show_serving(measure_serving())
        else:
            print(json.dumps(serving()))
    elif arguments.step == "labelling":
        if arguments.part is None:
            show_labelling(measure_labelling())
        else:
            print(json.dumps(labelling()))
    else:
        report(quick=arguments.quick)


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
        progress("imports")
        data["imports"] = asdict(measure_imports())
        keep(path, data)
        progress("serving")
        data["serving"] = asdict(measure_serving())
        keep(path, data)
        progress("runs")
        data["runs"] = asdict(measure_runs())
        keep(path, data)
        progress("labelling")
        data["labelling"] = asdict(measure_labelling())
        keep(path, data)
    show(data)
    progress(f"written to {path}")


def keep(path: Path, data: dict[str, Any]) -> None:
    """Write down what is measured so far, with the targets it allows to judge."""
    reached = targets(Results.from_json(data))
    if "imports" in data:
        reached += import_targets(ImportResults.from_json(data["imports"]))
    if "serving" in data:
        reached += serving_targets(ServingResults.from_json(data["serving"]))
    if "runs" in data:
        reached += run_targets(RunResults.from_json(data["runs"]))
    if "labelling" in data:
        reached += labelling_targets(LabellingResults.from_json(data["labelling"]))
    judged = [asdict(target) | {"reached": target.is_reached} for target in reached]
    text = json.dumps(data | {"targets": judged}, indent=2, ensure_ascii=False)
    path.write_text(text + "\n", encoding="utf-8")


def results_file(*, quick: bool) -> Path:
    """Return where the figures are kept; a quick run does not write over a whole one."""
    return read_settings().home / ("bench-quick.json" if quick else "bench.json")


def show(data: dict[str, Any]) -> None:
    """Print the tables."""
    results = Results.from_json(data)
    machine = results.machine
    print(f"{machine.processor}, {machine.torch_threads} threads, fp32, torch {machine.torch}\n")
    print(lines_table(results), targets_table(targets(results)), sep="\n\n")
    if "imports" in data:
        print()
        show_imports(ImportResults.from_json(data["imports"]))
    if "serving" in data:
        print()
        show_serving(ServingResults.from_json(data["serving"]))
    if "labelling" in data:
        print()
        show_labelling(LabellingResults.from_json(data["labelling"]))


def show_imports(results: ImportResults) -> None:
    """Print how files come in."""
    print(imports_table(results), targets_table(import_targets(results)), sep="\n\n")


def show_serving(results: ServingResults) -> None:
    """Print how the chat endpoint answers."""
    print(serving_table(results), targets_table(serving_targets(results)), sep="\n\n")


def show_labelling(results: LabellingResults) -> None:
    """Print how the label page answers."""
    print(labelling_table(results), targets_table(labelling_targets(results)), sep="\n\n")


def labelling() -> dict[str, Any]:
    """Measure the label page from this process."""
    from tests.bench.labelling_times import labelling_times  # noqa: PLC0415 - as above

    return labelling_times()


def show_runs(results: RunResults) -> None:
    """Print what runs cost."""
    print(runs_table(results), targets_table(run_targets(results)), sep="\n\n")


def runs(part: str) -> dict[str, float]:
    """Measure a part of what runs cost, in this process."""
    if part == "polls":
        from tests.bench.polls import polls  # noqa: PLC0415 - Streamlit, only for who measures it

        return polls()
    from tests.bench.recording import recording  # noqa: PLC0415 - the parent stays small

    return recording(read_settings())


def serving() -> dict[str, Any]:
    """Measure the chat endpoint from this process."""
    from tests.bench.serving_times import serving_times  # noqa: PLC0415 - the parent stays small

    return serving_times(read_settings())


def imports(part: str) -> dict[str, float] | dict[str, int]:
    """Measure a part of how files come in, in this process."""
    from tests.bench import import_times  # noqa: PLC0415 - the parent process stays small

    return import_times.times() if part == "times" else import_times.memory()


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
