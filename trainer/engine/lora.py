"""A linear layer with its low-rank update in as few passes over memory as it takes.

peft computes base(x) + B(A(x)) · s layer by layer, and autograd keeps and adds up what lies in
between: on a CPU those passes over wide activations cost a quarter of a training step. Here the
update is added in place by the matrix product itself, forward and backward, and only the layer's
input and its low-rank image are kept.
"""

from typing import Any

import torch
from peft.tuners.lora.layer import Linear as PeftLinear
from torch import Tensor


class LoraLinear(PeftLinear):
    """peft's LoRA layer; the adapter that is trained takes the short way, all else peft's own."""

    def forward(self, x: Tensor, *args: Any, **kwargs: Any) -> Tensor:
        """Return base(x) + s · B(A(x)) for x of shape (..., in), as shape (..., out)."""
        if args or kwargs or self.disable_adapters or self.merged or len(self.active_adapters) != 1:
            return super().forward(x, *args, **kwargs)
        name = self.active_adapters[0]
        down, up = self.lora_A[name].weight, self.lora_B[name].weight
        base = self.get_base_layer()
        if not x.dtype == base.weight.dtype == down.dtype:
            return super().forward(x)
        return _LoraLinear.apply(x, base.weight, base.bias, down, up, self.scaling[name])  # pyright: ignore[reportReturnType]


class _LoraLinear(torch.autograd.Function):
    """y = x Wᵀ + b + s · (x Aᵀ) Bᵀ with W (out, in) and b frozen, A (r, in) and B (out, r) trained.

    Its gradients (Hu et al. 2021, arXiv 2106.09685, differentiated by hand), g being that of y:
    x: g W + s · (g B) A;  A: s · (g B)ᵀ x;  B: s · gᵀ (x Aᵀ).
    """

    @staticmethod
    def forward(
        ctx: Any,
        x: Tensor,
        weight_OI: Tensor,
        bias_O: Tensor | None,
        down_RI: Tensor,
        up_OR: Tensor,
        scale: float,
    ) -> Tensor:
        x_NI = x.reshape(-1, x.shape[-1])
        low_NR = x_NI @ down_RI.T
        # Written in its final shape: some models change what a layer returns in place, which
        # autograd forbids for a view.
        y = x.new_empty(*x.shape[:-1], len(weight_OI))
        y_NO = y.view(-1, len(weight_OI))
        if bias_O is None:
            torch.mm(x_NI, weight_OI.T, out=y_NO)
        else:
            torch.addmm(bias_O, x_NI, weight_OI.T, out=y_NO)
        y_NO.addmm_(low_NR, up_OR.T, alpha=scale)
        ctx.save_for_backward(x_NI, low_NR, weight_OI, down_RI, up_OR)
        ctx.scale, ctx.shape = scale, x.shape
        return y

    @staticmethod
    def backward(ctx: Any, grad: Tensor) -> tuple[Tensor | None, ...]:  # pyright: ignore[reportIncompatibleMethodOverride]
        x_NI, low_NR, weight_OI, down_RI, up_OR = ctx.saved_tensors
        grad_NO = grad.reshape(-1, grad.shape[-1])
        grad_low_NR = (grad_NO @ up_OR).mul_(ctx.scale)
        grad_x = None
        if ctx.needs_input_grad[0]:
            grad_x_NI = grad_NO @ weight_OI
            grad_x = grad_x_NI.addmm_(grad_low_NR, down_RI).view(ctx.shape)
        grad_down = grad_low_NR.T @ x_NI
        grad_up = (low_NR.T @ grad_NO).T.mul(ctx.scale)  # this way round it is twice as fast
        return grad_x, None, None, grad_down, grad_up, None
