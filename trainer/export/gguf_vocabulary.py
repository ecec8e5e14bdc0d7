"""A byte-level BPE tokenizer in a GGUF file: tokens, merges, special ids, chat template."""

import json
from typing import Any

import gguf
from transformers import PreTrainedTokenizerBase, PreTrainedTokenizerFast

from trainer.errors import CheckpointError
from trainer.export.gguf_names import ELSEWHERE

SPLITS = {
    "(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\\r\\n\\p{L}\\p{N}]?\\p{L}+|\\p{N}| ?[^\\s\\p{L}\\p{N}]+"
    "[\\r\\n]*|\\s*[\\r\\n]+|\\s+(?!\\S)|\\s+": "qwen2",
    "(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\\r\\n\\p{L}\\p{N}]?\\p{L}+|\\p{N}{1,3}| ?[^\\s\\p{L}\\p{N}]+"
    "[\\r\\n]*|\\s*[\\r\\n]+|\\s+(?!\\S)|\\s+": "llama-bpe",
}
"""By the pattern that splits text into words: what llama.cpp calls this way of splitting."""


def add_vocabulary(
    writer: gguf.GGUFWriter, tokenizer: PreTrainedTokenizerBase, vocabulary: int
) -> None:
    """Add a tokenizer; ids of the model that no token has are marked as unused.

    Raises:
        CheckpointError: if it is of a kind that cannot be written here.
    """
    if not isinstance(tokenizer, PreTrainedTokenizerFast):
        raise _not_here()
    parts: dict[str, Any] = json.loads(tokenizer.backend_tokenizer.to_str())
    tokens = {token_id: token for token, token_id in tokenizer.get_vocab().items()}
    added = tokenizer.added_tokens_decoder
    kinds: list[int] = []
    for token_id in range(vocabulary):
        if token_id not in tokens:
            kinds.append(gguf.TokenType.UNUSED)
        elif token_id not in added:
            kinds.append(gguf.TokenType.NORMAL)
        else:
            special = added[token_id].special
            kinds.append(gguf.TokenType.CONTROL if special else gguf.TokenType.USER_DEFINED)
    writer.add_tokenizer_model("gpt2")
    writer.add_tokenizer_pre(_splitting(parts))
    writer.add_token_list([tokens.get(i, f"[PAD{i}]") for i in range(vocabulary)])
    writer.add_token_types(kinds)
    writer.add_token_merges([_merge(pair) for pair in parts["model"]["merges"]])
    _add_special(writer, tokenizer)
    if isinstance(tokenizer.chat_template, str):
        writer.add_chat_template(tokenizer.chat_template)


def _merge(pair: str | list[str]) -> str:
    return pair if isinstance(pair, str) else " ".join(pair)


def _splitting(parts: dict[str, Any]) -> str:
    """Return llama.cpp's name for how the tokenizer splits text before it merges."""
    steps = _steps(parts.get("pre_tokenizer"))
    kinds = [step["type"] for step in steps]
    if parts["model"]["type"] == "BPE" and not _steps(parts.get("normalizer"), ignore="NFC"):
        if kinds == ["ByteLevel"] and not steps[0]["add_prefix_space"]:
            return "gpt-2"
        if kinds == ["Digits", "ByteLevel"] and steps[0]["individual_digits"]:
            return "smollm"
        if kinds == ["Split", "ByteLevel"]:
            pattern = steps[0]["pattern"].get("Regex", "")
            if pattern in SPLITS:
                return SPLITS[pattern]
    raise _not_here()


def _not_here() -> CheckpointError:
    return CheckpointError(
        "its tokenizer splits text in a way that cannot be written as GGUF here",
        where="export",
        remedy=ELSEWHERE,
    )


def _steps(part: dict[str, Any] | None, *, ignore: str = "") -> list[dict[str, Any]]:
    if part is None:
        return []
    steps = part.get("pretokenizers") or part.get("normalizers") or [part]
    return [step for step in steps if step["type"] != ignore]


def _add_special(writer: gguf.GGUFWriter, tokenizer: PreTrainedTokenizerBase) -> None:
    add = {
        "bos_token_id": writer.add_bos_token_id,
        "eos_token_id": writer.add_eos_token_id,
        "unk_token_id": writer.add_unk_token_id,
        "pad_token_id": writer.add_pad_token_id,
    }
    ids = {
        "bos_token_id": tokenizer.bos_token_id,
        "eos_token_id": tokenizer.eos_token_id,
        "unk_token_id": tokenizer.unk_token_id,
        "pad_token_id": tokenizer.pad_token_id,
    }
    for name, token_id in ids.items():
        if isinstance(token_id, int):
            add[name](token_id)
    begins = tokenizer.encode("a")[:1] == [tokenizer.bos_token_id]
    writer.add_add_bos_token(begins)
