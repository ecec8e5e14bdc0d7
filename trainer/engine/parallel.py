"""A batch through all ranks: each computes its share, and each learns what all have found."""

from collections.abc import Iterable, Sequence

import torch
from torch import Tensor, nn

from trainer.engine.gradients import BatchRunner, PassResult
from trainer.engine.loss_config import LossConfig
from trainer.engine.losses import LossFunction
from trainer.engine.memory import peak_memory_bytes
from trainer.engine.policy import Policy
from trainer.engine.ranks import Ranks
from trainer.engine.shares import split_into_shares
from trainer.engine.types import Datum
from trainer.errors import NotFiniteError


class ParallelRunner:
    """Runs batches like a `BatchRunner`, split over the ranks and checked for NaN and Inf.

    Attributes:
        computed_tokens: Tokens sent through the model so far, on all ranks together.
        peak_memory_bytes: The most that any rank had used after the last batch.
    """

    def __init__(self, policy: Policy, runner: BatchRunner, ranks: Ranks) -> None:
        """Run this rank's shares with `runner`."""
        self.computed_tokens = 0
        self.peak_memory_bytes = 0
        self._policy = policy
        self._runner = runner
        self._ranks = ranks

    def run(
        self, data: Sequence[Datum], loss: LossFunction, config: LossConfig, *, backward: bool
    ) -> PassResult:
        """Return the logprobs of the whole batch and the gradients of this rank's share.

        Gradients stay apart until the optimiser step, where `sum_gradients` adds them up once.

        Raises:
            BadDataError, OutOfMemoryError: as `BatchRunner.run` does, on every rank.
            NotFiniteError: on every rank, if a logprob, loss or gradient is NaN or Inf; names the
                datum it came from.
        """
        share = split_into_shares(
            [datum.model_input.tokens for datum in data],
            self._ranks.count,
            shares_prefixes=self._policy.shares_prefixes,
        )[self._ranks.index]
        computed_before = self._policy.computed_tokens

        def compute() -> PassResult:
            return self._run_share(data, share, loss, config, backward=backward)

        result = self._ranks.together(compute)
        reports = self._ranks.gather(
            {
                "computed": self._policy.computed_tokens - computed_before,
                "peak": peak_memory_bytes(self._policy.device),
            }
        )
        self.computed_tokens += sum(report["computed"] for report in reports)
        self.peak_memory_bytes = max(report["peak"] for report in reports)
        return PassResult(self._whole(data, share, result.logprobs), result.gradients)

    def _run_share(
        self,
        data: Sequence[Datum],
        share: range,
        loss: LossFunction,
        config: LossConfig,
        *,
        backward: bool,
    ) -> PassResult:
        mine = data[share.start : share.stop]
        try:
            result = self._runner.run(mine, loss, config, backward=backward)
            for index, logprobs_T in enumerate(result.logprobs):
                if not bool(logprobs_T.isfinite().all()):
                    raise _not_finite("the model gives this turn a log-probability", index)
            if not all_finite(result.gradients.values()):
                raise self._gradient_error(mine, loss, config)
        except NotFiniteError as error:
            if error.datum is None:
                raise
            datum = share.start + error.datum
            raise NotFiniteError(
                error.what, where=f"datum {datum}", remedy=error.remedy, datum=datum
            ) from error
        return result

    def _gradient_error(
        self, mine: Sequence[Datum], loss: LossFunction, config: LossConfig
    ) -> NotFiniteError:
        """Find the datum whose own gradient is not finite."""
        for index, datum in enumerate(mine):
            alone = self._runner.run([datum], loss, config, backward=True)
            if not all_finite(alone.gradients.values()):
                return _not_finite("the gradient of this turn", index)
        return NotFiniteError(
            "the sum of the turns' gradients is not a finite number",
            where="backward pass",
            remedy="Lower the learning rate.",
        )

    def _whole(
        self, data: Sequence[Datum], share: range, logprobs: Sequence[Tensor]
    ) -> list[Tensor]:
        """Return every datum's logprobs from those that each rank has of its share."""
        if self._ranks.count == 1:
            return list(logprobs)
        whole = [torch.zeros(datum.model_input.length) for datum in data]
        whole[share.start : share.stop] = logprobs
        flat = torch.cat(whole) if whole else torch.zeros(0)
        self._ranks.sum(flat)
        return list(flat.split([len(logprobs_T) for logprobs_T in whole]))


def sum_gradients(parameters: Iterable[nn.Parameter], ranks: Ranks) -> None:
    """Replace each parameter's gradient by its sum over all ranks.

    Where no rank has one there is none, as in a run of one process.
    """
    if ranks.count == 1:
        return
    parameters = list(parameters)
    present = torch.tensor([float(p.grad is not None) for p in parameters])
    ranks.sum(present)
    flat = torch.cat(
        [(torch.zeros_like(p) if p.grad is None else p.grad).flatten() for p in parameters]
    )
    ranks.sum(flat)
    parts = flat.split([p.numel() for p in parameters])
    for parameter, part, holders in zip(parameters, parts, present.tolist(), strict=True):
        parameter.grad = part.view_as(parameter) if holders else None


def all_finite(tensors: Iterable[Tensor]) -> bool:
    """Return whether no number is NaN or Inf."""
    found = list(tensors)
    # One number to read back from the device; the largest of each, where a norm could overflow.
    return not found or bool(torch.stack([t.abs().max() for t in found]).isfinite().all())


def _not_finite(what: str, datum: int) -> NotFiniteError:
    return NotFiniteError(
        f"{what} is not a finite number",
        where=f"datum {datum}",
        remedy="Look at this turn's score and stored log-probabilities, and whether the model's "
        "weights are whole; else lower the learning rate.",
        datum=datum,
    )
