"""A conversation becomes, for each assistant turn, the token ids of its prompt and its response."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, Protocol

from db.enums import Role
from db.records import Conversation, Message
from trainer.config import Rendering
from trainer.data.sampled import why_not
from trainer.errors import BadDataError, ChatTemplateError

_PLAIN = "they were sampled through the chat template, and the rendering is plain"


class AddedToken(Protocol):
    """A token that was added to the vocabulary; special ones never come from ordinary text."""

    @property
    def special(self) -> bool:
        """Whether the token is a control token."""
        ...


class Tokenizer(Protocol):
    """The part of a transformers tokenizer that rendering uses."""

    chat_template: Any
    added_tokens_decoder: Any
    special_tokens_map: Any

    def encode(self, text: str, *, add_special_tokens: bool = True) -> list[int]:
        """Return the token ids of a text."""
        ...

    def decode(self, token_ids: list[int], *, skip_special_tokens: bool = False) -> Any:
        """Return the text of token ids."""
        ...

    def convert_tokens_to_ids(self, tokens: str) -> Any:
        """Return the id of a token."""
        ...

    def apply_chat_template(self, conversation: list[dict[str, Any]], **kwargs: Any) -> Any:
        """Return the text of a conversation as the model sees it."""
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class RenderedTurn:
    """One assistant turn as the model sees it.

    Attributes:
        turn: Assistant turn within the conversation, from 0.
        prompt_ids: Everything before the reply; never empty.
        response_ids: The reply and, under a chat template, its end-of-turn token.
        sampled_logprobs: For a reply whose sampled ids are stored: the log-probability of each
            response id under the policy that sampled it. None if no known policy did.
        stale: Why log-probabilities that are stored with the reply are not used; empty if they are,
            or there are none.
    """

    turn: int
    prompt_ids: tuple[int, ...]
    response_ids: tuple[int, ...]
    sampled_logprobs: tuple[float, ...] | None = None
    stale: str = ""

    @property
    def model_input(self) -> tuple[int, ...]:
        """What goes into the model: all ids but the last, which is only predicted."""
        return (*self.prompt_ids, *self.response_ids)[:-1]

    @property
    def tokens(self) -> int:
        """Length of the model input."""
        return len(self.prompt_ids) + len(self.response_ids) - 1


def render_conversation(
    conversation: Conversation, tokenizer: Tokenizer, rendering: Rendering, *, name: str = ""
) -> list[RenderedTurn]:
    """Return the rendered assistant turns of a conversation, in order.

    Args:
        conversation: What was said.
        tokenizer: The base model's.
        rendering: How texts become one prompt.
        name: What errors call the conversation; its title if empty.

    Raises:
        ChatTemplateError: if the model has no chat template, or it refuses the conversation.
        BadDataError: if a turn has neither a prompt nor a start token to predict it from.
    """
    name = name or f"conversation {conversation.title!r}"
    if rendering is Rendering.PLAIN:
        return _render_plain(conversation, tokenizer, name)
    return _render_template(conversation, tokenizer, name)


def chat_messages(conversation: Conversation) -> list[dict[str, Any]]:
    """Return the conversation in the form that chat templates take, system prompt first."""
    system = [{"role": "system", "content": conversation.system}] if conversation.system else []
    return system + [_chat_message(message) for message in conversation.messages]


def render_prompt(
    messages: list[dict[str, Any]],
    tokenizer: Tokenizer,
    rendering: Rendering,
    tools: Sequence[dict[str, Any]] = (),
) -> list[int]:
    """Return the prompt ids for a reply that follows `messages` (as `chat_messages` gives them)."""
    if rendering is Rendering.PLAIN:
        text = " ".join(str(message["content"]) for message in messages)
        return tokenizer.encode(text)
    text = _apply_template(
        tokenizer, messages, thinking=False, add_generation_prompt=True, tools=tools
    )
    return tokenizer.encode(text, add_special_tokens=False)


def _render_plain(
    conversation: Conversation, tokenizer: Tokenizer, name: str
) -> list[RenderedTurn]:
    """The seed's way: texts joined by one space, prompt and reply each encoded on its own."""
    texts = [conversation.system] if conversation.system else []
    turns: list[RenderedTurn] = []
    for message in conversation.messages:
        if message.role is Role.ASSISTANT:
            prompt_ids = tokenizer.encode(" ".join(texts)) if texts else []
            turns.append(
                RenderedTurn(
                    turn=len(turns),
                    prompt_ids=tuple(prompt_ids) or (_start_token(name, tokenizer),),
                    response_ids=tuple(tokenizer.encode(message.content)),
                    stale=_PLAIN if message.token_ids and message.logprobs else "",
                )
            )
        texts.append(message.content)
    return turns


def _start_token(name: str, tokenizer: Tokenizer) -> int:
    for name in ("bos_token", "eos_token"):
        token_id = _control_token(tokenizer, name)
        if token_id is not None:
            return token_id
    raise BadDataError(
        "the first message is a reply, and the model has no start token to predict it from",
        where=f"{name}, turn 1",
        remedy="Put a user message before it, or use the template rendering.",
    )


