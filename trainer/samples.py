"""The fixed prompts, and a few openings from the data, answered by the model before and after training."""

from collections.abc import Sequence
from typing import Any

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
    prompts = choose_prompts(conversations, config.sample_prompts)
    fixed = list({str(prompt): prompt for prompt in held_out}.values())
    own = [prompt for prompt in prompts if prompt not in fixed]
    sampler = client.save_weights_and_get_sampling_client()
    answers = _answers([*fixed, *own], config, client, sampler)
    tokenizer = client.get_tokenizer()
    replies = held_out_replies(conversations, evaluation, config, tokenizer)
    changes = changes_before(replies, mean_logprobs(replies, sampler))
    write_json(folder.changes, [change.to_json() for change in changes])
    write_json(
        folder.samples,
        [
            {"prompt": prompt, "before": answer, "after": None, "held_out": place < len(fixed)}
            for place, (prompt, answer) in enumerate(zip([*fixed, *own], answers, strict=True))
        ],
    )


def sample_after(
    conversations: Sequence[Conversation], config: TrainConfig, client: Engine, folder: RunFolder
) -> None:
    """Add what the trained model says to `samples.json` and `changes.json`."""
    samples = read_json(folder.samples)
    sampler = client.save_weights_and_get_sampling_client()
    answers = _answers([sample["prompt"] for sample in samples], config, client, sampler)
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


def choose_prompts(conversations: Sequence[Conversation], count: int) -> list[list[dict[str, Any]]]:
    """Return the messages before the first reply of the first `count` different openings."""
    prompts: list[list[dict[str, Any]]] = []
    for conversation in conversations:
        if not conversation.assistant_messages or len(prompts) == count:
            continue
        opening = _opening(conversation)
        if opening and opening not in prompts:
            prompts.append(opening)
    return prompts


def _opening(conversation: Conversation) -> list[dict[str, Any]]:
    """Return the messages before the first reply; none if no user speaks before it."""
    messages = chat_messages(conversation)
    roles = [message["role"] for message in messages]
    end = roles.index(Role.ASSISTANT) if Role.ASSISTANT in roles else len(roles)
    return messages[:end] if Role.USER in roles[:end] else []


def _answers(
    prompts: Sequence[list[dict[str, Any]]],
    config: TrainConfig,
    client: Engine,
    sampler: Sampler,
) -> list[str]:
    """Answer greedily, so that a difference is the adapter's doing and not the dice's."""
    if not prompts:
        return []
    tokenizer = client.get_tokenizer()
    # People talk to the model through its template, whatever rendering it was trained with.
    rendering = Rendering.TEMPLATE if tokenizer.chat_template else Rendering.PLAIN
    params = SamplingParams(max_tokens=config.sample_tokens, temperature=0.0)
    answers: list[str] = []
    for prompt in prompts:
        ids = render_prompt(prompt, tokenizer, rendering)
        result = sampler.sample(ModelInput.from_ints(ids), 1, params).result()
        tokens = list(result.sequences[0].tokens)
        answers.append(str(tokenizer.decode(tokens, skip_special_tokens=True)).strip())
    return answers
