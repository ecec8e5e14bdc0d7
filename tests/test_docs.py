"""The docs name everything that people can set or call, and their table of presets is true."""

import argparse
import dataclasses
import re
from pathlib import Path

import pytest

import db.__main__ as db_cli
import trainer.__main__ as trainer_cli
from app.components.charts import Chart
from app.components.charts_data import data_chart
from app.components.charts_turns import TurnView
from app.components.columns import Columns
from app.components.learning import LearningSeries
from app.components.run_charts import chart_rows
from app.components.turn_series import MEASURES
from app.metrics import STEP_CURVES, RunMetrics
from db.enums import ErrorKind, RunStatus
from db.formats import FORMATS, READABLE, parse
from db.formats.documenting import page
from trainer.config import Preset, TrainConfig
from trainer.presets import RECIPE_SETTINGS

DOCS = Path(__file__).parents[1] / "docs"
PAGES = "\n".join(path.read_text("utf-8") for path in sorted(DOCS.glob("*.md")))
RUNS = (DOCS / "runs.md").read_text("utf-8")
TRAINING = (DOCS / "training.md").read_text("utf-8")


def sub_commands(parser: argparse.ArgumentParser) -> list[str]:
    """Return the names of a parser's sub-commands."""
    group = next(a for a in parser._actions if isinstance(a, argparse._SubParsersAction))
    return list(group.choices)


def preset_table() -> dict[str, tuple[str, str]]:
    """Return setting -> (value under `standard`, value under `recipe`) as the page prints them."""
    section = TRAINING.split("## The two methods")[1].split("\n## ")[0]
    rows = [line.strip("| ").split(" | ") for line in section.splitlines() if "| `" in line]
    return {
        name.strip("`"): (standard.split(" (")[0].strip("`"), recipe.split(" (")[0].strip("`"))
        for name, standard, recipe in rows
        if name != "setting"
    }


@pytest.mark.parametrize("name", [field.name for field in dataclasses.fields(TrainConfig)])
def test_every_setting_is_explained(name: str) -> None:
    settings = TRAINING.split("## Settings")[1].split("\n## ")[0]
    first_cells = [line.split(" | ")[0] for line in settings.splitlines()]
    assert any(f"`{name}`" in cell for cell in first_cells)


def charts() -> list[Chart]:
    """Return every chart of the run page, without data."""
    turns = {name: {} for name in MEASURES}
    nothing = Columns(["step", "epoch", "loss", "lr", *STEP_CURVES])
    steps = {name: nothing.points(name, about=("epoch", "loss", "lr")) for name in STEP_CURVES}
    metrics = RunMetrics(
        run_id=1,
        attempt=1,
        turns=turns,
        learning=LearningSeries().points(),
        cells={},
        first={},
        steps=steps,
        last_step=None,
    )
    view = TurnView(turns=turns, last_step=0)
    rows = chart_rows(metrics, view, TrainConfig.for_preset(Preset.STANDARD))
    of_the_data = [data_chart([], "reward"), data_chart([], "advantage")]
    return [*(chart for row in rows for chart in row), *of_the_data]


def test_every_chart_is_explained() -> None:
    section = TRAINING.split("## Charts")[1].split("\n## ")[0]
    for chart in charts():
        assert f"**{chart.title.rstrip('.')}" in section, chart.title


def test_the_preset_table_lists_every_difference_with_its_values() -> None:
    table = preset_table()
    assert table.keys() == RECIPE_SETTINGS.keys()
    for column, preset in enumerate((Preset.STANDARD, Preset.RECIPE)):
        values = TrainConfig.for_preset(preset).to_json()
        for name, cells in table.items():
            value = values[name]
            printed = cells[column] if isinstance(value, str) else float(cells[column])
            assert printed == value, name


@pytest.mark.parametrize("name", sub_commands(trainer_cli.build_parser()))
def test_every_command_of_the_trainer_is_in_the_docs(name: str) -> None:
    assert f"python -m trainer {name} " in PAGES


@pytest.mark.parametrize("name", sub_commands(db_cli.build_parser()))
def test_every_command_of_the_database_is_in_the_docs(name: str) -> None:
    assert f"python -m db {name} " in PAGES


@pytest.mark.parametrize("name", READABLE)
def test_the_example_of_each_import_format_is_read_as_that_format(name: str) -> None:
    section = (DOCS / "formats.md").read_text("utf-8").split(f"### `{name}`")[1]
    example = section.split("```")[1].split("\n", 1)[1]
    parsed = parse(example.encode())
    assert parsed.format == name
    assert parsed.conversations
    assert not parsed.skipped
    assert all("were mapped" in warning for warning in parsed.warnings)


def test_every_state_and_every_failure_of_a_run_is_explained() -> None:
    section = RUNS.split("## Where a run can stand")[1].split("\n## ")[0]
    for status in RunStatus:
        assert f"\n| `{status.value}` | " in section
    section = RUNS.split("## What can go wrong")[1].split("\n## ")[0]
    for kind in ErrorKind:
        assert f"\n| `{kind.value}` | " in section


def test_the_diagram_shows_which_runs_can_fail_be_stopped_and_be_resumed() -> None:
    lines = RUNS.split("```mermaid")[1].split("```")[0].splitlines()
    arrows = [line.split(":")[0].split(" --> ") for line in lines if " --> " in line]
    ways = {(one.strip(), other.strip()) for one, other in arrows}
    values = {status.value for status in RunStatus}
    assert {state for way in ways for state in way} == {*values, "[*]"}
    for status in RunStatus:
        is_starting = status is RunStatus.STARTING
        assert ((status.value, "queued") in ways) == (status.can_resume or is_starting)
        assert ((status.value, "failed") in ways) == (not status.has_ended)
        assert ((status.value, "stopped") in ways) == (not status.has_ended and not is_starting)


def test_the_page_about_formats_is_what_the_code_says() -> None:
    assert (DOCS / "formats.md").read_text("utf-8") == page(FORMATS)


def test_pages_link_only_to_pages_that_exist() -> None:
    for path in DOCS.glob("*.md"):
        for target in path.read_text("utf-8").split("](")[1:]:
            link = target.split(")")[0].split("#")[0]
            if link and "://" not in link:
                assert (path.parent / link).exists(), f"{path.name} links to {link}"


def test_the_page_about_runs_names_tests_that_exist() -> None:
    tests = "\n".join(path.read_text("utf-8") for path in Path(__file__).parent.rglob("test_*.py"))
    named = re.findall(r"`(\w+)`", RUNS.split("## What is tried")[1].split("\n## ")[0])
    assert len(named) > 30
    assert [name for name in named if f"def test_{name}(" not in tests] == []
