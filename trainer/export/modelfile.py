"""An Ollama Modelfile; the chat template is written where it is one that Ollama's language can say."""

from typing import Any

from trainer.data.rendering import Tokenizer

START, END = "<|im_start|>", "<|im_end|>"

CHATML = f"""\
{{{{- range .Messages }}}}{START}{{{{ .Role }}}}
{{{{ .Content }}}}{END}
{{{{ end }}}}{START}assistant
"""

PROBE: list[dict[str, Any]] = [
    {"role": "system", "content": "Be brief."},
    {"role": "user", "content": "Hello."},
    {"role": "assistant", "content": "Hello!"},
    {"role": "user", "content": "And now?"},
]


def modelfile(tokenizer: Tokenizer, **instructions: str) -> str:
    """Return a Modelfile with these instructions, such as `FROM="model.gguf"`.

    Ollama does not read Jinja. A template that frames messages as ChatML does is written in
    Ollama's own language; for any other Ollama looks for one that it knows in the GGUF file.
    """
    lines = [f"{name} ./{file}" for name, file in instructions.items()]
    system = _system_of_chatml(tokenizer)
    if system is not None:
        lines += [f'TEMPLATE """{CHATML}"""', f'PARAMETER stop "{END}"']
    if system:
        lines.append(f'SYSTEM """{system}"""')
    return "\n".join(lines) + "\n"


def _system_of_chatml(tokenizer: Tokenizer) -> str | None:
    """Return the system prompt that a ChatML template adds where there is none (empty if none).

    None means that the template is another one.
    """
    if not tokenizer.chat_template or _rendered(tokenizer, PROBE) != _chatml(PROBE):
        return None
    chat = PROBE[1:]
    rendered, framed = _rendered(tokenizer, chat), _chatml(chat)
    begin, end = f"{START}system\n", f"{END}\n{framed}"
    if rendered == framed:
        return ""
    if rendered.startswith(begin) and rendered.endswith(end):
        return rendered.removeprefix(begin).removesuffix(end)
    return None


def _rendered(tokenizer: Tokenizer, messages: list[dict[str, Any]]) -> str:
    return tokenizer.apply_chat_template(messages, tokenize=False, add_generation_prompt=True)


def _chatml(messages: list[dict[str, Any]]) -> str:
    framed = "".join(f"{START}{m['role']}\n{m['content']}{END}\n" for m in messages)
    return f"{framed}{START}assistant\n"
