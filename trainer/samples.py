"""The fixed prompts, and a few openings from the data, answered by the model before and after training."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Self

from db.enums import Role
from db.records import Conversation
from trainer.config import Rendering, TrainConfig
from trainer.data.rendering import chat_messages, render_prompt
from trainer.engine.types import ModelInput, SamplingParams
from trainer.engines import Engine, Sampler
from trainer.evaluating.changes import changes_before, held_out_replies, mean_logprobs
from trainer.evaluating.held import read_evaluation
from trainer.runs.folder import RunFolder, read_json, write_json


def sample_before(
    conversations: Sequence[Conversation],
    config: TrainConfig,
    client: Engine,
    folder: RunFolder,
) -> None:
    """Choose the prompts and write `samples.json` with the model's answers before training."""
    evaluation = read_evaluation(folder)
    held_out = [opening for one in evaluation if (opening := _opening(one))]
    openings = choose_openings(conversations, config.sample_prompts)
    fixed = list({str(opening): opening for opening in held_out}.values())
    own = [opening for opening in openings if opening not in fixed]
    sampler = client.save_weights_and_get_sampling_client()
    answers = _answers([*fixed, *own], config, client, sampler)
    tokenizer = client.get_tokenizer()
    replies = held_out_replies(conversations, evaluation, config, tokenizer)
    changes = changes_before(replies, mean_logprobs(replies, sampler))
    write_json(folder.changes, [change.to_json() for change in changes])
    write_json(
        folder.samples,
        [
            {**opening.to_json(), "before": answer, "after": None, "held_out": place < len(fixed)}
            for place, (opening, answer) in enumerate(zip([*fixed, *own], answers, strict=True))
        ],
    )


def sample_after(
    conversations: Sequence[Conversation], config: TrainConfig, client: Engine, folder: RunFolder
) -> None:
    """Add what the trained model says to `samples.json` and `changes.json`."""
    samples = read_json(folder.samples)
    sampler = client.save_weights_and_get_sampling_client()
    answers = _answers([Opening.from_json(sample) for sample in samples], config, client, sampler)
    if folder.changes.exists():  # not in runs that an earlier version began
        tokenizer = client.get_tokenizer()
        replies = held_out_replies(conversations, read_evaluation(folder), config, tokenizer)
        means = mean_logprobs(replies, sampler)
        known = read_json(folder.changes)
        write_json(
            folder.changes,
            [{**change, "after": mean} for change, mean in zip(known, means, strict=True)],
        )
    write_json(
        folder.samples,
        [{**sample, "after": answer} for sample, answer in zip(samples, answers, strict=True)],
    )


@dataclass(frozen=True, slots=True)
class Opening:
    """What a conversation begins with, up to its first reply.

    Attributes:
        messages: As chat templates take them.
        tools: The functions that the model may call.
    """

    messages: list[dict[str, Any]]
    tools: tuple[dict[str, Any], ...] = ()

    def to_json(self) -> dict[str, Any]:
        """Return it as the fields of a sample; without tools there is no field for them."""
        return {"prompt": self.messages, **({"tools": list(self.tools)} if self.tools else {})}

    @classmethod
    def from_json(cls, sample: dict[str, Any]) -> Self:
        """Return the opening of a sample."""
        return cls(sample["prompt"], tuple(sample.get("tools", ())))


def choose_openings(conversations: Sequence[Conversation], count: int) -> list[Opening]:
    """Return the first `count` different openings."""
    found: list[Opening] = []
    for conversation in conversations:
        if not conversation.assistant_messages or len(found) == count:
            continue
        opening = _opening(conversation)
        if opening is not None and opening not in found:
            found.append(opening)
    return found


def _opening(conversation: Conversation) -> Opening | None:
    """Return the opening of a conversation; None if no user speaks before the first reply."""
    messages = chat_messages(conversation)
    roles = [message["role"] for message in messages]
    end = roles.index(Role.ASSISTANT) if Role.ASSISTANT in roles else len(roles)
    return Opening(messages[:end], conversation.tools) if Role.USER in roles[:end] else None


def _answers(
    openings: Sequence[Opening],
    config: TrainConfig,
    client: Engine,
    sampler: Sampler,
) -> list[str]:
    """Answer greedily, so that a difference is the adapter's doing and not the dice's."""
    if not openings:
        return []
    tokenizer = client.get_tokenizer()
    # People talk to the model through its template, whatever rendering it was trained with.
    rendering = Rendering.TEMPLATE if tokenizer.chat_template else Rendering.PLAIN
    params = SamplingParams(max_tokens=config.sample_tokens, temperature=0.0)
    answers: list[str] = []
    for opening in openings:
        ids = render_prompt(opening.messages, tokenizer, rendering, opening.tools)
        result = sampler.sample(ModelInput.from_ints(ids), 1, params).result()
        tokens = list(result.sequences[0].tokens)
        answers.append(str(tokenizer.decode(tokens, skip_special_tokens=True)).strip())
    return answers
