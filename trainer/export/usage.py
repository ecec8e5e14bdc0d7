"""The forms that a trained model can take, and ready commands for the tools that read them; no torch."""

from dataclasses import dataclass
from enum import StrEnum


class Form(StrEnum):
    """What an export is."""

    ADAPTER = "adapter"
    MERGED = "merged"
    GGUF = "gguf"
    GGUF_ADAPTER = "gguf-adapter"


class GgufType(StrEnum):
    """How a GGUF file holds its matrices; the rest stays fp32."""

    F32 = "f32"
    F16 = "f16"
    Q8_0 = "q8_0"


MODEL_FILE, ADAPTER_FILE = "model.gguf", "adapter.gguf"


@dataclass(frozen=True, slots=True)
class Way:
    """One way to use an export.

    Attributes:
        title: The tool.
        language: What the text is written in, for highlighting.
        text: To be copied.
    """

    title: str
    language: str
    text: str


def ways(form: Form, *, folder: str, base: str, name: str = "everyturn") -> list[Way]:
    """Return ready commands for an export.

    Args:
        form: What it is.
        folder: Where it lies.
        base: The base model's hub id, or its title where it has none.
        name: What the model shall be called where a tool wants a name.
    """
    match form:
        case Form.ADAPTER:
            return [
                Way("transformers and peft", "python", _PEFT.format(base=base, folder=folder)),
                Way(
                    "vLLM",
                    "sh",
                    f"vllm serve {base} --enable-lora --lora-modules {name}={folder}",
                ),
            ]
        case Form.MERGED:
            return [
                Way("transformers", "python", _TRANSFORMERS.format(folder=folder)),
                Way("vLLM", "sh", f"vllm serve {folder} --served-model-name {name}"),
            ]
        case Form.GGUF:
            return [
                Way("llama.cpp", "sh", f"llama-server -m {folder}/{MODEL_FILE} --jinja"),
                Way(
                    "Ollama",
                    "sh",
                    f"ollama create {name} -f {folder}/Modelfile && ollama run {name}",
                ),
            ]
        case Form.GGUF_ADAPTER:
            return [
                Way(
                    "llama.cpp (with the base model as GGUF)",
                    "sh",
                    f"llama-server -m base.gguf --lora {folder}/{ADAPTER_FILE} --jinja",
                ),
                Way(
                    "Ollama (put the base model as base.gguf beside the Modelfile)",
                    "sh",
                    f"ollama create {name} -f {folder}/Modelfile && ollama run {name}",
                ),
            ]


_PEFT = """\
from peft import PeftModel
from transformers import AutoModelForCausalLM, AutoTokenizer

base = AutoModelForCausalLM.from_pretrained("{base}")
model = PeftModel.from_pretrained(base, "{folder}")
tokenizer = AutoTokenizer.from_pretrained("{folder}")"""

_TRANSFORMERS = """\
from transformers import AutoModelForCausalLM, AutoTokenizer

model = AutoModelForCausalLM.from_pretrained("{folder}")
tokenizer = AutoTokenizer.from_pretrained("{folder}")"""
