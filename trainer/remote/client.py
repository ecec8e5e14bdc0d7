"""The engine of a run that an endpoint computes, as `trainer.engines.Engine` asks for it."""

import json
import math
import secrets
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager
from pathlib import Path
from typing import Any
from urllib.parse import quote

import torch
from transformers import PreTrainedTokenizerBase

from trainer.choices import Guard
from trainer.engine.custom_loss import linearise, scoring_data
from trainer.engine.inputs import loss_inputs
from trainer.engine.losses import LossConfig, loss_function, token_losses
from trainer.engine.memory import peak_memory_bytes
from trainer.engine.ranks import ALONE, Ranks
from trainer.engine.types import AdamParams, Datum, ForwardBackwardOutput, OptimStepResponse
from trainer.errors import CheckpointError, EndpointError, EndpointLostError, NotFiniteError
from trainer.remote import wire
from trainer.remote.access import Access
from trainer.remote.download import fetch_adapter
from trainer.remote.sampler import Answered, RemoteSampler
from trainer.remote.session import Session

STATE_FILE = "endpoint.json"
"""What a checkpoint of a run on an endpoint holds: where the endpoint keeps the state."""

SCHEME = "tinker://"
"""What paths of checkpoints at an endpoint begin with; the id of the weights follows."""

KEPT_S = 30 * 24 * 3600
"""How long an endpoint is asked to keep a checkpoint, in seconds."""

GRAD_NORMS = ("grad_norm:last", "grad_norm", "grad_norm:mean", "skyrl.ai/grad_norm")
"""Under which names endpoints tell the gradient's norm."""


