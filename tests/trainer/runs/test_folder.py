"""Files of a run appear whole or not at all."""

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from trainer.errors import CheckpointError
from trainer.runs.checkpoint import (
    KEPT,
    Judgement,
    Progress,
    checkpoint_paths,
    read_checkpoint,
    save_checkpoint,
)
from trainer.runs.folder import RunFolder, atomic_folder, read_json, sha256_of, write_json


def test_a_folder_that_fails_half_way_leaves_the_old_one(tmp_path: Path) -> None:
    target = tmp_path / "adapter"
    with atomic_folder(target) as folder:
        (folder / "weights").write_text("first")
    with pytest.raises(OSError, match="full"), atomic_folder(target) as folder:
        (folder / "weights").write_text("second")
        raise OSError("disk full")
    assert (target / "weights").read_text() == "first"
    assert [path.name for path in tmp_path.iterdir()] == ["adapter"]


def test_a_second_folder_replaces_the_first(tmp_path: Path) -> None:
    for text in ("first", "second"):
        with atomic_folder(tmp_path / "adapter") as folder:
            (folder / text).write_text(text)
    assert [path.name for path in (tmp_path / "adapter").iterdir()] == ["second"]


def test_a_missing_or_broken_json_file_is_named(tmp_path: Path) -> None:
    with pytest.raises(CheckpointError, match=r"config\.json"):
        read_json(tmp_path / "config.json")
    (tmp_path / "config.json").write_text("{")
    with pytest.raises(CheckpointError, match=r"config\.json"):
        read_json(tmp_path / "config.json")
    write_json(tmp_path / "config.json", {"a": 1})
    assert read_json(tmp_path / "config.json") == {"a": 1}


def test_the_hash_of_a_folder_sees_names_and_contents(tmp_path: Path) -> None:
    (tmp_path / "a").write_text("x")
    first = sha256_of(tmp_path)
    (tmp_path / "a").rename(tmp_path / "b")
    second = sha256_of(tmp_path)
    (tmp_path / "b").write_text("y")
    assert len({first, second, sha256_of(tmp_path)}) == 3


def progress_at(step: int, **fields: Any) -> Progress:
    nothing = {"old_logprobs": (), "base_logprobs": None, "held_out_logprobs": ()}
    return Progress(step=step, **{**nothing, **fields})


def judgement(step: int, signal: float) -> Judgement:
    return Judgement(
        epoch=step, step=step, signal=signal, conversations=1, turns=1, response_tokens=1
    )


def test_the_newest_checkpoint_comes_back_bit_by_bit_and_older_ones_go(tmp_path: Path) -> None:
    folder = RunFolder(tmp_path)
    assert checkpoint_paths(folder) == []
    progress = progress_at(0, old_logprobs=((-0.1, 1 / 3), (-1e-17,)))
    for _ in range(4):
        save_checkpoint(folder, progress, lambda path: path.mkdir())
        progress = progress.after_step(seconds=0.1, computed_tokens=7)
    checkpoint = read_checkpoint(checkpoint_paths(folder)[0])
    assert checkpoint.progress.step == 3
    assert checkpoint.progress.old_logprobs == progress.old_logprobs
    assert checkpoint.progress.computed_tokens == 21
    assert checkpoint.state.is_dir()
    assert len(list(folder.checkpoints.iterdir())) == KEPT


def test_the_checkpoint_of_the_best_epoch_stays_while_others_go(tmp_path: Path) -> None:
    folder = RunFolder(tmp_path)
    progress = progress_at(0)
    for step, signal in enumerate([0.1, 0.3, 0.2, 0.2, 0.2]):
        progress = replace(progress, step=step).after_judgement(judgement(step, signal))
        save_checkpoint(folder, progress, lambda path: path.mkdir())
    kept = [read_checkpoint(path).progress.step for path in checkpoint_paths(folder)]
    assert kept == [4, 3, 1]


def test_progress_comes_back_whole_and_names_the_base_once(tmp_path: Path) -> None:
    progress = progress_at(
        2,
        old_logprobs=((-0.1, 1 / 3), (-2.0,)),
        base_logprobs=((-0.1, 1 / 3), (-7.0,)),
        held_out_logprobs=((-0.5,),),
        judgements=(judgement(1, -0.25),),
    )
    data = json.loads(json.dumps(progress.to_json()))
    assert data["base_logprobs"] == [None, [-7.0]]
    assert Progress.from_json(data) == progress


def test_a_checkpoint_from_before_the_base_was_asked_is_read() -> None:
    data = progress_at(3, old_logprobs=((-0.1,),)).to_json()
    for name in ("base_logprobs", "held_out_logprobs", "judgements"):
        del data[name]
    assert Progress.from_json(data) == progress_at(3, old_logprobs=((-0.1,),))


def test_a_checkpoint_that_fails_leaves_the_one_before(tmp_path: Path) -> None:
    folder = RunFolder(tmp_path)
    save_checkpoint(folder, progress_at(1), lambda path: path.mkdir())

    def fail(_path: Path) -> None:
        raise OSError("disk full")

    with pytest.raises(OSError, match="full"):
        save_checkpoint(folder, progress_at(2), fail)
    (path,) = checkpoint_paths(folder)
    assert read_checkpoint(path).progress.step == 1


def test_the_log_tail_of_a_huge_log_is_short(tmp_path: Path) -> None:
    folder = RunFolder(tmp_path)
    assert folder.log_tail() == ""
    folder.log.write_bytes(b"noise \xff\n" * 100_000 + b"last line\n")
    assert folder.log_tail(lines=2).splitlines()[-1] == "last line"
    assert len(folder.log_tail().splitlines()) == 20


def test_what_a_killed_process_left_half_written_is_swept_away(tmp_path: Path) -> None:
    folder = RunFolder(tmp_path)
    for name in ("checkpoints/.00000003.tmp/state", ".adapter.tmp", "..adapter.tmp-k3j/x"):
        (tmp_path / name).mkdir(parents=True)
    for name in (".lock", "config.json", ".config.json.tmp", "checkpoints/.00000002.old"):
        (tmp_path / name).write_text(name)
    (tmp_path / "checkpoints" / "00000002").mkdir()
    folder.sweep()
    left = {path.relative_to(tmp_path).as_posix() for path in tmp_path.rglob("*")}
    assert left == {".lock", "config.json", "checkpoints", "checkpoints/00000002"}


def test_a_folder_that_was_being_replaced_comes_back(tmp_path: Path) -> None:
    """Killed between two renames: the old folder is set aside, the new one not yet in place."""
    (tmp_path / "checkpoints" / ".00000002.old").mkdir(parents=True)
    RunFolder(tmp_path).sweep()
    assert [path.name for path in (tmp_path / "checkpoints").iterdir()] == ["00000002"]
