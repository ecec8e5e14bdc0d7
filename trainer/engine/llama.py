"""The forward pass of the Llama family on a CPU, written for training an adapter.

transformers' own pass is right for every model, and leaves a CPU waiting for memory: each
elementwise step of norm, rotary embedding and gate writes a full activation and keeps it for the
backward pass. Here each of the three is one function with its derivative by hand. The modules, and
with them weights and adapter, stay those of the loaded model; a trial when a model is loaded holds
this pass against the model's own.
"""

from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager, nullcontext
from functools import cache, partial
from typing import Any, cast

import torch
from torch import Tensor
from torch.autograd.graph import saved_tensors_hooks
from torch.nn.functional import silu
from torch.utils.checkpoint import checkpoint
from transformers import (
    LlamaForCausalLM,
    MistralForCausalLM,
    PreTrainedModel,
    Qwen2ForCausalLM,
    Qwen3ForCausalLM,
)
from transformers.models.qwen3.modeling_qwen3 import Qwen3Attention

from trainer.engine.activations import Saving
from trainer.engine.attention import Block, attend

FAMILY = (LlamaForCausalLM, MistralForCausalLM, Qwen2ForCausalLM, Qwen3ForCausalLM)


def is_of_the_family(model: PreTrainedModel) -> bool:
    """Return whether `hidden_states` knows this model and may expect to be faster."""
    return (
        isinstance(model, FAMILY)
        and model.config.hidden_act == "silu"
        and model.device.type == "cpu"
        and model.dtype == torch.float32
    )


def hidden_states(
    model: PreTrainedModel,
    ids_1N: Tensor,
    depth_1N: Tensor,
    blocks: Sequence[Block],
    rows_R: Tensor,
    saving: Saving,
) -> Tensor:
    """Return the hidden states that enter the output head for some of the nodes, shape (R, H).

    Args:
        model: One of `FAMILY`, fp32, on a CPU.
        ids_1N: int64, the token of each node.
        depth_1N: int64, the position of each node in its sequences.
        blocks: The attention of the tree.
        rows_R: int64, the nodes that are asked for; of the others the last layer computes keys
            and values only.
        saving: What is kept for the backward pass, and what is computed again.
    """
    body: Any = model.base_model
    x_NH: Tensor = body.embed_tokens(ids_1N)[0]
    cos_1ND, sin_1ND = body.rotary_emb(x_NH[None], position_ids=depth_1N)
    rotation = (cos_1ND[0], sin_1ND[0])
    last = len(body.layers) - 1
    keeping = _kept_as_recipe if saving.recipes else _kept_as_it_is
    for number, layer in enumerate(body.layers):
        rows = rows_R if number == last else None
        if number < saving.recomputed_layers and torch.is_grad_enabled():
            x_NH = cast(
                Tensor,
                checkpoint(
                    _layer, layer, x_NH, rotation, blocks, rows, _kept_as_it_is, use_reentrant=False
                ),
            )
        else:
            x_NH = _layer(layer, x_NH, rotation, blocks, rows, keeping)
    return _norm(body.norm, x_NH)


Keeping = Callable[[Tensor, Callable[[], Tensor]], AbstractContextManager[object]]
"""How a tensor is kept for the backward pass: given it, and how to compute it again."""


def _kept_as_it_is(_: Tensor, __: Callable[[], Tensor]) -> AbstractContextManager[object]:
    return nullcontext()


def _kept_as_recipe(tensor: Tensor, again: Callable[[], Tensor]) -> AbstractContextManager[object]:
    """Let what happens in a block keep `again` in the place of a tensor it would save.

    Normed inputs and gated activations take a third of a layer's memory and next to no time. Those
    who need the same tensor again share it, until the last of them is through.
    """
    storage = tensor.untyped_storage().data_ptr()
    recipe = cache(again)

    def keep(saved: Tensor) -> Tensor | Callable[[], Tensor]:
        return recipe if saved.untyped_storage().data_ptr() == storage else saved

    def restore(kept: Tensor | Callable[[], Tensor]) -> Tensor:
        return kept if isinstance(kept, Tensor) else kept()

    return saved_tensors_hooks(keep, restore)


def _layer(
    layer: Any,
    x_NH: Tensor,
    rotation: tuple[Tensor, Tensor],
    blocks: Sequence[Block],
    rows_R: Tensor | None,
    keeping: Keeping,
) -> Tensor:
    normed_NH = _norm(layer.input_layernorm, x_NH)
    with keeping(normed_NH, partial(_norm_again, layer.input_layernorm, x_NH)):
        heads = _project_heads(layer.self_attn, normed_NH)
    answer_NH = _attention(layer.self_attn, *heads, rotation, blocks)
    if rows_R is not None:
        x_NH, answer_NH = x_NH[rows_R], answer_NH[rows_R]
    x_NH = layer.self_attn.o_proj(answer_NH).add_(x_NH)

    mlp = layer.mlp
    normed_NH = _norm(layer.post_attention_layernorm, x_NH)
    with keeping(normed_NH, partial(_norm_again, layer.post_attention_layernorm, x_NH)):
        gate_NI, up_NI = mlp.gate_proj(normed_NH), mlp.up_proj(normed_NH)
    gated_NI = cast(Tensor, _GatedSilu.apply(gate_NI, up_NI))
    with keeping(gated_NI, partial(_gated_again, gate_NI, up_NI)):
        return mlp.down_proj(gated_NI).add_(x_NH)