class RemoteClient:
    """Trains one adapter at an endpoint.

    The weights come into being there with the first call. A state can only be loaded into new
    weights, as the API has it, so that loading makes new ones.
    """

    def __init__(
        self,
        session: Session,
        access: Access,
        tokenizer: PreTrainedTokenizerBase,
        *,
        base_model: str,
        known_as: str,
        rank: int,
        seed: int,
    ) -> None:
        """Train `base_model`, as the endpoint calls it; other tools find it by `known_as`."""
        self._session = session
        self._known_as = known_as
        self._access = access
        self._tokenizer = tokenizer
        self._create = lambda: session.service.create_lora_training_client(
            base_model, rank=rank, seed=seed, train_unembed=False
        )
        self._weights: Any = None
        self._sent_tokens = 0

    @property
    def ranks(self) -> Ranks:
        """One process: the endpoint has its own."""
        return ALONE

    @property
    def computed_tokens(self) -> int:
        """Tokens sent so far, each turn with its whole context."""
        return self._sent_tokens

    def peak_memory_bytes(self) -> int:
        """Return the most memory used so far by this process."""
        return peak_memory_bytes(torch.device("cpu"))

    def get_tokenizer(self) -> PreTrainedTokenizerBase:
        """Return the base model's tokenizer, from this machine."""
        return self._tokenizer

    def forward(
        self, data: Sequence[Datum], loss_fn: str, loss_fn_config: Any = None
    ) -> Answered[ForwardBackwardOutput]:
        """Return the log-probabilities of a batch."""
        return Answered(lambda: self._score(data))

    def forward_backward(
        self, data: Sequence[Datum], loss_fn: str, loss_fn_config: Any = None
    ) -> Answered[ForwardBackwardOutput]:
        """Return them, and add the gradient of a batch to what is accumulated.

        A loss that endpoints do not know is put around the present weights first: one more pass
        asks for the log-probabilities, and the gradient is that of another loss there.
        """
        config = LossConfig.parse(loss_fn_config)
        if _is_known(loss_fn, config, data):
            return Answered(lambda: self._known_loss(data, loss_fn, config))
        return Answered(lambda: self._own_loss(data, loss_fn, config))

    def optim_step(self, adam_params: AdamParams) -> Answered[OptimStepResponse]:
        """Take an optimiser step along the accumulated gradient."""

        def call() -> OptimStepResponse:
            future = self._model().optim_step(wire.adam(adam_params))
            told = self._session.wait("an optimiser step", future).metrics or {}
            norms = [told[name] for name in GRAD_NORMS if name in told]
            if norms and not math.isfinite(norms[0]):
                raise NotFiniteError(
                    "the gradient is NaN or Inf",
                    where=self._session.where,
                    remedy="Lower the learning rate.",
                )
            return OptimStepResponse(metrics={"grad_norm:last": norms[0]} if norms else {})

        return Answered(call)

    def save_state(self, name: str) -> Answered[None]:
        """Let the endpoint keep a state, and note in the folder `name` where."""

        def call() -> None:
            future = self._model().save_state(_fresh_name(), ttl_seconds=KEPT_S)
            path = self._session.wait("saving a checkpoint", future).path
            folder = Path(name)
            folder.mkdir(parents=True)
            note = {"endpoint": self._access.endpoint.name, "path": path}
            (folder / STATE_FILE).write_text(json.dumps(note) + "\n", encoding="utf-8")

        return Answered(call)

    def load_state(self, path: str) -> Answered[None]:
        """Load the adapter of a saved state; the optimiser starts afresh."""
        return Answered(lambda: self._load(path, optimizer=False))

    def load_state_with_optimizer(self, path: str) -> Answered[None]:
        """Load a saved state whole."""
        return Answered(lambda: self._load(path, optimizer=True))

    def save_weights_for_sampler(self, name: str) -> Answered[None]:
        """Download the adapter into the folder `name`."""

        def call() -> None:
            future = self._model().save_weights_for_sampler(_fresh_name())
            path = self._session.wait("saving the adapter", future).path
            weights, _, checkpoint = path.removeprefix(SCHEME).partition("/")
            # Not by the SDK (0.22), whose transport follows the redirect that its method waits for.
            runs = f"{self._access.endpoint.base_url.rstrip('/')}/api/v1/training_runs"
            url = f"{runs}/{quote(weights, safe=':')}/checkpoints/{quote(checkpoint)}/archive"
            fetch_adapter(self._access, url, Path(name), base_name=self._known_as)

        return Answered(call)

    def save_weights_and_get_sampling_client(self) -> RemoteSampler:
        """Return a sampler of the weights as they are now."""
        model = self._model()
        try:
            sampler = model.save_weights_and_get_sampling_client()
        except Exception as error:  # noqa: BLE001 - put into words, without the key
            raise self._session.explained("preparing to sample", error) from None
        return RemoteSampler(self._session, sampler)

    def without_adapter(self) -> AbstractContextManager[None]:
        """Refuse: only a run that starts from an adapter asks, and none here does."""
        raise EndpointError(
            "it cannot be asked for the base model alone",
            where=self._session.where,
            remedy="Start from the base model.",
        )

    def _model(self) -> Any:
        """Return the SDK's training client; the endpoint makes the weights on first use."""
        if self._weights is None:
            try:
                self._weights = self._create()
            except Exception as error:  # noqa: BLE001 - put into words, without the key
                raise self._session.explained("making the adapter", error) from None
        return self._weights

    def _load(self, path: str, *, optimizer: bool) -> None:
        file = Path(path) / STATE_FILE
        try:
            kept = json.loads(file.read_text(encoding="utf-8"))["path"]
        except (OSError, ValueError, KeyError, TypeError) as error:
            raise CheckpointError(f"{STATE_FILE} cannot be read ({error})", where=path) from error
        self._weights = None
        model = self._model()
        load = model.load_state_with_optimizer if optimizer else model.load_state
        try:
            self._session.wait("loading a checkpoint", load(kept))
        except EndpointLostError as error:
            if "no longer knows" not in error.what:
                raise
            raise CheckpointError("the endpoint no longer has it", where=path) from None

    def _score(self, data: Sequence[Datum]) -> ForwardBackwardOutput:
        sent = [wire.scored_datum(datum) for datum in data]
        return self._pass("scoring", data, self._model().forward, sent, "cross_entropy", None)

    def _known_loss(
        self, data: Sequence[Datum], loss_fn: str, config: LossConfig
    ) -> ForwardBackwardOutput:
        if loss_fn == "cross_entropy":
            sent = [wire.scored_datum(datum) for datum in data]
        else:
            sent = [wire.advantage_datum(datum) for datum in data]
        bounds = None
        if loss_fn == "ppo":
            bounds = {
                "clip_low_threshold": config.clip_low,
                "clip_high_threshold": config.clip_high,
            }
        return self._pass("a pass", data, self._model().forward_backward, sent, loss_fn, bounds)

    def _own_loss(
        self, data: Sequence[Datum], loss_fn: str, config: LossConfig
    ) -> ForwardBackwardOutput:
        name = loss_function(loss_fn)

        def loss(
            datums: list[Datum], logprobs: list[torch.Tensor]
        ) -> tuple[torch.Tensor, dict[str, float]]:
            total = torch.zeros(())
            for datum, logprobs_T in zip(datums, logprobs, strict=True):
                inputs = loss_inputs(datum, name)
                losses_T = token_losses(
                    name,
                    logprobs_T=logprobs_T,
                    old_logprobs_T=inputs.old_logprobs_T,
                    advantages_T=inputs.advantages_T,
                    is_trained_T=inputs.is_trained_T,
                    is_off_policy_T=inputs.is_off_policy_T,
                    config=config,
                    reference_logprobs_T=inputs.reference_logprobs_T,
                )
                total = total + (losses_T * inputs.weights_T).sum()
            return total, {}

        scored = self._score(scoring_data(data))
        linear = linearise(data, scored, loss)
        sent = [
            wire.linear_datum(datum, outputs["logprobs"].data)
            for datum, outputs in zip(linear.data, scored.loss_fn_outputs, strict=True)
        ]
        model = self._model()
        self._pass("a pass", data, model.forward_backward, sent, "importance_sampling", None)
        return scored

    def _pass(
        self,
        doing: str,
        data: Sequence[Datum],
        call: Callable[..., Any],
        sent: Sequence[Any],
        loss_fn: str,
        loss_fn_config: dict[str, float] | None,
    ) -> ForwardBackwardOutput:
        """Send a batch and check what comes back."""
        self._sent_tokens += sum(datum.model_input.length for datum in data)
        answer = wire.output(self._session.wait(doing, call(list(sent), loss_fn, loss_fn_config)))
        lengths = [len(one["logprobs"]) for one in answer.loss_fn_outputs]
        if lengths != [datum.model_input.length for datum in data]:
            raise EndpointError(
                "it did not answer with one log-probability for each token",
                where=f"{self._session.where}, {doing}",
                remedy="Use a service that speaks the Tinker API.",
            )
        for index, one in enumerate(answer.loss_fn_outputs):
            if not all(math.isfinite(value) for value in one["logprobs"].data):
                raise NotFiniteError(
                    "a log-probability is NaN or Inf",
                    where=self._session.where,
                    remedy="Lower the learning rate.",
                    datum=index,
                )
        return answer


def _is_known(loss_fn: str, config: LossConfig, data: Sequence[Datum]) -> bool:
    """Return whether endpoints compute this loss themselves."""
    if config.kl_weight or (loss_fn == "ppo" and config.dual_clip):
        return False
    is_guarded = any("off_policy" in datum.loss_fn_inputs for datum in data)
    return config.guard is Guard.NONE or loss_fn == "cross_entropy" or not is_guarded


def _fresh_name() -> str:
    """Return a name that no checkpoint has yet; endpoints take letters, digits, - and _."""
    return f"everyturn-{secrets.token_hex(8)}"
