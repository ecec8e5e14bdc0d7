"""A whole model as one GGUF file, written with llama.cpp's own `gguf` package."""

from pathlib import Path
from typing import Any, BinaryIO

import gguf
import numpy as np
import torch
from torch import Tensor
from transformers import PreTrainedConfig, PreTrainedModel, PreTrainedTokenizerBase

from trainer.errors import CheckpointError
from trainer.export.gguf_names import ELSEWHERE, Names
from trainer.export.gguf_vocabulary import add_vocabulary
from trainer.export.usage import GgufType

TYPES = {
    GgufType.F32: (gguf.GGMLQuantizationType.F32, gguf.LlamaFileType.ALL_F32),
    GgufType.F16: (gguf.GGMLQuantizationType.F16, gguf.LlamaFileType.MOSTLY_F16),
    GgufType.Q8_0: (gguf.GGMLQuantizationType.Q8_0, gguf.LlamaFileType.MOSTLY_Q8_0),
}


def write_gguf_model(
    model: PreTrainedModel,
    tokenizer: PreTrainedTokenizerBase,
    path: Path,
    gguf_type: GgufType,
    *,
    name: str,
) -> None:
    """Write a model with its tokenizer and chat template.

    Args:
        model: Any of the kinds in `gguf_names`.
        tokenizer: Its tokenizer.
        path: The file.
        gguf_type: How its matrices are held.
        name: What the file says the model is called.

    Raises:
        CheckpointError: if the model or its tokenizer is of a kind that cannot be written here.
    """
    names = Names.of(model.config)
    writer = gguf.GGUFWriter(path, names.arch)
    try:
        writer.add_name(name)
        _add_shape(writer, model.config, TYPES[gguf_type][1])
        add_vocabulary(writer, tokenizer, model.config.vocab_size)
        for parameter, tensor in model.state_dict().items():
            if parameter == "lm_head.weight" and model.config.tie_word_embeddings:
                continue  # llama.cpp takes the embeddings where there is no output matrix
            rows = names.laid_out(parameter, tensor)
            add_tensor(writer, names.name(parameter), rows, gguf_type)
        writer.write_header_to_file()
        writer.write_kv_data_to_file()
        writer.write_tensors_to_file()
    finally:
        writer.close()


def add_tensor(writer: gguf.GGUFWriter, name: str, tensor: Tensor, gguf_type: GgufType) -> None:
    """Add a tensor; vectors, and rows that no block fits, stay as exact as they can."""
    array: Any = np.ascontiguousarray(tensor.detach().to(torch.float32).numpy())
    kind = TYPES[gguf_type][0]
    block = gguf.GGML_QUANT_SIZES[kind][0]
    if array.ndim < 2:
        kind = gguf.GGMLQuantizationType.F32
    elif array.shape[-1] % block:
        kind = gguf.GGMLQuantizationType.F16
    rows = gguf.quants.quantize(array, kind).view(_CarefullyWritten)
    writer.add_tensor(name, rows, raw_dtype=kind)


class _CarefullyWritten(np.ndarray):
    """Numbers that go through Python's file: numpy's own way overlooks that a disk is full."""

    def tofile(self, file: BinaryIO, *_: Any) -> None:  # type: ignore[override]
        """Write the numbers."""
        file.write(np.ascontiguousarray(self).data)


def _add_shape(
    writer: gguf.GGUFWriter, config: PreTrainedConfig, file_type: gguf.LlamaFileType
) -> None:
    stated: dict[str, Any] = config.to_dict()
    rope: dict[str, Any] = stated.get("rope_parameters") or {}
    if rope.get("rope_type", "default") != "default":
        raise CheckpointError(
            f"its rotary embedding ({rope['rope_type']}) cannot be written as GGUF here",
            where="export",
            remedy=ELSEWHERE,
        )
    heads: int = stated["num_attention_heads"]
    width: int = stated.get("head_dim") or stated["hidden_size"] // heads
    writer.add_context_length(stated["max_position_embeddings"])
    writer.add_embedding_length(stated["hidden_size"])
    writer.add_block_count(stated["num_hidden_layers"])
    writer.add_feed_forward_length(stated["intermediate_size"])
    writer.add_head_count(heads)
    writer.add_head_count_kv(stated["num_key_value_heads"])
    writer.add_key_length(width)
    writer.add_value_length(width)
    writer.add_rope_dimension_count(width)
    writer.add_rope_freq_base(rope.get("rope_theta", 10_000.0))
    writer.add_layer_norm_rms_eps(stated["rms_norm_eps"])
    writer.add_vocab_size(stated["vocab_size"])
    writer.add_file_type(file_type)
    writer.add_quantization_version(gguf.GGML_QUANT_VERSION)
