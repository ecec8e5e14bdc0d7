"""The least arithmetic that an exact pass needs, counted by hand: the numerator of the bound.

Counted are matrix products, two operations a multiply-add, and nothing is computed twice:

- each linear layer forward; its input gradient, also through frozen weights; the weight gradients
  of LoRA's A and B. The first block's q, k and v have no input gradient, since embeddings are
  frozen. In the last block only keys and values are needed of every token, all else of those
  tokens alone from which a response token is predicted;
- attention over visible pairs of tokens: two products forward, four backward (dV, dP, dQ, dK; the
  probabilities are not computed again);
- the output head forward and its input gradient, for predicting tokens alone.

Normalisation, softmax, rotation, residuals and the loss count as nothing.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Self, cast

from peft import PeftModel
from peft.tuners.lora import LoraLayer
from torch import nn

from trainer.engine.types import Datum

QUERY, KEYS_AND_VALUES = "q_proj", ("k_proj", "v_proj")


@dataclass(frozen=True, slots=True)
class AdaptedLinear:
    """A frozen linear layer with LoRA beside it.

    Attributes:
        name: Its name inside the block.
        inputs: Width of what goes in.
        outputs: Width of what comes out.
        rank: Rank of the update.
    """

    name: str
    inputs: int
    outputs: int
    rank: int

    def flops(self, rows: int, *, has_input_gradient: bool) -> int:
        """Return the operations of forward and backward over that many tokens."""
        frozen, a, b = self.inputs * self.outputs, self.inputs * self.rank, self.rank * self.outputs
        forward = frozen + a + b
        weight_gradients = a + b
        input_gradients = b + (frozen + a if has_input_gradient else 0)
        return 2 * rows * (forward + weight_gradients + input_gradients)


@dataclass(frozen=True, slots=True)
class ModelShape:
    """The sizes of a model of the Llama family under an adapter on all its block linears.

    Attributes:
        blocks: How many there are.
        linears: The linear layers of each.
        attention_width: Heads × width of a head.
        hidden: Width of the hidden states.
        vocabulary: Width of the logits.
    """

    blocks: int
    linears: tuple[AdaptedLinear, ...]
    attention_width: int
    hidden: int
    vocabulary: int

    @classmethod
    def of(cls, model: PeftModel) -> Self:
        """Read the sizes off a model."""
        config: Any = model.get_base_model().config
        linears = tuple(
            _linear(path.rpartition(".")[2], module)
            for path, module in model.named_modules()
            if isinstance(module, LoraLayer) and ".layers.0." in path
        )
        return cls(
            blocks=config.num_hidden_layers,
            linears=linears,
            attention_width=config.num_attention_heads * config.head_dim,
            hidden=config.hidden_size,
            vocabulary=config.vocab_size,
        )


@dataclass(frozen=True, slots=True)
class PassWork:
    """What a pass has to compute, whatever the model.

    Attributes:
        tokens: Tokens that go through the model.
        predicting: Those from which a trained token is predicted.
        pairs: Visible (query, key) pairs.
        predicting_pairs: Those whose query predicts.
    """

    tokens: int
    predicting: int
    pairs: int
    predicting_pairs: int

    @classmethod
    def distinct(cls, data: Sequence[Datum]) -> Self:
        """Count each distinct prefix of the datums once; it sees itself and what precedes it."""
        node_of: dict[tuple[int, int], int] = {}
        depth: list[int] = []
        predicting: set[int] = set()
        for datum in data:
            node = -1
            weights = datum.loss_fn_inputs["weights"].tolist()
            for position, token in enumerate(datum.model_input.tokens):
                node = node_of.setdefault((node, token), len(depth))
                if node == len(depth):
                    depth.append(position)
                if weights[position]:
                    predicting.add(node)
        return cls(
            tokens=len(depth),
            predicting=len(predicting),
            pairs=sum(d + 1 for d in depth),
            predicting_pairs=sum(depth[node] + 1 for node in predicting),
        )


def pass_flops(shape: ModelShape, work: PassWork) -> int:
    """Return the operations of one forward and backward pass."""
    total = 4 * work.predicting * shape.hidden * shape.vocabulary
    for block in range(shape.blocks):
        is_first, is_last = block == 0, block == shape.blocks - 1
        for linear in shape.linears:
            reads_hidden = linear.name == QUERY or linear.name in KEYS_AND_VALUES
            needs_all = not is_last or linear.name in KEYS_AND_VALUES
            total += linear.flops(
                work.tokens if needs_all else work.predicting,
                has_input_gradient=not (is_first and reads_hidden),
            )
        pairs = work.predicting_pairs if is_last else work.pairs
        total += (2 + 4) * 2 * pairs * shape.attention_width
    return total


def _linear(name: str, layer: LoraLayer) -> AdaptedLinear:
    adapter = next(iter(layer.r))
    base = cast(nn.Linear, layer.base_layer)
    return AdaptedLinear(name, base.in_features, base.out_features, layer.r[adapter])
