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
    is_clip_binding,
    is_outside_band,
    log_ratios,
    loss_function,
    token_losses,
)
from trainer.engine.types import Datum, TensorData


@dataclass(frozen=True, slots=True, kw_only=True)
class TurnFigures:
    """The figures of one datum, over its trained tokens (weight not 0), each counted alike.

    Weights beyond 0 and 1 only scale the gradient; they don't change these figures.

    Attributes:
        tokens: How many tokens are trained.
        loss_mean: Mean token loss.
        loss_sum: Sum of token losses.
        ratio_mean: Mean probability ratio ρ, new to old.
        clipfrac: Share of tokens with ρ outside the clip band, whatever the advantage.
        clipfrac_binding: Share of tokens whose gradient the clip removes.
        kl_mean: Mean of (ρ - 1) - log ρ, an estimate of KL(old || new) in nats that is never
            negative (the k3 estimator of Schulman, "Approximating KL divergence", 2020).
        logprob_mean: Mean log-probability of the trained tokens, in nats.
        kl_base: The same estimate as `kl_mean`, of KL(base || new); None if the datum does not
            say what the base model makes of it.
    """

    tokens: int
    loss_mean: float
    loss_sum: float
    ratio_mean: float
    clipfrac: float
    clipfrac_binding: float
    kl_mean: float
    logprob_mean: float
    kl_base: float | None


@dataclass(frozen=True, slots=True, kw_only=True)
class FigureSums:
    """Sums over trained tokens, which add up over datums.

    Attributes:
        base_tokens: How many of the tokens have a log-probability under the base model.
        weight: Sum of the datums' weights.
        weighted_loss: Sum of token loss × weight.
    """

    tokens: int = 0
    loss: float = 0.0
    ratio: float = 0.0
    outside: float = 0.0
    binding: float = 0.0
    kl: float = 0.0
    logprob: float = 0.0
    kl_base: float = 0.0
    base_tokens: int = 0
    weight: float = 0.0
    weighted_loss: float = 0.0

    def __add__(self, other: "FigureSums") -> "FigureSums":
        """Return the sums over both."""
        return FigureSums(
            tokens=self.tokens + other.tokens,
            loss=self.loss + other.loss,
            ratio=self.ratio + other.ratio,
            outside=self.outside + other.outside,
            binding=self.binding + other.binding,
            kl=self.kl + other.kl,
            logprob=self.logprob + other.logprob,
            kl_base=self.kl_base + other.kl_base,
            base_tokens=self.base_tokens + other.base_tokens,
            weight=self.weight + other.weight,
            weighted_loss=self.weighted_loss + other.weighted_loss,
        )

    def figures(self) -> TurnFigures:
        """Divide once; all means are 0 where nothing is trained."""
        tokens = self.tokens or 1
        return TurnFigures(
            tokens=self.tokens,
            loss_mean=self.loss / tokens,
            loss_sum=self.loss,
            ratio_mean=self.ratio / tokens,
            clipfrac=self.outside / tokens,
            clipfrac_binding=self.binding / tokens,
            kl_mean=self.kl / tokens,
            logprob_mean=self.logprob / tokens,
            kl_base=self.kl_base / self.base_tokens if self.base_tokens else None,
        )


def turn_figures(loss: str, datum: Datum, logprobs: TensorData, config: LossConfig) -> TurnFigures:
    """Return the figures of one datum.

    Args:
        loss: The loss function of the pass.
        datum: The datum that went into the pass.
        logprobs: The "logprobs" that came out of it, of the model input's length.
        config: The settings of the loss.
    """
    return figure_sums(loss, datum, logprobs, config).figures()


def figure_sums(loss: str, datum: Datum, logprobs: TensorData, config: LossConfig) -> FigureSums:
    """Return the sums behind `turn_figures`."""
    name = loss_function(loss)
    inputs = loss_inputs(datum, name)
    logprobs_T = logprobs.to_torch().double()
    old_logprobs_T = inputs.old_logprobs_T.double()
    advantages_T = inputs.advantages_T.double()
    reference_T = inputs.reference_logprobs_T
    base_logprobs_T = None if reference_T is None else reference_T.double()
    is_trained_T, is_off_policy_T = inputs.is_trained_T, inputs.is_off_policy_T
    losses_T = token_losses(
        name,
        logprobs_T=logprobs_T,
        old_logprobs_T=old_logprobs_T,
        advantages_T=advantages_T,
        is_trained_T=is_trained_T,
        is_off_policy_T=is_off_policy_T,
        config=config,
        reference_logprobs_T=base_logprobs_T,
    )
    log_ratios_T = log_ratios(logprobs_T, old_logprobs_T, is_trained_T)
    ratios_T = log_ratios_T.exp()
    is_binding_T = is_clip_binding(name, ratios_T, advantages_T, is_off_policy_T, config)
    kl_base_T = torch.zeros_like(ratios_T)
    if base_logprobs_T is not None:
        kl_base_T = kl_estimates(log_ratios(logprobs_T, base_logprobs_T, is_trained_T))

    def total(values_T: torch.Tensor) -> float:
        return float(values_T[is_trained_T].sum())

    return FigureSums(
        tokens=int(is_trained_T.sum()),
        loss=total(losses_T),
        ratio=total(ratios_T),
        outside=total(is_outside_band(ratios_T, config.clip_low, config.clip_high)),
        binding=total(is_binding_T),
        kl=total(kl_estimates(log_ratios_T)),
        logprob=total(logprobs_T),
        kl_base=total(kl_base_T),
        base_tokens=0 if base_logprobs_T is None else int(is_trained_T.sum()),
        weight=float(inputs.weights_T.sum()),
        weighted_loss=total(losses_T * inputs.weights_T),
    )


def kl_estimates(log_ratios_T: torch.Tensor) -> torch.Tensor:
    """Return (ρ - 1) - log ρ for each token (k3; see `TurnFigures.kl_mean`)."""
    return log_ratios_T.exp() - 1 - log_ratios_T


def pass_metrics(loss: str, sums: Iterable[FigureSums]) -> dict[str, float]:
    """Return the metrics of a whole pass under MinT's names ("name:reduction").

    "loss:sum" is the sum of token loss × weight, of which the pass computes the gradient;
    "loss:mean" divides it by the sum of weights, so that scaling all weights leaves it alone.
    """
    total = sum(sums, FigureSums())
    figures = total.figures()
    metrics = {
        "loss:mean": total.weighted_loss / (total.weight or 1.0),
        "loss:sum": total.weighted_loss,
        "num_tokens:sum": float(total.tokens),
    }
    if loss_function(loss) != "cross_entropy":  # which knows no behaviour policy
        metrics["ratio:mean"] = figures.ratio_mean
        metrics["clipfrac:mean"] = figures.clipfrac
    return metrics
