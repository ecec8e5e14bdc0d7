"""The conversations that grow from one prompt: the model's replies, and who speaks between them."""

import random
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from typing import Any

from db.enums import Partner, Role
from db.records import Collection, CollectionPlan, Conversation, Message
from trainer.data.rendering import chat_messages
from trainer.data.sampled import PROMPT_MARK
from trainer.errors import BadDataError, ChatTemplateError

BASE_NAME = "base"
"""Who plays the user: the model without any adapter."""

END_MARK = "[end]"
"""What the played user says to end the conversation."""

FIRST_LINE = "Begin."
"""What the player is told first: many templates refuse a conversation that opens with a reply."""

_TITLE_CHARACTERS = 60


@dataclass(frozen=True, slots=True, kw_only=True)
class Question:
    """What a model is asked.

    Attributes:
        name: "base", or the adapter's name.
        messages: As chat templates take them.
        count: How many replies are wanted.
        seed: Fixes the dice.
        tools: The functions that it may call.
    """

    name: str
    messages: list[dict[str, Any]]
    count: int
    seed: int
    tools: tuple[dict[str, Any], ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Reply:
    """What a model said.

    Attributes:
        text: The reply.
        token_ids: As they were sampled, the end-of-turn token included.
        logprobs: The untempered policy's log-probability of each, in nats.
        prompt_mark: Tells what it was asked from other prompts, see `trainer.data.sampled`.
    """

    text: str
    token_ids: tuple[int, ...]
    logprobs: tuple[float, ...]
    prompt_mark: str = ""


Ask = Callable[[Question], list[Reply]]


def talk(
    collection: Collection,
    number: int,
    prompt: Conversation,
    ask: Ask,
    told: Callable[[int], None],
) -> list[Conversation]:
    """Return the conversations that grow from one prompt; they are one group.

    Args:
        collection: What is collected.
        number: The prompt's number, from 0.
        prompt: What they all begin with.
        ask: Asks a model; may be called from several threads at once.
        told: Called with the number of replies that have just been given.

    Raises:
        ChatTemplateError, BadDataError: if the model cannot be asked about this prompt.
    """
    plan = collection.plan
    seed = _seed(plan, number, 0, 0)
    question = Question(
        name=answerer(plan),
        messages=chat_messages(prompt),
        count=plan.replies,
        seed=seed,
        tools=prompt.tools,
    )
    firsts = ask(question)
    told(len(firsts))

    def go_on(place: int) -> Conversation:
        reply = _message(firsts[place], plan, {"seed": seed, "choice": place})
        begun = replace(prompt, messages=(*prompt.messages, reply))
        whole = _go_on(plan, (number, place), begun, ask, told)
        return replace(
            whole,
            title=_title(prompt, place, plan.replies),
            source=collection.source,
            group=f"{collection.source}/{number}",
        )

    if plan.partner is Partner.NOBODY:
        return [go_on(place) for place in range(len(firsts))]
    with ThreadPoolExecutor(len(firsts)) as pool:  # so that their turns are computed together
        return list(pool.map(go_on, range(len(firsts))))


def answerer(plan: CollectionPlan) -> str:
    """Return the name that the endpoint's shelf knows the asked model by."""
    return BASE_NAME if plan.run_id is None else f"run-{plan.run_id}"


def _go_on(
    plan: CollectionPlan,
    place: tuple[int, int],
    conversation: Conversation,
    ask: Ask,
    told: Callable[[int], None],
) -> Conversation:
    """Return the conversation with its further turns; it ends early where the context is full."""
    for turn in range(1, plan.replies_each):
        try:
            said = _user_turn(plan, place, turn, conversation, ask)
            if said is None:
                break
            asked = replace(conversation, messages=(*conversation.messages, said))
            seed = _seed(plan, *place, turn)
            question = Question(
                name=answerer(plan),
                messages=chat_messages(asked),
                count=1,
                seed=seed,
                tools=asked.tools,
            )
            (reply,) = ask(question)
        except (ChatTemplateError, BadDataError):
            break
        told(1)
        answered = _message(reply, plan, {"seed": seed})
        conversation = replace(asked, messages=(*asked.messages, answered))
    return conversation


def _user_turn(
    plan: CollectionPlan, place: tuple[int, int], turn: int, conversation: Conversation, ask: Ask
) -> Message | None:
    """Return what the user says next; None if they have nothing more to say."""
    if plan.partner is Partner.SCRIPT:
        return Message(role=Role.USER, content=plan.script[turn - 1])
    seed = _seed(plan, *place, -turn)
    messages = players_view(plan.persona, conversation.messages)
    (reply,) = ask(Question(name=BASE_NAME, messages=messages, count=1, seed=seed))
    text = reply.text.strip()
    if not text or END_MARK in text.lower():
        return None
    return Message(role=Role.USER, content=text)


def players_view(persona: str, messages: Sequence[Message]) -> list[dict[str, Any]]:
    """Return a conversation as who plays the user sees it: the roles are swapped.

    The system prompt of the assistant's part and what tools say stay hidden from them.
    """
    swapped = {Role.USER: Role.ASSISTANT, Role.ASSISTANT: Role.USER}
    seen = [
        {"role": swapped[message.role].value, "content": message.content}
        for message in messages
        if message.role in swapped and message.content
    ]
    return [
        {"role": Role.SYSTEM.value, "content": persona},
        {"role": Role.USER.value, "content": FIRST_LINE},
        *seen,
    ]


def _message(reply: Reply, plan: CollectionPlan, dice: dict[str, int]) -> Message:
    return Message(
        role=Role.ASSISTANT,
        content=reply.text,
        model=plan.base_model,
        run_id=plan.run_id,
        token_ids=reply.token_ids,
        logprobs=reply.logprobs,
        sampling={
            "temperature": plan.temperature,
            "top_p": plan.top_p,
            "max_tokens": plan.max_tokens,
            **dice,
            PROMPT_MARK: reply.prompt_mark,
        },
    )


def _seed(plan: CollectionPlan, prompt: int, conversation: int, turn: int) -> int:
    """Return the seed of one question: whatever was done before, the same is asked with the same."""
    return random.Random(f"{plan.seed}/{prompt}/{conversation}/{turn}").getrandbits(31)


def _title(prompt: Conversation, place: int, replies: int) -> str:
    opening = next((m.content for m in prompt.messages if m.role is Role.USER), "")
    words = " ".join(opening.split())
    cut = words if len(words) <= _TITLE_CHARACTERS else f"{words[: _TITLE_CHARACTERS - 1]}…"
    return f"{cut} · {place + 1} of {replies}" if replies > 1 else cut
