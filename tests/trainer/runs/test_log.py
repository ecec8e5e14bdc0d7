"""A log that is full is turned over without losing a line, and old parts go."""

import os
import subprocess
import sys
from pathlib import Path

from trainer.runs.folder import OLD_LOGS, RunFolder
from trainer.runs.log import LOG_LIMIT_BYTES

PROGRAM = """
import os, sys
from pathlib import Path
from trainer.runs.folder import RunFolder
from trainer.runs.log import turn_over
folder = RunFolder(Path(sys.argv[1]))
for number in range(int(sys.argv[2])):
    os.write(1, b"%09d" % number + b"-" * 990 + b"\\n")
    print("spoken", number, flush=True)
    if number % 50 == 0:
        turn_over(folder)
"""


def print_kilobytes(folder: RunFolder, number: int) -> None:
    """Let a process print so many kilobytes into the folder's log."""
    with folder.log.open("ab") as log:
        command = [sys.executable, "-c", PROGRAM, str(folder.path), str(number)]
        root = Path(__file__).parents[3]
        subprocess.run(command, stdout=log, stderr=log, check=True, cwd=root)


def test_no_line_is_lost_when_the_log_is_turned_over(tmp_path: Path) -> None:
    folder = RunFolder(tmp_path)
    print_kilobytes(folder, 3000)
    assert [path.name for path in folder.logs] == ["run.log.1", "run.log"]
    numbers = [line for line in folder.whole_log().splitlines() if line.startswith(b"spoken")]
    assert numbers == [b"spoken %d" % number for number in range(3000)]


def test_the_oldest_parts_go_and_the_last_lines_stay(tmp_path: Path) -> None:
    folder = RunFolder(tmp_path)
    print_kilobytes(folder, 9000)
    assert [path.name for path in folder.logs] == ["run.log.2", "run.log.1", "run.log"]
    assert len(folder.whole_log()) < (OLD_LOGS + 1) * LOG_LIMIT_BYTES * 1.1
    assert folder.log_tail(3).splitlines()[-1] == "spoken 8999"


def test_the_last_lines_reach_back_into_the_log_before(tmp_path: Path) -> None:
    folder = RunFolder(tmp_path)
    (tmp_path / "run.log.1").write_text("one\ntwo\nthree\n")
    folder.log.write_text("four\n")
    assert folder.log_tail(3) == "two\nthree\nfour"


def test_a_process_whose_output_is_elsewhere_leaves_the_log_alone(tmp_path: Path) -> None:
    folder = RunFolder(tmp_path)
    folder.log.write_bytes(bytes(LOG_LIMIT_BYTES + 1))
    command = [sys.executable, "-c", PROGRAM, str(tmp_path), "10"]
    subprocess.run(
        command,
        stdout=subprocess.DEVNULL,
        check=True,
        cwd=Path(__file__).parents[3],
        env=os.environ,
    )
    assert [path.name for path in tmp_path.iterdir()] == ["run.log"]
