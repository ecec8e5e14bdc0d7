"""Multi-turn PPO as a story: render, credit, old logprobs, then step after step to an adapter."""

import time
from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path
from typing import Any

from db.records import Conversation, StepMetric, TurnMetric
from db.settings import Settings
from trainer.config import (
    RECIPE_OLD_LOGPROB,
    Guard,
    LossName,
    LossScale,
    OldLogprobs,
    TrainConfig,
)
from trainer.data.datums import build_datum
from trainer.data.rendering import Tokenizer
from trainer.data.turns import TrainableTurn, build_turns, find_problems, trainable_turns
from trainer.engine.client import TrainingClient
from trainer.engine.losses import LossConfig
from trainer.engine.metrics import TurnFigures, turn_figures
from trainer.engine.types import AdamParams, Datum
from trainer.errors import BadDataError, CheckpointError, NotFiniteError
from trainer.export import write_adapter
from trainer.plan import Step, learning_rate, make_plan
from trainer.runs.checkpoint import (
    Progress,
    checkpoint_paths,
    read_checkpoint,
    save_checkpoint,
)
from trainer.runs.folder import RunFolder
from trainer.runs.recorder import Recorder
from trainer.samples import sample_after, sample_before
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
    client: TrainingClient,
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
    turns = prepare(conversations, config, client.get_tokenizer(), recorder)
    plan = make_plan(turns, config)
    progress = (
        _resume(turns, client, folder, recorder)
        if checkpoint_paths(folder)
        else _begin(conversations, turns, plan, config, client, folder, recorder)
    )
    if progress is None:
        return Ending.STOPPED

    session = _Session(config=config, client=client, turns=turns, plan=plan, recorder=recorder)
    saved_at = time.perf_counter()
    while progress.step < len(plan) and not progress.kl_limit_passed:
        step = plan[progress.step]
        after = session.run(step, progress)
        if after is None:
            _save(folder, progress, client)
            return Ending.STOPPED
        progress = after
        last_of_epoch = step is plan[-1] or plan[step.index + 1].epoch > step.epoch
        if last_of_epoch or time.perf_counter() - saved_at > CHECKPOINT_EVERY_S:
            _save(folder, progress, client)
            saved_at = time.perf_counter()

    ending = Ending.EARLY if progress.kl_limit_passed else Ending.FINISHED
    recorder.progress(1.0, "asking the trained model the sample prompts")
    sample_after(config, client, folder)
    recorder.progress(1.0, "saving the adapter")
    total_s = load_s + time.perf_counter() - started
    write_summary(folder, turns, plan, progress, client, ending, load_s=load_s, total_s=total_s)
    write_adapter(client, config, folder, settings)
    recorder.progress(1.0, _last_word(ending, progress.step, len(plan)))
    return ending


def _begin(
    conversations: Sequence[Conversation],
    turns: Sequence[TrainableTurn],
    plan: Sequence[Step],
    config: TrainConfig,
    client: TrainingClient,
    folder: RunFolder,
    recorder: Recorder,
) -> Progress | None:
    """Do what comes before the first step; None if a stop was asked for meanwhile."""
    recorder.rewind(-1)
    if recorder.progress(0.0, "asking the base model the sample prompts"):
        return None
    sample_before(conversations, config, client, folder)
    old_logprobs = behaviour_logprobs(turns, plan, config, client, recorder)
    return None if old_logprobs is None else Progress(step=0, old_logprobs=old_logprobs)


def _resume(
    turns: Sequence[TrainableTurn], client: TrainingClient, folder: RunFolder, recorder: Recorder
) -> Progress:
    """Load the newest checkpoint that is whole.

    Raises:
        CheckpointError: if none is, or they belong to other data.
    """
    responses = [len(turn.rendered.response_ids) for turn in turns]
    for path in checkpoint_paths(folder):
        try:
            checkpoint = read_checkpoint(path)
            client.load_state_with_optimizer(str(checkpoint.state)).result()
        except CheckpointError as error:
            recorder.note(f"checkpoint {path.name} is damaged and passed over ({error.what})")
            continue
        if [len(turn) for turn in checkpoint.progress.old_logprobs] != responses:
            raise CheckpointError(
                "the data or settings are no longer those that the run began with",
                where=str(folder.path),
                remedy="Launch a new run with the present data.",
            )
        recorder.rewind(checkpoint.progress.step - 1)
        return checkpoint.progress
    raise CheckpointError(
        "none of its checkpoints can be read",
        where=str(folder.checkpoints),
        remedy="Delete that folder to begin the run anew.",
    )