def _control_token(tokenizer: Tokenizer, name: str) -> int | None:
    token = tokenizer.special_tokens_map.get(name)
    return None if token is None else int(tokenizer.convert_tokens_to_ids(str(token)))


def _render_template(
    conversation: Conversation, tokenizer: Tokenizer, name: str
) -> list[RenderedTurn]:
    if not tokenizer.chat_template:
        raise ChatTemplateError(
            "the model has no chat template",
            where="rendering",
            remedy="Choose the plain rendering, or an instruct model that has a template.",
        )
    messages = chat_messages(conversation)
    offset = len(messages) - len(conversation.messages)
    turns: list[RenderedTurn] = []
    for position, message in enumerate(conversation.messages):
        if message.role is not Role.ASSISTANT:
            continue
        history, reply = messages[: offset + position], messages[offset + position]
        try:
            turns.append(
                _render_turn(len(turns), history, reply, message, tokenizer, conversation.tools)
            )
        except ChatTemplateError as error:
            raise ChatTemplateError(
                error.what,
                where=f"{name}, turn {len(turns) + 1}",
                remedy=error.remedy,
            ) from error
    return turns


def _render_turn(
    turn: int,
    history: list[dict[str, Any]],
    reply: dict[str, Any],
    message: Message,
    tokenizer: Tokenizer,
    tools: Sequence[dict[str, Any]],
) -> RenderedTurn:
    # A template with a thinking switch (Qwen3's) shows a reply without thoughts after an empty
    # think block. Asking for that block puts it into the prompt, where a chat that does not
    # think has it too, and leaves in the response just what was written.
    thinking = "<think>" in message.content
    apply_template = partial(_apply_template, tokenizer, tools=tools, thinking=thinking)
    prompt = _prompt_text(history, reply, apply_template)
    prompt_ids = tuple(tokenizer.encode(prompt, add_special_tokens=False))
    is_sampled = bool(message.token_ids and message.logprobs)
    stale = _why_not(message, prompt_ids, tokenizer) if is_sampled else ""
    if message.token_ids and is_sampled and not stale:
        return RenderedTurn(
            turn=turn,
            prompt_ids=prompt_ids,
            response_ids=message.token_ids,
            sampled_logprobs=message.logprobs,
        )
    whole = apply_template([*history, reply])
    response = whole[len(prompt) :] if whole.startswith(prompt) else message.content
    response_ids = _up_to_end_of_turn(
        tokenizer.encode(response, add_special_tokens=False), tokenizer
    )
    return RenderedTurn(
        turn=turn, prompt_ids=prompt_ids, response_ids=tuple(response_ids), stale=stale
    )


def _prompt_text(
    history: list[dict[str, Any]], reply: dict[str, Any], apply_template: Callable[..., str]
) -> str:
    if history:
        return apply_template(history, add_generation_prompt=True)
    # An empty history cannot be rendered, but a conversation may open with a reply: what the
    # template writes before it is all that the model sees.
    whole = apply_template([reply])
    said = str(reply["content"]).strip()
    start = whole.rfind(said) if said else 0
    if start <= 0:
        raise ChatTemplateError(
            "the chat template shows no prompt for a reply that nothing precedes",
            remedy="Put a user message or a system prompt before it, or render plainly.",
        )
    return whole[:start]


def _why_not(message: Message, prompt_ids: Sequence[int], tokenizer: Tokenizer) -> str:
    spelt = str(tokenizer.decode(list(message.token_ids or ()), skip_special_tokens=True))
    return why_not(message, prompt_ids, spelt)


def _up_to_end_of_turn(ids: list[int], tokenizer: Tokenizer) -> list[int]:
    """Cut what a template writes after the end-of-turn token; add eos if it has no such token."""
    added = tokenizer.added_tokens_decoder
    control = {token_id for token_id, token in added.items() if token.special}
    for end in range(len(ids), 0, -1):
        if ids[end - 1] in control:
            return ids[:end]
    end_of_text = _control_token(tokenizer, "eos_token")
    return ids if end_of_text is None else [*ids, end_of_text]


def _apply_template(
    tokenizer: Tokenizer,
    messages: Sequence[dict[str, Any]],
    *,
    thinking: bool,
    add_generation_prompt: bool = False,
    tools: Sequence[dict[str, Any]] = (),
) -> str:
    try:
        text = tokenizer.apply_chat_template(
            list(messages),
            tools=list(tools) or None,
            tokenize=False,
            add_generation_prompt=add_generation_prompt,
            enable_thinking=thinking,
        )
    except Exception as error:  # a template is a program of the model's authors: anything can come
        raise ChatTemplateError(
            f"the model's chat template refuses these messages ({error})",
            remedy="Bring the messages into the order the template wants, or render plainly.",
        ) from error
    return str(text)


def _chat_message(message: Message) -> dict[str, Any]:
    entry: dict[str, Any] = {"role": message.role.value, "content": message.content}
    if message.tool_calls:
        entry["tool_calls"] = list(message.tool_calls)
    if message.tool_call_id is not None:
        entry["tool_call_id"] = message.tool_call_id
    return entry
