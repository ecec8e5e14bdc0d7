"""A target is reached or it is not, and the tables say so."""

import json
from dataclasses import replace

from tests.bench.results import Machine, Results, RowTimes
from tests.bench.table import lines_table, targets_table
from tests.bench.targets import targets
from tests.bench.workloads import HUNDRED_SHORT, LONG, ROWS, THOUSAND_SHORT

GOOD = RowTimes(
    name="1 turn",
    is_one_conversation=True,
    turn_tokens=12000,
    distinct_tokens=1000,
    computed_tokens=1010,
    engine_s=2.0,
    times_as_fast={"full": 10.5, "selective": 6.5, "padded": 3.0},
    gemm_flops_per_s=1e11,
    bound_flops=130_000_000_000,
    share_of_bound=0.65,
    added_conversation=1.0,
)
PEAKS = {LONG: 5_000_000_000, HUNDRED_SHORT: 2_000_000_000, THOUSAND_SHORT: 2_000_000_000}


def results(*changed: RowTimes, peaks: dict[str, int] = PEAKS) -> Results:
    """Return results in which every target is reached but for the changed lines."""
    other = {row.name: row for row in changed}
    rows = tuple(other.get(row.name, replace(GOOD, name=row.name)) for row in ROWS)
    machine = Machine(processor="any", cores=2, torch_threads=2, torch="2")
    return Results(machine=machine, rows=rows, peak_bytes=peaks)


def missed(found: Results) -> list[str]:
    return [target.text for target in targets(found) if not target.is_reached]


def test_good_figures_reach_every_target() -> None:
    assert missed(results()) == []


def test_each_line_is_held_to_its_own_limits() -> None:
    speed = {"full": 4.4, "selective": 3.2, "padded": 3.0}
    eight = replace(GOOD, name="8 turns", times_as_fast=speed)
    assert missed(results(eight)) == [
        "8 turns: times as fast as a turn, full logits",
        "8 turns: times as fast as a turn, selective logits",
    ]
    four = replace(GOOD, name="4 turns", times_as_fast=speed)  # 4 turns have no such limit
    assert missed(results(four)) == []


def test_the_worst_line_decides() -> None:
    slow = replace(GOOD, name="2 turns", times_as_fast=GOOD.times_as_fast | {"padded": 0.99})
    assert missed(results(slow)) == ["times as fast as a padded batch, any line"]
    wasteful = replace(GOOD, name="2 turns", computed_tokens=1021)
    assert missed(results(wasteful)) == ["tokens computed over distinct tokens, any line"]


def test_only_long_conversations_are_held_to_the_higher_share_of_the_bound() -> None:
    short = replace(GOOD, name="1 turn", distinct_tokens=999, computed_tokens=999, engine_s=1.998)
    assert missed(results(replace(short, share_of_bound=0.3))) == []
    long = replace(GOOD, name="16 turns", share_of_bound=0.59)
    assert missed(results(long)) == ["share of the bound, conversations of 1,000 tokens and more"]
    seed = replace(GOOD, name="seed x 64", is_one_conversation=False, share_of_bound=0.49)
    assert missed(results(seed)) == ["share of the bound, 64 × the seed's two short conversations"]


def test_time_a_token_may_not_grow_with_the_turns() -> None:
    slow = replace(GOOD, name="16 turns", engine_s=3.3)
    assert missed(results(slow)) == ["time a distinct token, 16 turns over 2 turns"]


def test_memory_is_held_to_its_limits() -> None:
    peaks = {LONG: 6_100_000_000, HUNDRED_SHORT: 2_000_000_000, THOUSAND_SHORT: 2_050_000_000}
    assert missed(results(peaks=peaks)) == [
        "peak memory, a conversation of 4,000 tokens (GB)",
        "peak memory, 1,000 short conversations over 100",
    ]


def test_what_was_not_measured_is_neither_reached_nor_missed() -> None:
    without_memory = targets_table(targets(results(peaks={})))
    assert without_memory.count("not measured") == 2
    machine = results().machine
    nothing = Results(machine=machine, rows=(), peak_bytes={})
    assert all(target.is_reached is None for target in targets(nothing))


def test_the_tables_show_the_figures() -> None:
    found = results(peaks=PEAKS | {"8 turns": 2_810_000_000})
    line = next(line for line in lines_table(found).splitlines() if "8 turns" in line)
    cells = [cell.strip() for cell in line.strip("|").split("|")]
    assert cells == [
        "8 turns", "12,000", "1,010", "1.010", "10.50", "6.50", "3.00", "65%", "2.00", "1.00", "2.81",
    ]  # fmt: skip
    long = next(line for line in targets_table(targets(found)).splitlines() if "4,000" in line)
    assert [cell.strip() for cell in long.strip("|").split("|")][1:] == ["≤ 6.00", "5.00", "yes"]


def test_results_survive_their_file() -> None:
    found = results()
    read = json.loads(json.dumps(found.to_json() | {"targets": []}))
    assert Results.from_json(read) == found
