"""What one turn's loss looked like, from the logprobs that a pass returned.

The figures need only the datum and the returned logprobs, so that an engine on another machine
is measured in the same way. Sums and counts are kept and divided once: means of means lie.
"""

from collections.abc import Iterable
from dataclasses import dataclass

import torch

from trainer.engine.inputs import loss_inputs
from trainer.engine.losses import (
    LossConfig,
    LossFunction,
    is_clip_binding,
    is_outside_band,
    log_ratios,
    token_losses,
)
from trainer.engine.types import Datum, TensorData


@dataclass(frozen=True, slots=True, kw_only=True)
class TurnFigures:
    """The figures of one datum; means are weighted by the datum's weights.

    Attributes:
        tokens: How many tokens are trained (weight not 0).
        loss_mean: Sum of token loss × weight over the sum of weights.
        loss_sum: Sum of token loss × weight, whose gradient the pass computes.
        ratio_mean: Mean probability ratio ρ, new to old.
        clipfrac: Share of tokens with ρ outside the clip band, whatever the advantage.
        clipfrac_binding: Share of tokens whose gradient the clip removes.
        kl_mean: Mean of (ρ - 1) - log ρ, an estimate of KL(old || new) in nats that is never
            negative (the k3 estimator of Schulman, "Approximating KL divergence", 2020).
        logprob_mean: Mean log-probability of the trained tokens, in nats.
    """

    tokens: int
    loss_mean: float
    loss_sum: float
    ratio_mean: float
    clipfrac: float
    clipfrac_binding: float
    kl_mean: float
    logprob_mean: float


@dataclass(frozen=True, slots=True, kw_only=True)
class FigureSums:
    """Weighted sums over tokens, which add up over datums."""

    tokens: int = 0
    weight: float = 0.0
    loss: float = 0.0
    ratio: float = 0.0
    outside: float = 0.0
    binding: float = 0.0
    kl: float = 0.0
    logprob: float = 0.0

    def __add__(self, other: "FigureSums") -> "FigureSums":
        """Return the sums over both."""
        return FigureSums(
            tokens=self.tokens + other.tokens,
            weight=self.weight + other.weight,
            loss=self.loss + other.loss,
            ratio=self.ratio + other.ratio,
            outside=self.outside + other.outside,
            binding=self.binding + other.binding,
            kl=self.kl + other.kl,
            logprob=self.logprob + other.logprob,
        )

    def figures(self) -> TurnFigures:
        """Divide once; all means are 0 where nothing is trained."""
        weight = self.weight or 1.0
        return TurnFigures(
            tokens=self.tokens,
            loss_mean=self.loss / weight,
            loss_sum=self.loss,
            ratio_mean=self.ratio / weight,
            clipfrac=self.outside / weight,
            clipfrac_binding=self.binding / weight,
            kl_mean=self.kl / weight,
            logprob_mean=self.logprob / weight,
        )


def turn_figures(
    datum: Datum, logprobs: TensorData, *, loss: LossFunction, config: LossConfig
) -> TurnFigures:
    """Return the figures of one datum.

    Args:
        datum: The datum that went into the pass.
        logprobs: The "logprobs" that came out of it, of the model input's length.
        loss: The loss function of the pass.
        config: Its settings.
    """
    return figure_sums(datum, logprobs, loss=loss, config=config).figures()


def figure_sums(
    datum: Datum, logprobs: TensorData, *, loss: LossFunction, config: LossConfig
) -> FigureSums:
    """Return the sums behind `turn_figures`."""
    inputs = loss_inputs(datum, loss)
    logprobs_T = logprobs.to_torch().double()
    old_logprobs_T = inputs.old_logprobs_T.double()
    advantages_T = inputs.advantages_T.double()
    weights_T = inputs.weights_T.double()
    losses_T = token_losses(
        loss,
        logprobs_T=logprobs_T,
        old_logprobs_T=old_logprobs_T,
        advantages_T=advantages_T,
        is_trained_T=inputs.is_trained_T,
        is_off_policy_T=inputs.is_off_policy_T,
        config=config,
    )
    log_ratios_T = log_ratios(logprobs_T, old_logprobs_T, inputs.is_trained_T)
    ratios_T = log_ratios_T.exp()
    bounds = (config.clip_low, config.clip_high)

    def total(values_T: torch.Tensor) -> float:
        kept_T = torch.where(inputs.is_trained_T, values_T * weights_T, torch.zeros_like(weights_T))
        return float(kept_T.sum())

    return FigureSums(
        tokens=int(inputs.is_trained_T.sum()),
        weight=float(weights_T.sum()),
        loss=total(losses_T),
        ratio=total(ratios_T),
        outside=total(is_outside_band(ratios_T, *bounds).double()),
        binding=total(is_clip_binding(ratios_T, advantages_T, *bounds).double()),
        kl=total(ratios_T - 1 - log_ratios_T),
        logprob=total(logprobs_T),
    )


def pass_metrics(sums: Iterable[FigureSums]) -> dict[str, float]:
    """Return the metrics of a whole pass under MinT's names ("name:reduction").

    "loss:mean" is the weighted mean over all trained tokens of the pass, "loss:sum" what the
    gradient is the gradient of.
    """
    total = sum(sums, FigureSums())
    figures = total.figures()
    return {
        "loss:mean": figures.loss_mean,
        "loss:sum": figures.loss_sum,
        "ratio:mean": figures.ratio_mean,
        "clipfrac:mean": figures.clipfrac,
        "num_tokens:sum": float(figures.tokens),
    }
