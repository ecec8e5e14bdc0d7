"""How fast this machine multiplies matrices of the model's own shapes, right now."""

import time

import torch
from torch import Tensor

from tests.bench.flops import ModelShape

LEAST_S = 0.3
"""Shorter measurements are repeated until this much time has been spent."""


def gemm_rate(shape: ModelShape, tokens: int) -> float:
    """Return operations per second of one block's frozen matrix products over `tokens` tokens.

    Each shape weighs what it costs, so that this is the rate of the whole block.
    """
    products = gemm_products(shape, tokens)
    operations = sum(2 * left.numel() * right.shape[1] for left, right, _ in products)
    for left, right, out in products:
        torch.mm(left, right, out=out)
    repeats, start = 0, time.perf_counter()
    while True:
        for left, right, out in products:
            torch.mm(left, right, out=out)
        repeats += 1
        spent_s = time.perf_counter() - start
        if spent_s >= LEAST_S:
            return repeats * operations / spent_s


def gemm_products(shape: ModelShape, tokens: int) -> list[tuple[Tensor, Tensor, Tensor]]:
    """Return X, Wᵀ and Y, then dY, W and dX of each linear layer, in memory that is there already."""
    products = []
    for linear in shape.linears:
        weight = torch.randn(linear.outputs, linear.inputs)
        inputs, outputs = torch.randn(tokens, linear.inputs), torch.randn(tokens, linear.outputs)
        products.append((inputs, weight.t(), torch.empty_like(outputs)))
        products.append((outputs, weight, torch.empty_like(inputs)))
    return products
