"""One adapter in training, computed in the caller's thread: passes, steps, saved states."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from torch import Tensor

from trainer.engine.adapter import read_adapter_tensors, read_finite_adapter
from trainer.engine.checks import check_datums
from trainer.engine.custom_loss import CustomLoss, linearise, scoring_data
from trainer.engine.folders import Saved, new_folder
from trainer.engine.gradients import BatchRunner
from trainer.engine.inputs import loss_inputs
from trainer.engine.losses import LossConfig, LossFunction, loss_function
from trainer.engine.memory import peak_memory_bytes
from trainer.engine.metrics import figure_sums, pass_metrics
from trainer.engine.optimizer import Optimizer
from trainer.engine.parallel import ParallelRunner, sum_gradients
from trainer.engine.policy import Policy
from trainer.engine.ranks import ALONE, Ranks
from trainer.engine.state import read_state, write_state
from trainer.engine.types import (
    AdamParams,
    Datum,
    ForwardBackwardOutput,
    OptimStepResponse,
    TensorData,
)
from trainer.errors import ConfigError

LossSettings = LossConfig | Mapping[str, float] | None


class Training:
    """Trains the adapter of a policy: passes accumulate gradients, `optim_step` uses them.

    Attributes:
        policy: The base model with the adapter.
        ranks: The processes that train together.
    """

    def __init__(self, policy: Policy, *, token_budget: int, ranks: Ranks = ALONE) -> None:
        """Train the policy's adapter, on all ranks from the leader's initial weights."""
        self.policy = policy
        self.ranks = ranks
        self._runner = ParallelRunner(policy, BatchRunner(policy, token_budget), ranks)
        self._optimizer = Optimizer(policy.trainable())
        if ranks.count > 1:
            self._copy_leaders_weights()

    @property
    def computed_tokens(self) -> int:
        """Tokens sent through the model so far, shared prefixes counted once a pass."""
        return self._runner.computed_tokens

    def peak_memory_bytes(self) -> int:
        """Return the most memory used so far by one process, or on one CUDA device."""
        return max(peak_memory_bytes(self.policy.device), self._runner.peak_memory_bytes)

    def run(
        self, data: Sequence[Datum], loss_fn: str, settings: LossSettings, *, backward: bool
    ) -> ForwardBackwardOutput:
        """Run a batch; if `backward`, add its gradient to what is accumulated.

        A batch that fails adds nothing. Without `backward`, a datum of which nothing is trained
        is asked for the log-probability of all its targets.

        Raises:
            BadDataError, ConfigError, NotFiniteError, OutOfMemoryError.
        """
        name, config = loss_function(loss_fn), LossConfig.parse(settings)
        self._check(data, name)
        asked = data if backward else [_asked(datum, name) for datum in data]
        result = self._runner.run(asked, name, config, backward=backward)
        outputs = [{"logprobs": TensorData.from_torch(logprobs)} for logprobs in result.logprobs]
        sums = [
            figure_sums(name, datum, output["logprobs"], config)
            for datum, output in zip(data, outputs, strict=True)
        ]
        self._optimizer.add_gradients(result.gradients)
        return ForwardBackwardOutput(
            loss_fn_output_type="logprobs",
            loss_fn_outputs=outputs,
            metrics=pass_metrics(name, sums),
        )

    def run_custom(
        self, data: Sequence[Datum], loss_fn: CustomLoss, loss_type_input: str
    ) -> ForwardBackwardOutput:
        """Run a batch under a loss of the user's own and add its gradient.

        Raises:
            BadDataError, ConfigError, NotFiniteError, OutOfMemoryError, and what `loss_fn` raises.
        """
        if loss_type_input != "logprobs":
            raise ConfigError(
                f"a loss cannot be computed from {loss_type_input!r}",
                where="loss_type_input",
                remedy="Use logprobs.",
            )
        self._check(data, "cross_entropy")
        scored = self.run(scoring_data(data), "cross_entropy", None, backward=False)
        linear = linearise(data, scored, loss_fn)
        self.run(linear.data, "cross_entropy", None, backward=True)
        tokens = scored.metrics["num_tokens:sum"]
        return ForwardBackwardOutput(
            loss_fn_output_type=scored.loss_fn_output_type,
            loss_fn_outputs=scored.loss_fn_outputs,
            metrics={"loss:sum": linear.loss, "num_tokens:sum": tokens} | linear.metrics,
        )

    def optim_step(self, adam_params: AdamParams) -> OptimStepResponse:
        """Take an optimiser step along the accumulated gradient, then forget the gradient.

        Raises:
            NotFiniteError: if gradient or weights are NaN or Inf.
        """
        sum_gradients(self.policy.trainable().values(), self.ranks)
        return OptimStepResponse(metrics={"grad_norm:last": self._optimizer.step(adam_params)})

    def save(self, folder: Path) -> None:
        """Write adapter, optimiser and random state.

        Raises:
            NotFiniteError: if the adapter computes NaN or Inf; nothing is written.
        """
        self.policy.check_finite()
        with new_folder(folder, Saved.STATE) as unfinished:
            write_state(unfinished, self.policy, self._optimizer, self._facts())

    def load(self, folder: Path, *, optimizer: bool) -> None:
        """Load the adapter of a saved state, and the rest of it or a fresh optimiser.

        The accumulated gradient, which belongs to other weights, is forgotten. What cannot be
        loaded whole changes nothing.

        Raises:
            CheckpointError: if it is incomplete or of another model or adapter.
        """
        read_state(folder, self.policy, self._optimizer if optimizer else None, self._facts())
        if not optimizer:
            self._optimizer = Optimizer(self.policy.trainable())

    def save_adapter(self, folder: Path) -> None:
        """Write the adapter as a PEFT folder that has been loaded again and compared.

        Raises:
            NotFiniteError: if a weight is NaN or Inf; nothing is written.
            CheckpointError: if the folder does not give the trained policy back.
        """
        self.policy.check_finite()
        with new_folder(folder, Saved.ADAPTER) as unfinished:
            self.policy.write(unfinished)
            self.policy.check_saved(unfinished)

    def read_adapter(self, folder: Path) -> dict[str, Tensor]:
        """Return the weights in a PEFT folder that was written for an adapter of this shape.

        Raises:
            CheckpointError: if it has none, or of another shape.
        """
        tensors = read_adapter_tensors(folder)
        with self.policy.with_tensors(tensors):
            return tensors

    def load_adapter(self, folder: Path) -> None:
        """Take the weights of a PEFT folder of this adapter's shape; the optimiser starts afresh.

        Raises:
            CheckpointError: if it has another shape (named), is damaged, or holds NaN or Inf.
        """
        tensors = read_finite_adapter(folder)
        self.policy.set_tensors(tensors, origin=str(folder))
        self._optimizer = Optimizer(self.policy.trainable())

    def _check(self, data: Sequence[Datum], loss: LossFunction) -> None:
        check_datums(data, loss, self.policy.vocabulary, self.policy.context_tokens)

    def _copy_leaders_weights(self) -> None:
        """Make every rank begin with the same adapter, also where no seed was given."""
        tensors = self.policy.tensors()
        for tensor in tensors.values():
            if not self.ranks.is_leader:
                tensor.zero_()
            self.ranks.sum(tensor)
        self.policy.set_tensors(tensors, origin="leader")

    def _facts(self) -> dict[str, Any]:
        """Return what a saved state must have in common with this client."""
        return self.policy.shape.to_json()


def _asked(datum: Datum, loss: LossFunction) -> Datum:
    """Return a datum as it is, or with all its targets asked for where none is trained."""
    if bool(loss_inputs(datum, loss).is_trained_T.any()):
        return datum
    weights = TensorData.from_list([1.0] * datum.model_input.length, "float32")
    return Datum(datum.model_input, datum.loss_fn_inputs | {"weights": weights})
