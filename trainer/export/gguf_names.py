"""How GGUF calls the parts of the models that can be written: names, and how rotary weights are laid."""

from dataclasses import dataclass
from typing import Any, Self

import gguf
from torch import Tensor
from transformers import PreTrainedConfig

from trainer.errors import CheckpointError

ARCHITECTURES = {
    "llama": gguf.MODEL_ARCH.LLAMA,
    "mistral": gguf.MODEL_ARCH.LLAMA,
    "qwen2": gguf.MODEL_ARCH.QWEN2,
    "qwen3": gguf.MODEL_ARCH.QWEN3,
}
"""By transformers' model type."""

ELSEWHERE = (
    "Export it merged, and convert that folder with llama.cpp's own convert_hf_to_gguf.py, "
    "which knows more kinds of models."
)


@dataclass(frozen=True, slots=True)
class Names:
    """What a model's tensors are called in a GGUF file.

    Attributes:
        config: The model's config.
        architecture: GGUF's name for its kind.
        table: From names without ending to GGUF's.
    """

    config: PreTrainedConfig
    architecture: gguf.MODEL_ARCH
    table: gguf.TensorNameMap

    @classmethod
    def of(cls, config: PreTrainedConfig) -> Self:
        """Return the names for a model.

        Raises:
            CheckpointError: if its kind cannot be written.
        """
        kind: str = config.model_type
        if kind not in ARCHITECTURES:
            raise CheckpointError(
                f"models of the kind {kind!r} cannot be written as GGUF here",
                where="export",
                remedy=ELSEWHERE,
            )
        architecture = ARCHITECTURES[kind]
        layers: int = config.num_hidden_layers
        return cls(config, architecture, gguf.get_tensor_name_map(architecture, layers))

    @property
    def arch(self) -> str:
        """The architecture as the file says it."""
        return gguf.MODEL_ARCH_NAMES[self.architecture]

    def name(self, parameter: str) -> str:
        """Return GGUF's name for a parameter of the model, its ending kept.

        Raises:
            CheckpointError: if GGUF has none.
        """
        found = self.table.get_name(parameter, try_suffixes=(".weight", ".bias"))
        if found is None:
            raise CheckpointError(
                f"GGUF has no name for {parameter}", where="export", remedy=ELSEWHERE
            )
        return found

    def laid_out(self, parameter: str, tensor: Tensor) -> Tensor:
        """Return a tensor as llama.cpp wants its rows.

        Its Llama turns entry 2d of a head with entry 2d + 1, transformers' entry d with entry
        d + D/2: the rows of query and key projections change places.
        """
        heads = self._heads(parameter)
        if heads is None:
            return tensor
        halves = tensor.reshape(heads, 2, tensor.shape[0] // heads // 2, *tensor.shape[1:])
        return halves.transpose(1, 2).reshape(tensor.shape)

    def laid_back(self, parameter: str, tensor: Tensor) -> Tensor:
        """Undo `laid_out`."""
        heads = self._heads(parameter)
        if heads is None:
            return tensor
        pairs = tensor.reshape(heads, tensor.shape[0] // heads // 2, 2, *tensor.shape[1:])
        return pairs.transpose(1, 2).reshape(tensor.shape)

    def _heads(self, parameter: str) -> int | None:
        if self.architecture is not gguf.MODEL_ARCH.LLAMA:
            return None
        config: Any = self.config
        if ".q_proj." in parameter:
            return config.num_attention_heads
        return config.num_key_value_heads if ".k_proj." in parameter else None
