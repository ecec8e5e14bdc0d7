"""Judging a run's answers after its end, in a process of its own: it can never harm the run."""

import sys
from dataclasses import asdict, dataclass, replace
from datetime import UTC, datetime
from typing import Any

from db import queries
from db.engine import Database
from db.enums import RunStatus
from db.errors import EveryTurnError
from trainer.detached import start_detached
from trainer.errors import BadDataError, CheckpointError
from trainer.evaluating.judge import Endpoint, Judge
from trainer.runs.folder import RunFolder, read_json, write_json
from trainer.runs.process import Mark, Sign, own_mark

MOST_FAILURES = 3
"""So many prompts in a row without a verdict, and the judge is not asked any more."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Judgements:
    """What an automatic judge said of a run's answers.

    Attributes:
        model: The judge.
        host: Where it answers.
        process: What tells the process that asks from all others; empty once it has ended.
        verdicts: For each prompt: 1 the trained model's answer is better, 0 worse, 0.5 neither;
            None where there is no verdict (yet).
        error: Why there is none, in words; empty if nothing failed.
        at: When it was written, as ISO 8601.
    """

    model: str
    host: str
    process: str
    verdicts: tuple[float | None, ...]
    error: str = ""
    at: str = ""

    @property
    def is_under_way(self) -> bool:
        """Whether a process still asks."""
        return bool(self.process) and Mark.from_text(self.process).sign() in (
            Sign.ALIVE,
            Sign.ELSEWHERE,
        )


def endpoint_of(database: Database) -> Endpoint | None:
    """Return the judge that the project's settings name; None if they name none."""
    settings = queries.project_settings(database)
    if not settings.judge_url or not settings.judge_model:
        return None
    return Endpoint(url=settings.judge_url, model=settings.judge_model)


def start_judging(database: Database, run_id: int) -> None:
    """Start a process that asks the judge about a finished run, if there is a judge.

    Whatever goes wrong is printed and harms nobody: the run is over.
    """
    try:
        run = queries.run(database, run_id)
        if run.status is not RunStatus.FINISHED or endpoint_of(database) is None:
            return
        folder = RunFolder(database.settings.run_dir(run_id))
        if folder.samples.exists():
            log = folder.path / "judge.log"
            start_detached(database.settings, ["trainer", "judge", str(run_id)], log)
    except (EveryTurnError, OSError) as error:
        print(f"note: the judge was not asked about run {run_id}: {error}", file=sys.stderr)  # noqa: T201


def judge_run(database: Database, run_id: int, *, wait_s: float = 1.0) -> Judgements:
    """Ask the judge about every prompt of a run, and write what it says into the run's folder.

    Args:
        database: Where the run and the settings are.
        run_id: Which run.
        wait_s: How long to wait before a second try.

    Raises:
        BadDataError: if the settings name no judge, or the run has no answers to compare.
    """
    endpoint = endpoint_of(database)
    folder = RunFolder(database.settings.run_dir(queries.run(database, run_id).id))
    samples = read_json(folder.samples) if folder.samples.exists() else []
    if endpoint is None or not samples or any(sample["after"] is None for sample in samples):
        raise BadDataError(
            "the settings name no judge" if endpoint is None else "there is nothing to compare",
            where=f"run {run_id}",
            remedy="Set the judge's address and model in the settings, part Evaluation."
            if endpoint is None
            else "Wait until the run has answered its prompts before and after training.",
        )
    told = Judgements(
        model=endpoint.model,
        host=endpoint.host,
        process=str(own_mark()),
        verdicts=(None,) * len(samples),
    )
    _write(folder, told)
    failures = 0
    with Judge(endpoint, wait_s=wait_s) as judge:
        for place, sample in enumerate(samples):
            prompt = [(message["role"], message["content"]) for message in sample["prompt"]]
            verdict, failures, error = None, failures + 1, ""
            try:
                verdict = judge.compare(
                    prompt, sample["before"], sample["after"], tools=sample.get("tools", ())
                )
                failures = 0
            except EveryTurnError as problem:
                error = str(problem)
            verdicts = (*told.verdicts[:place], verdict, *told.verdicts[place + 1 :])
            told = replace(told, verdicts=verdicts, error=error or told.error)
            _write(folder, told)
            if failures == MOST_FAILURES:
                break
    told = replace(told, process="")
    _write(folder, told)
    return told


def read_judgements(folder: RunFolder) -> Judgements | None:
    """Return what the judge said of a run so far; None if it was never asked."""
    if not folder.judgements.exists():
        return None
    try:
        data: dict[str, Any] = read_json(folder.judgements)
        return Judgements(**{**data, "verdicts": tuple(data["verdicts"])})
    except (CheckpointError, KeyError, TypeError):
        return None


def _write(folder: RunFolder, told: Judgements) -> None:
    write_json(folder.judgements, {**asdict(told), "at": datetime.now(UTC).isoformat()})
