"""A batch of datums through the policy: logprobs, and the gradient of their weighted loss."""

import logging
from collections.abc import Sequence
from dataclasses import dataclass, field

import torch
from torch import Tensor

from trainer.engine.inputs import LossInputs, loss_inputs
from trainer.engine.losses import LossConfig, LossFunction, token_losses
from trainer.engine.memory import memory_errors
from trainer.engine.policy import Policy, Question
from trainer.engine.prefix_tree import common_prefix, count_distinct
from trainer.engine.types import Datum
from trainer.errors import NotFiniteError, OutOfMemoryError

logger = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class PassResult:
    """What came out of a batch.

    Attributes:
        logprobs: For each datum the logprobs of its trained tokens, fp32 on the CPU, shape (T,),
            0 elsewhere.
        gradients: Gradient of the sum of token loss × weight by parameter name; empty if none
            was asked for.
        sums: Where each parameter's gradient is added up. They are there before the first pass:
            what outlives a pass and lies amid what it frees leaves gaps, and the next would need
            more memory.
    """

    logprobs: list[Tensor]
    gradients: dict[str, Tensor]
    sums: dict[str, Tensor] = field(default_factory=dict)


class BatchRunner:
    """Runs batches in passes of at most `token_budget` distinct tokens.

    A longer conversation gets a pass of its own, since cutting it would compute its beginning
    twice. When a pass does not fit into memory, it is split after all, and the budget is lowered
    and kept for good.
    """

    def __init__(self, policy: Policy, token_budget: int) -> None:
        """Run batches through this policy."""
        self._policy = policy
        self.token_budget = token_budget
        self._cuts_conversations = False

    def run(
        self, data: Sequence[Datum], loss: LossFunction, config: LossConfig, *, backward: bool
    ) -> PassResult:
        """Return logprobs and, if `backward`, gradients. No weight or stored gradient changes.

        Raises:
            BadDataError: if a datum lacks what the loss needs, or holds unknown token ids.
            NotFiniteError: if a loss or gradient is NaN or Inf; names the datum where it can.
            OutOfMemoryError: if a single datum does not fit into memory.
        """
        inputs = [loss_inputs(datum, loss) for datum in data]
        parameters = self._policy.trainable() if backward else {}
        sums = {name: torch.zeros_like(parameter) for name, parameter in parameters.items()}
        result = PassResult([torch.zeros(0)] * len(data), {}, sums)
        for pack in self._packs(data, inputs, range(len(data))):
            self._run_pack(data, inputs, pack, loss, config, backward, result)
        return result

    def _packs(
        self, data: Sequence[Datum], inputs: Sequence[LossInputs], indices: range
    ) -> list[range]:
        sequences = [data[index].model_input.tokens for index in indices]
        prompts = [prompt_tokens(inputs[index]) for index in indices]
        goes_on = () if self._cuts_conversations else continuations(sequences, prompts)
        packs = self._policy.packs(sequences, self.token_budget, goes_on)
        return [indices[pack.start : pack.stop] for pack in packs]

    def _run_pack(
        self,
        data: Sequence[Datum],
        inputs: Sequence[LossInputs],
        pack: range,
        loss: LossFunction,
        config: LossConfig,
        backward: bool,
        result: PassResult,
    ) -> None:
        """Run one pass and add what comes out to `result`; split it if memory runs out."""
        tokens = count_distinct([data[index].model_input.tokens for index in pack])
        try:
            with memory_errors(tokens), torch.set_grad_enabled(backward):
                self._pass(data, inputs, pack, loss, config, result)
            return
        except OutOfMemoryError:
            if self._policy.device.type == "cuda":
                torch.cuda.empty_cache()
            self.token_budget = min(self.token_budget, max(1, tokens // 2))
            self._cuts_conversations = True
            smaller = self._packs(data, inputs, pack)
            if len(smaller) == 1:
                raise
            logger.warning(
                "A pass over %d tokens did not fit into memory; going on with at most %d.",
                tokens,
                self.token_budget,
            )
        for part in smaller:
            self._run_pack(data, inputs, part, loss, config, backward, result)

    def _pass(
        self,
        data: Sequence[Datum],
        inputs: Sequence[LossInputs],
        pack: range,
        loss: LossFunction,
        config: LossConfig,
        result: PassResult,
    ) -> None:
        questions = [
            Question(data[i].model_input.tokens, inputs[i].targets_T, inputs[i].is_trained_T)
            for i in pack
        ]
        logprobs = self._policy.logprobs(questions)
        gradients: dict[str, Tensor] = {}
        if torch.is_grad_enabled():
            gradients = self._gradients(inputs, pack, loss, config, logprobs)
        for index, logprobs_T in zip(pack, logprobs, strict=True):
            result.logprobs[index] = logprobs_T.detach().cpu().clone()  # for the same reason
        for name, gradient in gradients.items():
            result.gradients[name] = result.sums[name].add_(gradient)

    def _gradients(
        self,
        inputs: Sequence[LossInputs],
        pack: range,
        loss: LossFunction,
        config: LossConfig,
        logprobs: Sequence[Tensor],
    ) -> dict[str, Tensor]:
        """Return the gradient of the pack's summed loss, which touches no `.grad`."""
        total = torch.zeros((), device=self._policy.device)
        for index, logprobs_T in zip(pack, logprobs, strict=True):
            datum_loss = weighted_loss(inputs[index], logprobs_T, loss, config)
            if not datum_loss.isfinite():
                raise NotFiniteError(
                    "the loss is not a finite number",
                    where=f"datum {index}",
                    remedy="Look at this turn's score and stored log-probabilities; else lower "
                    "the learning rate.",
                    datum=index,
                )
            total = total + datum_loss
        if not total.requires_grad:  # nothing in this pack is trained
            return {}
        parameters = self._policy.trainable()
        gradients = torch.autograd.grad(total, list(parameters.values()), allow_unused=True)
        return {
            name: gradient
            for name, gradient in zip(parameters, gradients, strict=True)
            if gradient is not None
        }


def prompt_tokens(inputs: LossInputs) -> int:
    """Return how many tokens come before the first that is trained; all where none is."""
    trained = inputs.is_trained_T.nonzero()
    return int(trained[0]) + 1 if len(trained) else len(inputs.is_trained_T)


def continuations(sequences: Sequence[Sequence[int]], prompts: Sequence[int]) -> list[bool]:
    """Return which sequences are a later turn of the conversation that the one before belongs to.

    A later turn begins with everything that was said before the earlier reply, and has a longer
    prompt. (Other replies to the same prompt have one of the same length.)

    Args:
        sequences: Model inputs, in order.
        prompts: How many tokens of each come before its reply.
    """
    return [
        index > 0
        and prompts[index] > prompts[index - 1]
        and common_prefix(sequences[index - 1], sequence) >= prompts[index - 1]
        for index, sequence in enumerate(sequences)
    ]


def weighted_loss(
    inputs: LossInputs, logprobs_T: Tensor, loss: LossFunction, config: LossConfig
) -> Tensor:
    """Return a datum's sum of token loss × weight, on the device of `logprobs_T`."""
    device = logprobs_T.device
    reference_T = inputs.reference_logprobs_T
    losses_T = token_losses(
        loss,
        logprobs_T=logprobs_T,
        old_logprobs_T=inputs.old_logprobs_T.to(device),
        advantages_T=inputs.advantages_T.to(device),
        is_trained_T=inputs.is_trained_T.to(device),
        is_off_policy_T=inputs.is_off_policy_T.to(device),
        config=config,
        reference_logprobs_T=None if reference_T is None else reference_T.to(device),
    )
    return (losses_T * inputs.weights_T.to(device)).sum()
