"""A loaded base model, ready to answer: device, limits, tokenizer, and the thread that computes."""

from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Self

from transformers import GenerationConfig, PreTrainedTokenizerBase

from db.settings import Settings
from trainer.catalog import find_model
from trainer.choices import Rendering
from trainer.data.rendering import render_prompt
from trainer.engine.client import choose_device
from trainer.engine.generation import end_tokens
from trainer.engine.memory import memory_limit_bytes
from trainer.errors import BadDataError
from trainer.models import load_base_model, load_tokenizer
from trainer.serving.adapters import Shelf
from trainer.serving.passes import adaptable_layers, choose_passes, multiply_few_rows_fast
from trainer.serving.rows import RowAdapters
from trainer.serving.scheduler import Scheduler

MEMORY_SHARE = 0.5
"""How much of the free memory keys and values may take; a run may want the rest."""


class ContextError(BadDataError):
    """The prompt is longer than the model's context."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ServedModel:
    """What the endpoint answers with.

    Attributes:
        base_model: Its name.
        device: Where it lies, "cpu" or "cuda".
        context_tokens: Most tokens of prompt and reply together.
        longest_token: Most characters of a token, which tells the fewest tokens of a text.
        tokenizer: The base model's.
        shelf: The adapters.
        scheduler: Runs jobs.
    """

    base_model: str
    device: str
    context_tokens: int
    longest_token: int
    tokenizer: PreTrainedTokenizerBase
    shelf: Shelf
    scheduler: Scheduler

    @classmethod
    def load(
        cls,
        settings: Settings,
        name: str,
        *,
        device: str = "auto",
        adapters: Mapping[str, Path] | None = None,
    ) -> Self:
        """Load a base model, in a thread of its own that ends.

        OpenMP keeps workers for each thread that has computed. Those of a second one would outnumber
        the cores, and sleep at once between two steps: 40 ms a token.

        Args:
            settings: Where models and runs are.
            name: A listed model, hub id or folder.
            device: "auto", "cpu" or "cuda".
            adapters: Further PEFT folders by name.

        Raises:
            ModelError: if the model cannot be had.
            ConfigError: if the device does not exist.
        """
        with ThreadPoolExecutor(1, "loading") as thread:
            return thread.submit(cls._load, settings, name, device, adapters).result()

    @classmethod
    def _load(
        cls, settings: Settings, name: str, device: str, adapters: Mapping[str, Path] | None
    ) -> Self:
        base_model = find_model(settings, name).name
        model = load_base_model(settings, base_model, device=choose_device(device))
        tokenizer = load_tokenizer(settings, base_model)
        stop_ids = end_tokens(model, tokenizer)
        model.generation_config = GenerationConfig()
        rows = RowAdapters(model, adaptable_layers(model))
        passes = choose_passes(model, rows)
        multiply_few_rows_fast(model)
        shelf = Shelf(settings, base_model, model, tokenizer, adapters)
        limit_bytes = MEMORY_SHARE * memory_limit_bytes(model.device)
        return cls(
            base_model=base_model,
            device=model.device.type,
            context_tokens=context_tokens(model.config, tokenizer),
            longest_token=max(map(len, tokenizer.get_vocab())),
            tokenizer=tokenizer,
            shelf=shelf,
            scheduler=Scheduler(passes, shelf, stop_ids, limit_bytes),
        )

    def prompt(
        self, messages: Sequence[dict[str, Any]], tools: Sequence[dict[str, Any]] = ()
    ) -> tuple[int, ...]:
        """Return the prompt's ids, rendered as training renders them.

        Raises:
            ChatTemplateError: if the template refuses the messages.
            ContextError: if no room is left for a reply.
        """
        fewest = sum(len(str(message["content"])) for message in messages) // self.longest_token
        if fewest > self.context_tokens:  # counting them exactly would take long
            raise _too_long(f"more than {fewest}", self.context_tokens)
        rendering = Rendering.TEMPLATE if self.tokenizer.chat_template else Rendering.PLAIN
        ids = tuple(render_prompt(list(messages), self.tokenizer, rendering, tools))
        if not ids:
            raise BadDataError("the messages are empty", where="messages", remedy="Say something.")
        if len(ids) >= self.context_tokens:
            raise _too_long(str(len(ids)), self.context_tokens)
        return ids


def _too_long(tokens: str, context: int) -> ContextError:
    return ContextError(
        f"the prompt has {tokens} tokens, and the model's context ends at {context}",
        where="messages",
        remedy="Shorten the messages, or leave out the earliest turns.",
    )


def context_tokens(config: Any, tokenizer: PreTrainedTokenizerBase) -> int:
    """Return how many tokens a model can see, by its config and its tokenizer."""
    stated = config.get_text_config().to_dict().get("max_position_embeddings")
    limits = [int(limit) for limit in (stated, tokenizer.model_max_length) if limit]
    return min(limits)
