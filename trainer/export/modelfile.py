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
    if _is_chatml(tokenizer):
        lines += [f'TEMPLATE """{CHATML}"""', f'PARAMETER stop "{END}"']
    return "\n".join(lines) + "\n"


def _is_chatml(tokenizer: Tokenizer) -> bool:
    if not tokenizer.chat_template:
        return False
    expected = "".join(f"{START}{m['role']}\n{m['content']}{END}\n" for m in PROBE)
    rendered = tokenizer.apply_chat_template(PROBE, tokenize=False, add_generation_prompt=True)
    return rendered == f"{expected}{START}assistant\n"