def _project_heads(attention: Any, x_NH: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    """Return queries (N, H, D), keys and values (N, G, D), not rotated yet."""
    shape = (len(x_NH), -1, attention.head_dim)
    return (
        attention.q_proj(x_NH).view(shape),
        attention.k_proj(x_NH).view(shape),
        attention.v_proj(x_NH).view(shape),
    )


def _attention(
    attention: Any,
    query_NHD: Tensor,
    key_NGD: Tensor,
    value_NGD: Tensor,
    rotation: tuple[Tensor, Tensor],
    blocks: Sequence[Block],
) -> Tensor:
    if isinstance(attention, Qwen3Attention):
        query_NHD = _norm(attention.q_norm, query_NHD)
        key_NGD = _norm(attention.k_norm, key_NGD)
    answer_1HND = attend(
        _rotate(query_NHD, rotation)[None],
        _rotate(key_NGD, rotation)[None],
        value_NGD.transpose(0, 1)[None],
        blocks,
        attention.scaling,
    )
    return answer_1HND[0].transpose(0, 1).flatten(1)


def _norm(norm: Any, x: Tensor) -> Tensor:
    return cast(Tensor, _RootMeanSquareNorm.apply(x, norm.weight, norm.variance_epsilon))


@torch.no_grad()
def _norm_again(norm: Any, x: Tensor) -> Tensor:
    return _norm(norm, x)


@torch.no_grad()
def _gated_again(gate_NI: Tensor, up_NI: Tensor) -> Tensor:
    return silu(gate_NI).mul_(up_NI)


def _rotate(x_NHD: Tensor, rotation: tuple[Tensor, Tensor]) -> Tensor:
    return cast(Tensor, _Rotary.apply(x_NHD, *rotation))


def _inverse_root_mean_square(x: Tensor, epsilon: float) -> Tensor:
    mean = torch.linalg.vector_norm(x, dim=-1, keepdim=True).square_().div_(x.shape[-1])
    return mean.add_(epsilon).rsqrt_()


class _RootMeanSquareNorm(torch.autograd.Function):
    """y = w · x / rms(x) over the last axis (Zhang & Sennrich 2019, arXiv 1910.07467); w frozen.

    With r = 1 / rms(x), h = w · g and n entries: dx = r · h − x · r³ · (h·x) / n.
    """

    @staticmethod
    def forward(ctx: Any, x: Tensor, weight: Tensor, epsilon: float) -> Tensor:
        inverse = _inverse_root_mean_square(x, epsilon)
        ctx.save_for_backward(x, inverse, weight)
        return (x * inverse).mul_(weight)

    @staticmethod
    def backward(ctx: Any, grad: Tensor) -> tuple[Tensor | None, ...]:  # pyright: ignore[reportIncompatibleMethodOverride]
        x, inverse, weight = ctx.saved_tensors
        scaled = grad * weight
        share = torch.linalg.vecdot(scaled, x)[..., None]
        share = share.mul_(inverse.pow(3)).div_(-x.shape[-1])
        return scaled.mul_(inverse).addcmul_(x, share), None, None


class _Rotary(torch.autograd.Function):
    """Rotary positions (Su et al. 2021, arXiv 2104.09864), from (N, H, D) to heads first (H, N, D).

    Entry d of a head is turned with entry d + D/2 by the angle whose cos and sin are given. Turning
    back is the derivative.
    """

    @staticmethod
    def forward(ctx: Any, x_NHD: Tensor, cos_ND: Tensor, sin_ND: Tensor) -> Tensor:
        ctx.save_for_backward(cos_ND, sin_ND)
        nodes, heads, width = x_NHD.shape
        turned_HND = x_NHD.new_empty(heads, nodes, width)
        _turn(x_NHD.transpose(0, 1), cos_ND, sin_ND, into=turned_HND)
        return turned_HND

    @staticmethod
    def backward(ctx: Any, grad: Tensor) -> tuple[Tensor | None, ...]:  # pyright: ignore[reportIncompatibleMethodOverride]
        cos_ND, sin_ND = ctx.saved_tensors
        heads, nodes, width = grad.shape
        turned_NHD = grad.new_empty(nodes, heads, width)
        _turn(grad, cos_ND, -sin_ND, into=turned_NHD.transpose(0, 1))
        return turned_NHD, None, None


def _turn(x_HND: Tensor, cos_ND: Tensor, sin_ND: Tensor, *, into: Tensor) -> None:
    half = x_HND.shape[-1] // 2
    left, right = x_HND[..., :half], x_HND[..., half:]
    cos, sin = cos_ND[:, :half], sin_ND[:, :half]
    torch.mul(left, cos, out=into[..., :half]).addcmul_(right, sin, value=-1)
    torch.mul(right, cos, out=into[..., half:]).addcmul_(left, sin)


class _GatedSilu(torch.autograd.Function):
    """silu(gate) · up (SwiGLU, Shazeer 2020, arXiv 2002.05202), which keeps only its inputs."""

    @staticmethod
    def forward(ctx: Any, gate_NI: Tensor, up_NI: Tensor) -> Tensor:
        ctx.save_for_backward(gate_NI, up_NI)
        return silu(gate_NI).mul_(up_NI)

    @staticmethod
    def backward(ctx: Any, grad: Tensor) -> tuple[Tensor, Tensor]:  # pyright: ignore[reportIncompatibleMethodOverride]
        gate_NI, up_NI = ctx.saved_tensors
        grad_up = silu(gate_NI).mul_(grad)
        grad_gate = grad * up_NI
        torch.ops.aten.silu_backward.grad_input(grad_gate, gate_NI, grad_input=grad_gate)
        return grad_gate, grad_up
