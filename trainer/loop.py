"""Multi-turn PPO as a story: render, credit, old logprobs, then step after step to an adapter."""

import time
from collections.abc import Sequence
from dataclasses import asdict
from enum import StrEnum
from functools import partial
from pathlib import Path

from db.records import Conversation
from db.settings import Settings
from trainer.behaviour import first_progress
from trainer.config import TrainConfig
from trainer.data.findings import find_problems
from trainer.data.rendering import Tokenizer
from trainer.data.turns import (
    TrainableTurn,
    at_turn,
    build_turns,
    held_out_turns,
    trainable_turns,
)
from trainer.engines import Engine
from trainer.errors import BadDataError, CheckpointError, NotFiniteError
from trainer.export.adapter import write_adapter
from trainer.held_out import Judge
from trainer.plan import Step, make_plan
from trainer.runs.checkpoint import (
    Checkpoint,
    Progress,
    checkpoint_path,
    checkpoint_paths,
    read_checkpoint,
    save_checkpoint,
)
from trainer.runs.folder import RunFolder, write_json_lines
from trainer.runs.recorder import Recorder
from trainer.samples import sample_after, sample_before
from trainer.stepping import Stepper
from trainer.summary import write_summary

CHECKPOINT_EVERY_S = 60.0
"""A checkpoint is written at the end of each epoch, and at least this often between steps."""


class Ending(StrEnum):
    """How the loop came to its end."""

    FINISHED = "finished"
    EARLY = "early"
    STOPPED = "stopped"


def train(
    conversations: Sequence[Conversation],
    config: TrainConfig,
    client: Engine,
    folder: RunFolder,
    recorder: Recorder,
    settings: Settings,
    *,
    load_s: float,
) -> Ending:
    """Train an adapter, going on from the folder's last checkpoint if it has one.

    Leaves `adapter/`, `samples.json` and `summary.json` in the folder; after a stop only the
    checkpoint, from which the same call goes on.

    Args:
        conversations: The data, in the order that metrics number it by.
        config: The configuration.
        client: A training client for the base model with a fresh adapter.
        folder: The run's folder.
        recorder: Takes the metrics, and says whether to stop.
        settings: Where the base models are, for the model card.
        load_s: Seconds that loading the model took, for the summary.

    Raises:
        BadDataError: if nothing in the data can be trained on.
        NotFiniteError: if a loss or gradient is NaN or Inf; names step, conversation and turn.
    """
    started = time.perf_counter()
    turns, judging_turns = prepare(conversations, config, client.get_tokenizer(), recorder)
    plan = make_plan(turns, config, ranks=client.ranks.count)
    judge = Judge(judging_turns, plan, token_budget=config.token_budget * client.ranks.count)
    progress = (
        _resume(turns, judge, client, folder, recorder)
        if checkpoint_paths(folder)
        else _begin(conversations, turns, plan, judge, config, client, folder, recorder)
    )
    if progress is None:
        return Ending.STOPPED

    stepper = Stepper(config=config, client=client, turns=turns, plan=plan, recorder=recorder)
    epoch_ends = {step.epoch: step.index + 1 for step in plan}.values()
    saved_at = time.perf_counter()
    while True:
        if judge.is_due(progress):
            after = judge.judge(progress, client, recorder)
        elif progress.step < len(plan) and not progress.kl_limit_passed:
            after = stepper.run(progress)
        else:
            break
        if after is None:
            _save(folder, progress, client, recorder)
            return Ending.STOPPED
        progress = after
        if judge.is_due(progress):
            continue  # what it says belongs into the same checkpoint
        if (
            progress.step in epoch_ends
            or progress.kl_limit_passed
            or _checkpoint_is_due(saved_at, client)
        ):
            _save(folder, progress, client, recorder)
            saved_at = time.perf_counter()

    if progress.best is not None and progress.best.step != progress.step:
        best = Checkpoint(checkpoint_path(folder, progress.best.step), progress)
        client.load_state(str(best.state)).result()
    ending = Ending.EARLY if progress.kl_limit_passed else Ending.FINISHED
    recorder.progress(1.0, "asking the trained model the sample prompts")
    client.ranks.lead(lambda: sample_after(conversations, config, client, folder))
    recorder.progress(1.0, "saving the adapter")
    total_s = load_s + time.perf_counter() - started

    def save_results() -> None:
        write_summary(folder, turns, plan, progress, client, ending, load_s=load_s, total_s=total_s)
        write_adapter(client, config, folder, settings)

    client.ranks.lead(save_results)
    recorder.progress(1.0, _last_word(ending, progress, len(plan)))
    return ending