def _last_word(ending: Ending, steps: int, planned: int) -> str:
    if ending is Ending.EARLY:
        return f"It ended early, at step {steps} of {planned}: the KL limit was passed."
    return f"All {planned} steps were taken."


def prepare(
    conversations: Sequence[Conversation],
    config: TrainConfig,
    tokenizer: Tokenizer,
    recorder: Recorder,
) -> list[TrainableTurn]:
    """Return the turns to train on; what is left out is named in the log.

    Raises:
        BadDataError: if the data cannot be trained on, with the reason.
    """
    table = build_turns(conversations, config, tokenizer)
    for problem in find_problems(conversations, table, config):
        if problem.blocking:
            raise BadDataError(problem.text, where="data")
        recorder.note(problem.text)
    return trainable_turns(table, config)


def behaviour_logprobs(
    turns: Sequence[TrainableTurn],
    plan: Sequence[Step],
    config: TrainConfig,
    client: TrainingClient,
    recorder: Recorder,
) -> tuple[tuple[float, ...], ...] | None:
    """Return the old log-probability of each response token of each turn; None after a stop.

    The recipe's constant; or what was stored when the reply was sampled; or, for replies that no
    known policy sampled, what the model says of them before the first step. The latter are
    measured in the passes of the first epoch, so that the first ratios are exactly 1.
    """
    if config.old_logprobs is OldLogprobs.CONSTANT:
        return tuple((RECIPE_OLD_LOGPROB,) * len(turn.rendered.response_ids) for turn in turns)
    known = {
        position: turn.rendered.sampled_logprobs
        for position, turn in enumerate(turns)
        if turn.rendered.sampled_logprobs is not None
    }
    groups = [group for step in plan if step.epoch == 0 for group in step.passes]
    for number, group in enumerate(groups):
        if all(position in known for position in group):
            continue
        if recorder.progress(
            0.0, f"measuring the data before training, {number + 1}/{len(groups)}"
        ):
            return None
        output = client.forward([_probe(turns[p]) for p in group], LossName.CROSS_ENTROPY).result()
        for position, fields in zip(group, output.loss_fn_outputs, strict=True):
            response = len(turns[position].rendered.response_ids)
            known.setdefault(position, tuple(fields["logprobs"].tolist()[-response:]))
    return tuple(known[position] for position in range(len(turns)))


