"""One optimiser step of a run: passes, loss, figures, a new adapter."""

import time
from collections.abc import Sequence
from dataclasses import dataclass

from db.records import StepMetric, TurnMetric
from trainer.choices import Guard, LossScale
from trainer.config import TrainConfig
from trainer.data.datums import build_datum
from trainer.data.turns import TrainableTurn, at_turn
from trainer.engine.loss_config import LossConfig
from trainer.engine.metrics import TurnFigures, turn_figures
from trainer.engine.types import AdamParams, Datum
from trainer.engines import Engine
from trainer.errors import NotFiniteError
from trainer.plan import Step, learning_rate
from trainer.runs.checkpoint import Progress
from trainer.runs.recorder import Recorder


@dataclass(frozen=True, slots=True, kw_only=True)
class Stepper:
    """What every step of a run needs."""

    config: TrainConfig
    client: Engine
    turns: Sequence[TrainableTurn]
    plan: Sequence[Step]
    recorder: Recorder

    def run(self, progress: Progress) -> Progress | None:
        """Take the next optimiser step; None if a stop was asked for, with no weight changed.

        Raises:
            NotFiniteError: if a loss or gradient is NaN or Inf; names step, conversation and turn.
        """
        step = self.plan[progress.step]
        started, computed_before = time.perf_counter(), self.client.computed_tokens
        all_figures: list[TurnFigures] = []
        for number, group in enumerate(step.passes):
            if self.recorder.progress(self._share(step, number), self._message(step)):
                return None
            figures = self._forward_backward(step, group, progress)
            rows = [self._row(step, *pair) for pair in zip(group, figures, strict=True)]
            self.recorder.turns(rows)
            all_figures += figures
        rate = learning_rate(self.config, step.index, len(self.plan))
        grad_norm = self._optimise(step, rate)
        seconds = time.perf_counter() - started
        computed = self.client.computed_tokens - computed_before
        tokens = sum(figure.tokens for figure in all_figures)
        kl = sum(figure.kl_mean * figure.tokens for figure in all_figures) / tokens
        kl_base = _kl_base(all_figures)
        self.recorder.step(
            StepMetric(
                step=step.index,
                epoch=step.epoch,
                loss=sum(figure.loss_mean * figure.tokens for figure in all_figures) / tokens,
                grad_norm=grad_norm,
                lr=rate,
                kl=kl,
                kl_base=kl_base,
                tokens_per_s=computed / seconds,
                memory_bytes=self.client.peak_memory_bytes(),
                seconds=seconds,
            )
        )
        farthest = kl if kl_base is None else max(kl, kl_base)
        return progress.after_step(
            seconds=seconds,
            computed_tokens=computed,
            kl_limit_passed=bool(self.config.max_kl) and farthest > self.config.max_kl,
        )

    def _forward_backward(
        self, step: Step, group: Sequence[int], progress: Progress
    ) -> list[TurnFigures]:
        weight = 1.0
        if self.config.loss_scale is LossScale.TRAINED_TOKENS:
            weight /= sum(len(self.turns[p].rendered.response_ids) for p in step.turns)
        datums = [self._datum(position, progress, weight) for position in group]
        settings = loss_config(self.config)
        try:
            output = self.client.forward_backward(
                datums, self.config.loss, settings.to_numbers()
            ).result()
        except NotFiniteError as error:
            raise at_turn(error, f"step {step.index + 1}", self.turns, group) from error
        return [
            turn_figures(self.config.loss, datum, fields["logprobs"], settings)
            for datum, fields in zip(datums, output.loss_fn_outputs, strict=True)
        ]

    def _datum(self, position: int, progress: Progress, weight: float) -> Datum:
        turn, base = self.turns[position], progress.base_logprobs
        unsampled = turn.rendered.sampled_logprobs is None
        return build_datum(
            turn.rendered,
            advantage=turn.advantage,
            old_logprobs=progress.old_logprobs[position],
            off_policy=unsampled and self.config.guard is not Guard.NONE,
            weight=weight,
            reference_logprobs=None if base is None else base[position],
        )

    def _optimise(self, step: Step, rate: float) -> float | None:
        """Take the optimiser step; return the gradient's L2 norm before clipping, if it is told."""
        params = adam_params(self.config, rate)
        try:
            return self.client.optim_step(params).result().metrics.get("grad_norm:last")
        except NotFiniteError as error:
            raise at_turn(error, f"step {step.index + 1}", self.turns, ()) from error

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
            kl_base=figures.kl_base,
        )

    def _share(self, step: Step, passes_done: int) -> float:
        return (step.index + passes_done / len(step.passes)) / len(self.plan)

    def _message(self, step: Step) -> str:
        return (
            f"epoch {step.epoch + 1}/{self.config.epochs} · step {step.index + 1}/{len(self.plan)}"
        )


def adam_params(config: TrainConfig, rate: float) -> AdamParams:
    """Return the part of a run's settings that its optimiser is told, with a step's rate."""
    return AdamParams(
        learning_rate=rate,
        beta1=config.adam_beta1,
        beta2=config.adam_beta2,
        eps=config.adam_eps,
        weight_decay=config.weight_decay,
        grad_clip_norm=config.grad_clip_norm,
    )


def loss_config(config: TrainConfig) -> LossConfig:
    """Return the part of a run's settings that its loss is told."""
    return LossConfig(
        clip_low=config.clip_low,
        clip_high=config.clip_high,
        dual_clip=config.dual_clip,
        guard=config.guard,
        guard_beta=config.guard_beta,
        guard_cap=config.guard_cap,
        kl_weight=config.kl_weight,
    )


def _kl_base(all_figures: Sequence[TurnFigures]) -> float | None:
    """Return the mean KL to the base over all tokens; None if the base was not asked."""
    known = [(f.kl_base, f.tokens) for f in all_figures if f.kl_base is not None]
    tokens = sum(tokens for _, tokens in known)
    return sum(kl * tokens for kl, tokens in known) / tokens if tokens else None
