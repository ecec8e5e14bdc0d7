"""An adapter as a GGUF file, for llama.cpp's `--lora`, and the way back to compare it."""

import json
from pathlib import Path

import gguf
import torch
from gguf.quants import dequantize
from safetensors.torch import save_file
from torch import Tensor
from transformers import PreTrainedConfig

from trainer.adapter_config import CONFIG_FILE, WEIGHTS_FILE
from trainer.engine.adapter import read_adapter_shape, read_adapter_tensors
from trainer.export.gguf_model import add_tensor
from trainer.export.gguf_names import Names
from trainer.export.usage import GgufType

PREFIX = "base_model.model."
ENDINGS = {".lora_A.weight": ".lora_a", ".lora_B.weight": ".lora_b"}


def write_gguf_adapter(
    config: PreTrainedConfig, adapter: Path, path: Path, gguf_type: GgufType
) -> None:
    """Write the adapter of a PEFT folder.

    Args:
        config: The base model's config.
        adapter: PEFT's folder.
        path: The file.
        gguf_type: How its matrices are held.

    Raises:
        CheckpointError: if the base model is of a kind that cannot be written here.
    """
    names, shape = Names.of(config), read_adapter_shape(adapter)
    writer = gguf.GGUFWriter(path, names.arch)
    try:
        writer.add_type(gguf.GGUFType.ADAPTER)
        writer.add_string(gguf.Keys.Adapter.TYPE, "lora")
        writer.add_float32(gguf.Keys.Adapter.LORA_ALPHA, shape.alpha)
        for key, tensor in read_adapter_tensors(adapter).items():
            layer, ending = _layer_and_ending(key)
            # Only B has the rows of the layer's output, which rotary embeddings reorder.
            rows = names.laid_out(layer, tensor) if ending == ".lora_b" else tensor
            add_tensor(writer, names.name(layer) + ending, rows, gguf_type)
        writer.write_header_to_file()
        writer.write_kv_data_to_file()
        writer.write_tensors_to_file()
    finally:
        writer.close()


def read_gguf_adapter(config: PreTrainedConfig, path: Path, *, like: Path, into: Path) -> None:
    """Write what a GGUF adapter holds as a PEFT folder again.

    Args:
        config: The base model's config.
        path: The GGUF file.
        like: The PEFT folder that it was written from; config and names are taken from there.
        into: The folder to write.
    """
    names = Names.of(config)
    reader = gguf.GGUFReader(path)
    written = {tensor.name: tensor for tensor in reader.tensors}
    tensors: dict[str, Tensor] = {}
    for key in read_adapter_tensors(like):
        layer, ending = _layer_and_ending(key)
        part = written.pop(names.name(layer) + ending)
        rows = torch.from_numpy(dequantize(part.data, part.tensor_type).copy()).float()
        tensors[key] = names.laid_back(layer, rows) if ending == ".lora_b" else rows
        tensors[key] = tensors[key].contiguous()
    into.mkdir()
    peft_config = json.loads((like / CONFIG_FILE).read_text(encoding="utf-8"))
    alpha = reader.fields[gguf.Keys.Adapter.LORA_ALPHA].contents()
    text = json.dumps(peft_config | {"lora_alpha": alpha})
    (into / CONFIG_FILE).write_text(text, encoding="utf-8")
    save_file(tensors, into / WEIGHTS_FILE, metadata={"format": "pt"})


def _layer_and_ending(key: str) -> tuple[str, str]:
    """Return the layer's weight as the base model names it, and GGUF's ending for the part."""
    ending = next(ending for ending in ENDINGS if key.endswith(ending))
    return key.removeprefix(PREFIX).removesuffix(ending) + ".weight", ENDINGS[ending]
