"""What TensorBoard reads: every record whole and checked, each figure under its name."""

import struct
from pathlib import Path

from tensorboardX.crc32c import crc32c
from tensorboardX.proto.event_pb2 import Event, SessionLog

from tests.db.building import step_metric, turn_metric
from trainer.runs.events import EventFile


def read_events(path: Path) -> list[Event]:
    """Read a file of length-prefixed records with masked checksums."""
    data, events = path.read_bytes(), []
    while data:
        (length,) = struct.unpack("<Q", data[:8])
        assert masked(data[:8]) == struct.unpack("<I", data[8:12])[0]
        content = data[12 : 12 + length]
        assert masked(content) == struct.unpack("<I", data[12 + length : 16 + length])[0]
        events.append(Event.FromString(content))
        data = data[16 + length :]
    return events


def masked(data: bytes) -> int:
    checksum = crc32c(data)
    return (((checksum >> 15) | (checksum << 17)) + 0xA282EAD8) & 0xFFFFFFFF


def test_a_steps_figures_and_its_turns_means_are_written_at_once(tmp_path: Path) -> None:
    events = EventFile(tmp_path / "tensorboard")
    assert list(tmp_path.iterdir()) == []
    turns = [
        turn_metric(step=4, conversation=c, turn=1, loss_mean=loss)
        for c, loss in enumerate((0.5, 1.5))
    ]
    events.add(step_metric(step=4), turns)
    (file,) = (tmp_path / "tensorboard").iterdir()
    version, start, step = read_events(file)
    assert version.file_version == "brain.Event:2"
    assert (start.step, start.session_log.status) == (4, SessionLog.START)
    found = {value.tag: value.simple_value for value in step.summary.value}
    assert (step.step, found["step/loss"], found["turn_2/loss_mean"]) == (4, 0.5, 1.0)
    assert "step/gpu_percent" not in found  # there was none


def test_each_attempt_writes_a_file_of_its_own(tmp_path: Path) -> None:
    for step in (0, 1):
        EventFile(tmp_path).add(step_metric(step=step), [])
    files = sorted(tmp_path.iterdir())
    steps = [[event.step for event in read_events(file)] for file in files]
    assert steps in ([[0, 0, 0], [0, 1, 1]], [[0, 1, 1], [0, 0, 0]])
