"""Template rendering is exact: each turn's prompt and response are what the model sees and says."""

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from transformers import AutoTokenizer

from db.enums import Role
from db.records import Conversation, Message, Score
from db.settings import Settings
from tests import oracle
from tests.conftest import TinyModels
from tests.models import END
from tests.oracle import OracleTurn
from tests.runs import run
from trainer.config import Preset, Rendering, TrainConfig
from trainer.data.rendering import RenderedTurn, render_conversation

SAID = {"system": Role.SYSTEM, "user": Role.USER, "assistant": Role.ASSISTANT, "tool": Role.TOOL}
CALL = {"id": "c1", "type": "function", "function": {"name": "order", "arguments": '{"no": 7}'}}

CONVERSATIONS = {
    "dialogue": [
        ("user", "What is the capital of France?"),
        ("assistant", "The capital of France is Paris."),
        ("user", "How many people live there?"),
        ("assistant", "Approximately 2.2 million."),
        ("user", "Thanks"),
        ("assistant", "You are welcome!"),
    ],
    "system prompt": [
        ("system", "Answer in one word."),
        ("user", "The capital of France?"),
        ("assistant", "Paris"),
        ("user", "Of Peru?"),
        ("assistant", "Lima"),
    ],
    "tool messages": [
        ("user", "Where is my order?"),
        ("assistant", "Let me look."),
        ("tool", '{"state": "on its way"}'),
        ("assistant", "It is on its way."),
    ],
    "assistant opening": [
        ("assistant", "Hello, can I help you?"),
        ("user", "Yes"),
        ("assistant", "Please go on."),
    ],
    "two user messages in a row": [
        ("user", "Hi"),
        ("user", "My order has not arrived."),
        ("assistant", "I am sorry to hear that."),
        ("user", "And now?"),
    ],
    "two replies in a row": [
        ("user", "Hi"),
        ("assistant", "One moment"),
        ("assistant", "Here I am."),
    ],
    "the same turn again and again": [("user", "More"), ("assistant", "No.")] * 4,
    "text that is not plain": [
        ("user", "Grüße 🙂\n\n  two lines  "),
        ("assistant", "<b>Paris</b>\n- 2.2\n- 漢字"),
    ],
}

HISTORIES = [pytest.param(messages, id=name) for name, messages in CONVERSATIONS.items()]
TEMPLATES = ["llama", "qwen3", "qwen3-prefilled"]


def _conversation(messages: list[tuple[str, str]]) -> Conversation:
    system = messages[0][1] if messages[0][0] == "system" else ""
    return Conversation(
        system=system,
        messages=tuple(
            Message(role=SAID[role], content=content) for role, content in messages[bool(system) :]
        ),
    )


def _seen(tokenizer: Any, messages: list[tuple[str, str]]) -> list[int]:
    """The ids that a chat without thinking would send to the model for the next reply."""
    if not messages:  # no template renders nothing: take what it writes before an opening reply
        opening = [{"role": "assistant", "content": "§"}]
        text = tokenizer.apply_chat_template(opening, tokenize=False)
        return tokenizer.encode(text.split("§")[0])
    return tokenizer.apply_chat_template(
        [{"role": role, "content": content} for role, content in messages],
        add_generation_prompt=True,
        enable_thinking=False,
        return_dict=False,
    )


def _render(tokenizer: Any, messages: list[tuple[str, str]]) -> list[RenderedTurn]:
    return render_conversation(_conversation(messages), tokenizer, Rendering.TEMPLATE)


def _replies(messages: list[tuple[str, str]]) -> list[int]:
    return [position for position, (role, _) in enumerate(messages) if role == "assistant"]


@pytest.mark.parametrize("model", TEMPLATES)
@pytest.mark.parametrize("messages", HISTORIES)
def test_prompt_is_what_the_model_would_see_at_that_turn(
    tiny_models: TinyModels, model: str, messages: list[tuple[str, str]]
) -> None:
    tokenizer = AutoTokenizer.from_pretrained(tiny_models(model))
    turns = _render(tokenizer, messages)
    positions = _replies(messages)
    assert [turn.turn for turn in turns] == list(range(len(positions)))
    for turn, position in zip(turns, positions, strict=True):
        assert list(turn.prompt_ids) == _seen(tokenizer, messages[:position])


@pytest.mark.parametrize("model", TEMPLATES)
@pytest.mark.parametrize("messages", HISTORIES)
def test_response_is_the_reply_and_the_end_of_turn_token_and_nothing_after(
    tiny_models: TinyModels, model: str, messages: list[tuple[str, str]]
) -> None:
    tokenizer = AutoTokenizer.from_pretrained(tiny_models(model))
    end = tokenizer.convert_tokens_to_ids(END)
    for turn, position in zip(_render(tokenizer, messages), _replies(messages), strict=True):
        reply = tokenizer.encode(messages[position][1])
        assert list(turn.response_ids) == [*reply, end]


def test_rewritten_history_lacks_the_thinking_that_its_own_turn_was_trained_on(
    tiny_qwen3: Path,
) -> None:
    tokenizer = AutoTokenizer.from_pretrained(tiny_qwen3)
    thought = "<think>\nA city.\n</think>\n\nParis"
    messages = [("user", "Capital?"), ("assistant", thought), ("user", "And?"), ("assistant", "No")]
    first, second = _render(tokenizer, messages)

    # A reply that thinks is what the model emits when it is asked to think.
    assert (
        tokenizer.decode(first.prompt_ids) == "<|turn|>user\nCapital?<|end|>\n<|turn|>assistant\n"
    )
    assert tokenizer.decode(first.response_ids) == thought + END
    assert tokenizer.decode(second.prompt_ids) == (
        "<|turn|>user\nCapital?<|end|>\n<|turn|>assistant\nParis<|end|>\n"
        "<|turn|>user\nAnd?<|end|>\n<|turn|>assistant\n<think>\n\n</think>\n\n"
    )
    assert tokenizer.decode(second.response_ids) == "No" + END


