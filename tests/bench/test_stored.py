"""Figures that an older benchmark wrote down cost nobody the others, and are never misread."""

from dataclasses import asdict, replace

import pytest

from tests.bench.__main__ import show
from tests.bench.runs import RunResults
from tests.bench.stored import OldFiguresError
from tests.bench.test_targets import GOOD, results

RUNS = RunResults(
    few_rows_s=0.02,
    many_rows_s=0.03,
    start_s=0.1,
    stop_s=0.02,
    start_click_s=0.8,
    stop_click_s=0.3,
    steps_s=50,
    loop_s=0.1,
    thread_s=0.2,
)


def test_figures_come_back_from_their_file() -> None:
    assert RunResults.from_json(asdict(RUNS)) == RUNS


@pytest.mark.parametrize("change", [{"start_click_s": None}, {"polls_s": 1.0}])
def test_figures_that_are_missing_or_unknown_are_of_another_version(
    change: dict[str, float],
) -> None:
    data = {name: value for name, value in (asdict(RUNS) | change).items() if value is not None}
    with pytest.raises(OldFiguresError, match=f"measured: {next(iter(change))}"):
        RunResults.from_json(data)


def test_old_figures_of_a_part_are_told_in_words_and_the_others_are_shown(
    capsys: pytest.CaptureFixture[str],
) -> None:
    old = {"few_rows_s": 0.02}
    show(results().to_json() | {"runs": old, "labelling": {"few": {}, "many": {}}})
    shown = capsys.readouterr().out
    assert "| 1 turn " in shown
    assert "runs: these figures are of another version" in shown
    assert "labelling: these figures are of another version" in shown


def test_old_figures_of_the_engine_cost_no_part_its_table(
    capsys: pytest.CaptureFixture[str],
) -> None:
    data = results(replace(GOOD, name="8 turns")).to_json()
    del data["rows"][0]["engine_s"]
    show(data | {"runs": asdict(RUNS)})
    shown = capsys.readouterr().out
    assert shown.startswith("engine: these figures are of another version")
    assert "| click on Start until the run's page is there (s) " in shown
