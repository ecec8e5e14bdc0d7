"""What a run would have on this machine: a calibration, kept for a day, and the memory free now."""

from datetime import UTC, datetime, timedelta
from typing import Any

from db.settings import Settings
from trainer.config import TrainConfig
from trainer.engine.calibration import calibrate, facts, free_bytes
from trainer.engine.memory import FREE_SHARE
from trainer.errors import CheckpointError
from trainer.pass_costs import Calibration, Machine
from trainer.runs.folder import read_json, write_json

KEPT_FOR = timedelta(days=1)
"""How long a calibration holds: what else the machine does changes by itself."""


def read_machine(settings: Settings, config: TrainConfig) -> Machine:
    """Return what a run has; the model is loaded and tried if that was not done lately.

    Raises:
        ModelError: if the model cannot be had or loaded.
        OutOfMemoryError: if its weights are larger than what is free.
    """
    free = free_bytes(config)
    calibration = _calibration(settings, config)
    beside_model = free - calibration.model_bytes
    limit = config.memory_limit_gb * 1e9 or FREE_SHARE * beside_model
    return Machine(
        calibration=calibration,
        free_bytes=beside_model - calibration.optimizer_bytes,
        limit_bytes=limit,
    )


def _calibration(settings: Settings, config: TrainConfig) -> Calibration:
    path, now = settings.home / "calibration.json", datetime.now(UTC)
    wanted = facts(settings, config)
    kept = _read_kept(settings, now)
    for entry in kept:
        if entry["facts"] == wanted:
            return Calibration.from_json(entry["calibration"])
    calibration = calibrate(settings, config)
    entry = {
        "facts": wanted,
        "measured_at": now.isoformat(),
        "calibration": calibration.to_json(),
    }
    path.parent.mkdir(parents=True, exist_ok=True)
    write_json(path, [*kept, entry])
    return calibration


def _read_kept(settings: Settings, now: datetime) -> list[dict[str, Any]]:
    """Return the entries that still hold; a file of another form is as good as none."""
    try:
        entries = read_json(settings.home / "calibration.json")
        return [
            entry
            for entry in entries
            if now - datetime.fromisoformat(entry["measured_at"]) < KEPT_FOR
            and Calibration.from_json(entry["calibration"])
            and entry["facts"]
        ]
    except (CheckpointError, KeyError, TypeError, ValueError):
        return []
