"""Stored log-probabilities are the behaviour policy as long as they belong to what is there."""

from dataclasses import replace
from pathlib import Path

import pytest
from transformers import AutoTokenizer

from db.enums import Role
from db.records import Conversation, Message, Score
from trainer.config import Rendering, TrainConfig
from trainer.data.rendering import render_conversation, render_prompt
from trainer.data.sampled import PROMPT_MARK, prompt_mark
from trainer.preview import preview

ASKED = Message(role=Role.USER, content="Where is my order?")


def stored(tokenizer, text: str = "Let me look.") -> Conversation:
    """A conversation whose reply was sampled with the prompt as it is."""
    prompt = render_prompt(
        [{"role": "user", "content": ASKED.content}], tokenizer, Rendering.TEMPLATE
    )
    ids = tuple(tokenizer.encode(text))
    reply = Message(
        role=Role.ASSISTANT,
        content=text,
        token_ids=ids,
        logprobs=(-1.0,) * len(ids),
        sampling={PROMPT_MARK: prompt_mark(prompt)},
        scores=(Score(rater="test", value=1.0),),
    )
    return Conversation(messages=(ASKED, reply), title="sampled")


@pytest.fixture(scope="module")
def tokenizer(tiny_llama: Path):
    return AutoTokenizer.from_pretrained(tiny_llama)


def test_what_was_stored_is_used_while_it_belongs_to_reply_and_prompt(tokenizer) -> None:
    talk = stored(tokenizer)
    (turn,) = render_conversation(talk, tokenizer, Rendering.TEMPLATE)
    assert turn.sampled_logprobs == talk.messages[1].logprobs
    assert turn.stale == ""


@pytest.mark.parametrize("change", ["reply", "question", "system", "plain"])
def test_what_no_longer_belongs_is_measured_anew_and_the_preview_says_why(
    tokenizer, change: str
) -> None:
    talk = stored(tokenizer)
    asked, reply = talk.messages
    rendering, why = Rendering.TEMPLATE, "what the model sees before the reply has changed"
    if change == "reply":
        talk = replace(talk, messages=(asked, replace(reply, content="Of course.")))
        why = "no longer spell the reply"
    elif change == "question":
        talk = replace(talk, messages=(replace(asked, content="Where is it?"), reply))
    elif change == "system":
        talk = replace(talk, system="Be brief.")
    else:
        rendering, why = Rendering.PLAIN, "the rendering is plain"
    (turn,) = render_conversation(talk, tokenizer, rendering)
    assert turn.sampled_logprobs is None and why in turn.stale
    other = Conversation(messages=(asked, replace(reply, token_ids=None, logprobs=None,
                         scores=(Score(rater="test", value=-1.0),))))  # fmt: skip
    table = preview([talk, other], TrainConfig(rendering=rendering), tokenizer)
    (said,) = [finding for finding in table.warnings if finding.kind == "stale_logprobs"]
    assert said.text.startswith("1 of 2 scored turns") and why in said.text
    assert "turn 1" in said.text and not said.blocking