def test_tool_calls_are_part_of_the_response(tiny_llama: Path) -> None:
    tokenizer = AutoTokenizer.from_pretrained(tiny_llama)
    conversation = Conversation(
        messages=(
            Message(role=Role.USER, content="Where is it?"),
            Message(role=Role.ASSISTANT, content="", tool_calls=(CALL,)),
            Message(role=Role.TOOL, content="on its way", tool_call_id="c1"),
            Message(role=Role.ASSISTANT, content="On its way."),
        )
    )
    calls, answer = render_conversation(conversation, tokenizer, Rendering.TEMPLATE)
    text = tokenizer.decode(calls.response_ids)
    assert json.loads(text.removesuffix(END)) == [CALL]
    assert text in tokenizer.decode(answer.prompt_ids)
    assert tokenizer.decode(answer.response_ids) == "On its way." + END


@pytest.mark.slow
@pytest.mark.parametrize("messages", HISTORIES)
def test_the_embedded_model_sees_its_own_template(
    smollm2: Path, messages: list[tuple[str, str]]
) -> None:
    tokenizer = AutoTokenizer.from_pretrained(smollm2)
    end = tokenizer.convert_tokens_to_ids("<|im_end|>")
    for turn, position in zip(_render(tokenizer, messages), _replies(messages), strict=True):
        assert list(turn.prompt_ids) == _seen(tokenizer, messages[:position])
        assert list(turn.response_ids) == [*tokenizer.encode(messages[position][1]), end]


def _exact_turns(tokenizer: Any, end: str, messages: list[tuple[str, str]]) -> list[OracleTurn]:
    """The turns as this module defines them, put together without the product's rendering."""
    turns = []
    for position in _replies(messages):
        reply = [*tokenizer.encode(messages[position][1]), tokenizer.convert_tokens_to_ids(end)]
        prompt = _seen(tokenizer, messages[:position])
        turns.append(OracleTurn(tuple(prompt), tuple(reply), 0.0, (0.0,) * len(reply)))
    return turns


def _score_all(conversation: Conversation) -> Conversation:
    """Give every reply a score, no two alike, so that each of them is trained on."""
    messages = [
        replace(message, scores=(Score(rater="test", value=1.0 - position / 20),))
        if message.role is Role.ASSISTANT
        else message
        for position, message in enumerate(conversation.messages)
    ]
    return replace(conversation, messages=tuple(messages))


def _assert_first_step_measures_the_base_model(
    model: Path, end: str, histories: list[list[tuple[str, str]]], settings: Settings, out: Path
) -> None:
    """The first step's `logprob_mean` is the base model's, of exactly those tokens."""
    config = TrainConfig.for_preset(
        Preset.STANDARD,
        base_model=str(model),
        device="cpu",
        batch_conversations=0,
        epochs=1,
        sample_prompts=0,
    )
    conversations = [_score_all(_conversation(messages)) for messages in histories]
    rows = run(out, conversations, config, settings)
    tokenizer = AutoTokenizer.from_pretrained(model)
    base = oracle.load(model)
    expected = [
        (index, turn, oracle.figures(base, exact))
        for index, messages in enumerate(histories)
        for turn, exact in enumerate(_exact_turns(tokenizer, end, messages))
    ]
    found = {(row["conversation"], row["turn"]): row for row in rows}
    assert len(found) == len(rows) == len(expected)
    for index, turn, figures in expected:
        row = found[index, turn]
        assert row["tokens"] == figures.tokens
        assert row["response_tokens"] == figures.response_tokens
        assert row["logprob_mean"] == pytest.approx(figures.logprob_mean, abs=1e-4)


@pytest.mark.parametrize("model", TEMPLATES)
def test_the_first_step_measures_the_base_model_on_exactly_these_tokens(
    tiny_models: TinyModels, model: str, settings: Settings, tmp_path: Path
) -> None:
    _assert_first_step_measures_the_base_model(
        tiny_models(model), END, list(CONVERSATIONS.values()), settings, tmp_path / "run"
    )


@pytest.mark.slow
def test_the_first_step_measures_the_embedded_model_on_exactly_these_tokens(
    smollm2: Path, settings: Settings, tmp_path: Path
) -> None:
    histories = [CONVERSATIONS["dialogue"], CONVERSATIONS["system prompt"]]
    _assert_first_step_measures_the_base_model(
        smollm2, "<|im_end|>", histories, settings, tmp_path / "run"
    )


def test_the_tools_that_may_be_called_stand_in_every_prompt(tiny_models: TinyModels) -> None:
    tokenizer = AutoTokenizer.from_pretrained(tiny_models("llama"))
    tokenizer.chat_template = (
        "{%- for tool in tools or [] -%}{{ tool.function.name + ';' }}{%- endfor -%}"
        + tokenizer.chat_template
    )
    tools = ({"type": "function", "function": {"name": "order"}},)
    plain = _conversation(CONVERSATIONS["tool messages"])
    without, given = (
        render_conversation(one, tokenizer, Rendering.TEMPLATE)
        for one in (plain, replace(plain, tools=tools))
    )
    named = tokenizer.encode("order;")
    assert [turn.prompt_ids for turn in given] == [(*named, *turn.prompt_ids) for turn in without]
    assert [turn.response_ids for turn in given] == [turn.response_ids for turn in without]
