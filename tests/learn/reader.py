"""A model looked at from outside: how likely it finds a text, and what it says by itself."""

from collections.abc import Sequence
from statistics import fmean

from db.records import Conversation
from db.settings import Settings
from trainer.config import Rendering
from trainer.data.rendering import RenderedTurn, chat_messages, render_conversation, render_prompt
from trainer.engine.client import ServiceClient
from trainer.engine.types import ModelInput, SamplingParams
from trainer.models import load_tokenizer


class Reader:
    """The base model, alone or with a trained adapter."""

    def __init__(self, settings: Settings, model: str, adapter: str | None = None) -> None:
        """Load the model; `adapter` is the path of a trained adapter's folder."""
        service = ServiceClient(settings=settings, device="cpu")
        self._tokenizer = load_tokenizer(settings, model)
        self._client = (
            service.create_sampling_client(base_model=model)
            if adapter is None
            else service.create_sampling_client(model_path=adapter)
        )

    def reply_logprob(self, conversation: Conversation) -> float:
        """Return the mean logprob of the last reply's tokens and its end of turn, in nats."""
        turn = self._render(conversation)
        logprobs = self._logprobs([*turn.prompt_ids, *turn.response_ids])
        return fmean(logprobs[-len(turn.response_ids) :])

    def replies(self, conversation: Conversation, params: SamplingParams, count: int) -> list[str]:
        """Return sampled replies to a conversation that ends with a user message."""
        prompt = render_prompt(chat_messages(conversation), self._tokenizer, Rendering.TEMPLATE)
        response = self._client.sample(ModelInput.from_ints(prompt), count, params).result()
        return [
            str(self._tokenizer.decode(list(sequence.tokens), skip_special_tokens=True))
            for sequence in response.sequences
        ]

    def _render(self, conversation: Conversation) -> RenderedTurn:
        return render_conversation(conversation, self._tokenizer, Rendering.TEMPLATE)[-1]

    def _logprobs(self, ids: Sequence[int]) -> list[float]:
        """Return the logprob of each token but the first."""
        logprobs = self._client.compute_logprobs(ModelInput.from_ints(ids)).result()
        return [logprob for logprob in logprobs if logprob is not None]