def _probe(turn: TrainableTurn) -> Datum:
    """A datum that only asks for the log-probabilities of a turn's response."""
    nothing = [0.0] * len(turn.rendered.response_ids)
    return build_datum(turn.rendered, advantage=0.0, old_logprobs=nothing, off_policy=False)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Session:
    """What every step of a run needs."""

    config: TrainConfig
    client: TrainingClient
    turns: Sequence[TrainableTurn]
    plan: Sequence[Step]
    recorder: Recorder

    def run(self, step: Step, progress: Progress) -> Progress | None:
        """Take one optimiser step; None if a stop was asked for, with no weight changed."""
        started, computed_before = time.perf_counter(), self.client.computed_tokens
        all_figures: list[TurnFigures] = []
        for number, group in enumerate(step.passes):
            if self.recorder.progress(self._share(step, number), self._message(step)):
                return None
            figures = self._forward_backward(step, group, progress)
            rows = [self._row(step, *pair) for pair in zip(group, figures, strict=True)]
            self.recorder.turns(rows)
            all_figures += figures
        rate = learning_rate(self.config, step.index)
        grad_norm = self._optimise(step, rate)
        seconds = time.perf_counter() - started
        computed = self.client.computed_tokens - computed_before
        tokens = sum(figure.tokens for figure in all_figures)
        kl = sum(figure.kl_mean * figure.tokens for figure in all_figures) / tokens
        self.recorder.step(
            StepMetric(
                step=step.index,
                epoch=step.epoch,
                loss=sum(figure.loss_mean * figure.tokens for figure in all_figures) / tokens,
                grad_norm=grad_norm,
                lr=rate,
                kl=kl,
                tokens_per_s=computed / seconds,
                memory_bytes=self.client.peak_memory_bytes(),
                seconds=seconds,
            )
        )
        return progress.after_step(
            seconds=seconds,
            computed_tokens=computed,
            kl_limit_passed=bool(self.config.max_kl) and kl > self.config.max_kl,
        )

    def _forward_backward(
        self, step: Step, group: Sequence[int], progress: Progress
    ) -> list[TurnFigures]:
        weight = 1.0
        if self.config.loss_scale is LossScale.TRAINED_TOKENS:
            weight /= sum(len(self.turns[p].rendered.response_ids) for p in step.turns)
        datums = [self._datum(position, progress, weight) for position in group]
        settings = _loss_fn_config(self.config)
        try:
            output = self.client.forward_backward(datums, self.config.loss, settings).result()
        except NotFiniteError as error:
            raise self._at_turn(error, step, group) from error
        return [
            turn_figures(self.config.loss, datum, fields["logprobs"], LossConfig.parse(settings))
            for datum, fields in zip(datums, output.loss_fn_outputs, strict=True)
        ]

    def _datum(self, position: int, progress: Progress, weight: float) -> Datum:
        turn = self.turns[position]
        unsampled = turn.rendered.sampled_logprobs is None
        return build_datum(
            turn.rendered,
            advantage=turn.advantage,
            old_logprobs=progress.old_logprobs[position],
            off_policy=unsampled and self.config.guard is Guard.TRUNCATE,
            weight=weight,
        )

    def _optimise(self, step: Step, rate: float) -> float:
        """Take the optimiser step; return the gradient's L2 norm before clipping."""
        params = AdamParams(
            learning_rate=rate,
            beta1=self.config.adam_beta1,
            beta2=self.config.adam_beta2,
            eps=self.config.adam_eps,
            weight_decay=self.config.weight_decay,
            grad_clip_norm=self.config.grad_clip_norm,
        )
        try:
            return self.client.optim_step(params).result().metrics["grad_norm:last"]
        except NotFiniteError as error:
            raise self._at_turn(error, step, ()) from error

    def _row(self, step: Step, position: int, figures: TurnFigures) -> TurnMetric:
        turn = self.turns[position]
        return TurnMetric(
            epoch=step.epoch,
            step=step.index,
            conversation=turn.conversation,
            turn=turn.turn,
            tokens=turn.rendered.tokens,
            response_tokens=figures.tokens,
            reward=turn.reward,
            advantage=turn.advantage,
            loss_mean=figures.loss_mean,
            loss_sum=figures.loss_mean * figures.tokens,
            ratio_mean=figures.ratio_mean,
            clipfrac=figures.clipfrac,
            clipfrac_binding=figures.clipfrac_binding,
            kl_mean=figures.kl_mean,
            logprob_mean=figures.logprob_mean,
        )

    def _at_turn(self, error: NotFiniteError, step: Step, group: Sequence[int]) -> NotFiniteError:
        """Say in the run's own terms where the number that is none turned up."""
        where = f"step {step.index + 1}"
        if error.datum is not None:
            where += f", {self.turns[group[error.datum]].place}"
        return NotFiniteError(error.what, where=where, remedy=error.remedy)

    def _share(self, step: Step, passes_done: int) -> float:
        return (step.index + passes_done / len(step.passes)) / len(self.plan)

    def _message(self, step: Step) -> str:
        return (
            f"epoch {step.epoch + 1}/{self.config.epochs} · step {step.index + 1}/{len(self.plan)}"
        )


def _loss_fn_config(config: TrainConfig) -> dict[str, Any]:
    """Return the loss settings under the names of the Tinker API."""
    return {
        "clip_low_threshold": config.clip_low,
        "clip_high_threshold": config.clip_high,
        "truncate_off_policy": float(config.guard is Guard.TRUNCATE),
    }


def _save(folder: RunFolder, progress: Progress, client: TrainingClient) -> None:
    def save_state(path: Path) -> None:
        client.save_state(str(path)).result()

    save_checkpoint(folder, progress, save_state)
