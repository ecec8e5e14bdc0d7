"""A few openings from the data, answered by the model before and after training."""

from collections.abc import Sequence
from typing import Any

from db.enums import Role
from db.records import Conversation
from trainer.config import Rendering, TrainConfig
from trainer.data.rendering import chat_messages, render_prompt
from trainer.engine.client import TrainingClient
from trainer.engine.types import ModelInput, SamplingParams
from trainer.runs.folder import RunFolder, read_json, write_json


def sample_before(
    conversations: Sequence[Conversation],
    config: TrainConfig,
    client: TrainingClient,
    folder: RunFolder,
) -> None:
    """Choose the prompts and write `samples.json` with the model's answers before training."""
    prompts = choose_prompts(conversations, config.sample_prompts)
    answers = _answers(prompts, config, client)
    write_json(
        folder.samples,
        [
            {"prompt": prompt, "before": answer, "after": None}
            for prompt, answer in zip(prompts, answers, strict=True)
        ],
    )


def sample_after(config: TrainConfig, client: TrainingClient, folder: RunFolder) -> None:
    """Add the trained model's answers to `samples.json`."""
    samples = read_json(folder.samples)
    answers = _answers([sample["prompt"] for sample in samples], config, client)
    write_json(
        folder.samples,
        [{**sample, "after": answer} for sample, answer in zip(samples, answers, strict=True)],
    )


def choose_prompts(conversations: Sequence[Conversation], count: int) -> list[list[dict[str, Any]]]:
    """Return the messages before the first reply of the first `count` different openings."""
    prompts: list[list[dict[str, Any]]] = []
    for conversation in conversations:
        messages = chat_messages(conversation)
        roles = [message["role"] for message in messages]
        if Role.ASSISTANT not in roles or len(prompts) == count:
            continue
        opening = messages[: roles.index(Role.ASSISTANT)]
        if Role.USER in roles[: len(opening)] and opening not in prompts:
            prompts.append(opening)
    return prompts


def _answers(
    prompts: Sequence[list[dict[str, Any]]], config: TrainConfig, client: TrainingClient
) -> list[str]:
    """Answer greedily, so that a difference is the adapter's doing and not the dice's."""
    if not prompts:
        return []
    tokenizer = client.get_tokenizer()
    sampler = client.save_weights_and_get_sampling_client()
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
