"""What a run has recorded can be taken back to a step, in the file and in the database alike."""

import io
import json
from pathlib import Path

from db import queries
from db.engine import open_database
from db.settings import Settings
from tests.db.building import queued_run, step_metric, turn_metric
from trainer.runs.database_recorder import DatabaseRecorder
from trainer.runs.recorder import FileRecorder


def test_a_step_that_was_never_finished_is_taken_back_everywhere(
    settings: Settings, tmp_path: Path
) -> None:
    database = open_database(settings)
    run = queued_run(database)
    files = FileRecorder(tmp_path / "metrics.jsonl", output=io.StringIO())
    recorder = DatabaseRecorder(database, run.id, files)
    for step in range(3):
        recorder.turns([turn_metric(step=step, turn=0), turn_metric(step=step, turn=1)])
        recorder.step(step_metric(step=step))
    recorder.turns([turn_metric(step=3, turn=0)])  # and here the process was killed
    with files._metrics.open("a") as file:
        file.write('{"epoch": 0, "step": 1, "conver')

    recorder.rewind(1)
    rows = [json.loads(line) for line in (tmp_path / "metrics.jsonl").read_text().splitlines()]
    expected = [(0, 0), (0, 1), (1, 0), (1, 1)]
    assert [(row["step"], row["turn"]) for row in rows] == expected
    stored = queries.turn_metrics(database, run.id)
    assert [(row.step, row.turn) for row in stored] == expected
    assert [row.step for row in queries.step_metrics(database, run.id)] == [0, 1]
    recorder.turns([turn_metric(step=2, turn=0)])  # the next attempt's row finds its place free
    recorder.store()
    assert len(queries.turn_metrics(database, run.id)) == 5
    database.close()