def _begin(
    conversations: Sequence[Conversation],
    turns: Sequence[TrainableTurn],
    plan: Sequence[Step],
    judge: Judge,
    config: TrainConfig,
    client: Engine,
    folder: RunFolder,
    recorder: Recorder,
) -> Progress | None:
    """Do what comes before the first step; None if a stop was asked for meanwhile."""
    recorder.rewind(-1)
    if recorder.progress(0.0, "asking the base model the sample prompts"):
        return None
    client.ranks.lead(lambda: sample_before(conversations, config, client, folder))
    return first_progress(turns, plan, (judge.turns, judge.passes), config, client, recorder)


def _resume(
    turns: Sequence[TrainableTurn],
    judge: Judge,
    client: Engine,
    folder: RunFolder,
    recorder: Recorder,
) -> Progress:
    """Load the newest checkpoint that is whole.

    Raises:
        CheckpointError: if none is, or they belong to other data.
    """
    responses = [len(turn.rendered.response_ids) for turn in [*turns, *judge.turns]]
    for path in checkpoint_paths(folder):
        try:
            checkpoint = client.ranks.together(partial(_load, path, client))
        except CheckpointError as error:
            recorder.note(f"checkpoint {path.name} is damaged and passed over ({error.what})")
            continue
        progress = checkpoint.progress
        known = [*progress.old_logprobs, *progress.held_out_logprobs]
        if [len(turn) for turn in known] != responses:
            raise CheckpointError(
                "the data or settings are no longer those that the run began with",
                where=str(folder.path),
                remedy="Launch a new run with the present data.",
            )
        recorder.rewind(progress.step - 1)
        return progress
    raise CheckpointError(
        "none of its checkpoints can be read",
        where=str(folder.checkpoints),
        remedy="Delete that folder to begin the run anew.",
    )


def _load(path: Path, client: Engine) -> Checkpoint:
    checkpoint = read_checkpoint(path)
    client.load_state_with_optimizer(str(checkpoint.state)).result()
    return checkpoint


def _last_word(ending: Ending, progress: Progress, planned: int) -> str:
    words = f"All {planned} steps were taken."
    if ending is Ending.EARLY:
        words = f"It ended early, at step {progress.step} of {planned}: the KL limit was passed."
    if progress.best is not None:
        words += (
            f" The adapter is that of epoch {progress.best.epoch + 1}, "
            "the best on held-out conversations."
        )
    elif progress.judgements:
        words += (
            " No epoch did better on the held-out conversations than the model it started from: the "
            "adapter is the last one; compare it with the base model before you use it."
        )
    return words


def prepare(
    conversations: Sequence[Conversation],
    config: TrainConfig,
    tokenizer: Tokenizer,
    recorder: Recorder,
) -> tuple[list[TrainableTurn], list[TrainableTurn]]:
    """Return the turns to train on and those to judge by; what is left out is named in the log.

    Raises:
        BadDataError: if the data cannot be trained on, with the reason.
    """
    table = build_turns(conversations, config, tokenizer)
    for problem in find_problems(conversations, table, config):
        if problem.blocking:
            raise BadDataError(problem.text, where="data")
        recorder.note(problem.text)
    return trainable_turns(table, config), held_out_turns(table, config)


def _checkpoint_is_due(saved_at: float, client: Engine) -> bool:
    """Return what the leader's clock says, so that all ranks save together."""
    return client.ranks.lead(lambda: time.perf_counter() - saved_at > CHECKPOINT_EVERY_S)


def _save(folder: RunFolder, progress: Progress, client: Engine, recorder: Recorder) -> None:
    """Write a checkpoint, and beside it what the held-out conversations said until then."""

    def save_state(path: Path) -> None:
        client.save_state(str(path)).result()

    def save() -> None:
        save_checkpoint(folder, progress, save_state)
        if progress.judgements:
            write_json_lines(folder.held_out, [asdict(one) for one in progress.judgements])

    recorder.settle()
    try:
        client.ranks.lead(save)
    except NotFiniteError as error:
        raise at_turn(error, f"after step {progress.step}", (), ()) from error
