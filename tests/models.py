"""Tiny language models, written to a folder as complete as a real one: weights, tokenizer, template.

Their weights are random, so what they say is noise; what matters is that every path through the
engine is the one that a real model of the same family takes, in milliseconds.
"""

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from tokenizers import Tokenizer, decoders, pre_tokenizers
from tokenizers.models import BPE
from tokenizers.trainers import BpeTrainer
from transformers import (
    Gemma3ForCausalLM,
    Gemma3TextConfig,
    Lfm2Config,
    Lfm2ForCausalLM,
    LlamaConfig,
    LlamaForCausalLM,
    MistralConfig,
    MistralForCausalLM,
    PreTrainedModel,
    PreTrainedTokenizerFast,
    Qwen3Config,
    Qwen3ForCausalLM,
)

TURN, END, PAD = "<|turn|>", "<|end|>", "<|pad|>"
SPECIAL_TOKENS = (PAD, TURN, END)
THINK = ("<think>", "</think>")
VOCABULARY = 384
CONTEXT = 1024

CORPUS = (
    "What is the capital of France? The capital of France is Paris.",
    "How many people live there? Paris has approximately 2.2 million residents.",
    "Explain quantum mechanics. It is the study of particles at atomic scales.",
    "Please help me with my order, it has not arrived. I am sorry to hear that.",
    "Can you be more precise? Of course, let me look into the details for you.",
    "The price is too high for us. We could offer a discount of ten per cent.",
)
"""Text the tokenizer learns its merges from, so that words are neither bytes nor whole."""

CHATML_TEMPLATE = (
    "{%- for message in messages -%}"
    "{{ '<|turn|>' + message.role + '\\n' + (message.content or '') }}"
    "{%- if message.tool_calls -%}{{ message.tool_calls | tojson }}{%- endif -%}"
    "{{ '<|end|>\\n' }}"
    "{%- endfor -%}"
    "{%- if add_generation_prompt -%}{{ '<|turn|>assistant\\n' }}{%- endif -%}"
)
"""Every message framed alike, whatever comes before or after it: history is never rewritten."""

STRIP_THINKING = (
    "{%- set told = namespace(last_user=-1) -%}"
    "{%- for message in messages -%}"
    "{%- if message.role == 'user' -%}{%- set told.last_user = loop.index0 -%}{%- endif -%}"
    "{%- endfor -%}"
    "{%- for message in messages -%}"
    "{%- set text = message.content or '' -%}"
    "{{ '<|turn|>' + message.role + '\\n' }}"
    "{%- if message.role == 'assistant' -%}"
    "{%- set answer = text.split('</think>')[-1].lstrip('\\n') -%}"
    "{%- if loop.index0 > told.last_user and loop.last -%}"
    "{%- if '</think>' in text -%}"
    "{%- set thought = text.split('</think>')[0].split('<think>')[-1].strip('\\n') -%}"
    "{%- else -%}{%- set thought = '' -%}{%- endif -%}"
    "{{ '<think>\\n' + thought + '\\n</think>\\n\\n' + answer }}"
    "{%- else -%}{{ answer }}{%- endif -%}"
    "{%- else -%}{{ text }}{%- endif -%}"
    "{{ '<|end|>\\n' }}"
    "{%- endfor -%}"
)

REWRITING_TEMPLATE = (
    STRIP_THINKING
    + "{%- if add_generation_prompt -%}{{ '<|turn|>assistant\\n' }}"
    + "{%- if enable_thinking is defined and enable_thinking is false -%}"
    + "{{ '<think>\\n\\n</think>\\n\\n' }}{%- endif -%}{%- endif -%}"
)
"""As Qwen3 does: only the newest reply shows its thinking, earlier ones lose it.

The newest reply without thinking gets an empty block, which no later turn will see again.
"""

PREFILLED_TEMPLATE = (
    STRIP_THINKING
    + "{%- if add_generation_prompt -%}"
    + "{{ '<|turn|>assistant\\n<think>\\n\\n</think>\\n\\n' }}{%- endif -%}"
)
"""History as above, with the empty block already standing in the generation prompt."""


def make_tokenizer(template: str | None) -> PreTrainedTokenizerFast:
    """Return a byte-level BPE tokenizer trained on `CORPUS`; None gives it no chat template."""
    tokenizer = Tokenizer(BPE())
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    tokenizer.decoder = decoders.ByteLevel()
    trainer = BpeTrainer(
        vocab_size=VOCABULARY - len(THINK),
        special_tokens=list(SPECIAL_TOKENS),
        initial_alphabet=pre_tokenizers.ByteLevel.alphabet(),
        show_progress=False,
    )
    tokenizer.train_from_iterator(CORPUS, trainer)
    tokenizer.add_tokens(list(THINK))
    fast = PreTrainedTokenizerFast(
        tokenizer_object=tokenizer, eos_token=END, pad_token=PAD, model_max_length=CONTEXT
    )
    fast.chat_template = template
    return fast


def _sizes() -> dict[str, Any]:
    return {
        "vocab_size": VOCABULARY,
        "hidden_size": 48,
        "intermediate_size": 96,
        "num_hidden_layers": 2,
        "num_attention_heads": 4,
        "num_key_value_heads": 2,
        "max_position_embeddings": CONTEXT,
        "bos_token_id": None,
        "eos_token_id": SPECIAL_TOKENS.index(END),
        "pad_token_id": SPECIAL_TOKENS.index(PAD),
        # Wide enough that logits differ by several nats: a wrong mask or position must show.
        "initializer_range": 0.15,
    }


def _llama() -> PreTrainedModel:
    return LlamaForCausalLM(LlamaConfig(**_sizes(), tie_word_embeddings=True))


def _qwen3() -> PreTrainedModel:
    return Qwen3ForCausalLM(Qwen3Config(**_sizes(), head_dim=12, tie_word_embeddings=True))


def _mistral() -> PreTrainedModel:
    return MistralForCausalLM(MistralConfig(**_sizes(), sliding_window=8))


def _gemma3() -> PreTrainedModel:
    layers = ["sliding_attention", "full_attention"]
    sizes: dict[str, Any] = _sizes() | {"pad_token_id": 0}
    return Gemma3ForCausalLM(
        Gemma3TextConfig(**sizes, head_dim=12, sliding_window=8, layer_types=layers)
    )


def _lfm2() -> PreTrainedModel:
    sizes = _sizes()
    return Lfm2ForCausalLM(Lfm2Config(**sizes, layer_types=["conv", "full_attention"]))


@dataclass(frozen=True)
class TinyModel:
    """What to build: an architecture with random weights and a chat template."""

    build: Callable[[], PreTrainedModel]
    template: str | None


TINY_MODELS = {
    "llama": TinyModel(_llama, CHATML_TEMPLATE),
    "qwen3": TinyModel(_qwen3, REWRITING_TEMPLATE),
    "qwen3-prefilled": TinyModel(_qwen3, PREFILLED_TEMPLATE),
    "mistral-sliding": TinyModel(_mistral, CHATML_TEMPLATE),
    "gemma3-sliding": TinyModel(_gemma3, CHATML_TEMPLATE),
    "lfm2-conv": TinyModel(_lfm2, CHATML_TEMPLATE),
    "no-template": TinyModel(_llama, None),
}


def write_tiny_model(name: str, folder: Path) -> Path:
    """Write the tiny model `name` (a key of `TINY_MODELS`) to `folder` and return the folder."""
    tiny = TINY_MODELS[name]
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(7)
        model = tiny.build()
    model.save_pretrained(folder)
    make_tokenizer(tiny.template).save_pretrained(folder)
    return folder
