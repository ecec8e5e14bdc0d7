"""Data sets of the hub: rows by name, and a clear word where they cannot be had."""

import json
import sys
from pathlib import Path
from typing import Any

import datasets
import httpx2
import huggingface_hub
import pytest

from db import commands, hub, queries
from db.__main__ import main
from db.engine import Database
from db.enums import ImportState
from db.errors import DataError
from db.hub import HubError, fetch_rows
from db.import_job import import_folder, run_import_job
from db.records import HubSet, ImportFile

ROWS = [{"prompt": f"question {n}", "completion": "answer", "label": n % 2 == 0} for n in range(10)]


@pytest.fixture
def reachable(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> list[dict[str, Any]]:
    """Let the hub hold one data set, which `datasets` really streams; return what was asked."""
    file = tmp_path / "rows.jsonl"
    file.write_text("".join(json.dumps(row) + "\n" for row in ROWS))
    asked: list[dict[str, Any]] = []
    whole = datasets.load_dataset

    def load(name: str, config: str | None, **options: Any) -> Any:
        asked.append({"name": name, "config": config, **options})
        return whole("json", data_files=str(file), **options)

    monkeypatch.setattr(datasets, "load_dataset", load)
    monkeypatch.setattr(huggingface_hub.HfApi, "dataset_info", lambda *_, **__: None)
    return asked


def test_a_data_set_is_imported_by_name(
    reachable: list[dict[str, Any]], database: Database, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["import", "--hub", "owner/set", "--limit", "4", "--json"]) == 0
    report = json.loads(capsys.readouterr().out)
    assert (report["format"], report["conversations"], report["scores"]) == ("kto", 4, 4)
    assert reachable == [{"name": "owner/set", "config": None, "split": "train", "streaming": True}]
    assert queries.all_sources(database) == ["import:owner/set"]


@pytest.mark.usefixtures("reachable")
def test_a_check_fetches_the_rows_first(database: Database) -> None:
    wanted = HubSet(name="owner/set", limit=3)
    file = ImportFile(name=wanted.name, hub=wanted)
    import_id = commands.create_import(database, [file], user_id=1)
    import_folder(database.settings, import_id).mkdir(parents=True)
    run_import_job(database, import_id)
    checked = queries.import_(database, import_id)
    assert checked.state is ImportState.CHECKED, checked.error_text
    assert checked.report is not None
    assert checked.report.conversations == 3
    assert checked.files == (file,)


@pytest.mark.usefixtures("reachable")
def test_a_split_that_does_not_exist_is_named(tmp_path: Path) -> None:
    with pytest.raises(HubError, match=r"owner/set.*cannot be read.*nosuch"):
        fetch_rows(HubSet(name="owner/set", split="nosuch"), tmp_path / "rows")


@pytest.mark.parametrize(
    ("error", "words"),
    [
        (httpx2.ConnectError("no route"), "cannot be reached from this machine"),
        (ConnectionError("offline mode"), "cannot be reached from this machine"),
    ],
)
def test_a_hub_out_of_reach_is_explained(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, error: Exception, words: str
) -> None:
    def unreachable(*_: object, **__: object) -> None:
        raise error

    monkeypatch.setattr(huggingface_hub.HfApi, "dataset_info", unreachable)
    with pytest.raises(HubError, match=words):
        fetch_rows(HubSet(name="owner/set"), tmp_path / "rows")


def test_a_missing_package_is_named_with_its_remedy(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setitem(sys.modules, "datasets", None)
    with pytest.raises(HubError, match=r"not installed.*requirements-hub\.txt"):
        fetch_rows(HubSet(name="owner/set"), tmp_path / "rows")
    assert (Path(hub.__file__).parents[1] / "requirements-hub.txt").is_file()


@pytest.mark.parametrize("name", ["../secrets", "/etc", ".", "a/b/c", "", "hf://x", "tests"])
def test_a_path_is_no_name(tmp_path: Path, name: str) -> None:
    with pytest.raises(DataError, match="not the name of a data set"):
        fetch_rows(HubSet(name=name), tmp_path / "rows")
