"""The output head over a real vocabulary: log-probabilities and derivative, held against float64."""

import pytest
import torch
from torch import nn

from trainer.engine.head import Head

VOCABULARY, WIDTH = 49_152, 64


@pytest.mark.parametrize("rows", [1, 2, 3, 4, 600])
def test_few_rows_are_as_exact_as_many(rows: int) -> None:
    draw = torch.Generator().manual_seed(0)
    linear = nn.Linear(WIDTH, VOCABULARY, bias=False).requires_grad_(requires_grad=False)
    linear.weight.normal_(std=0.1, generator=draw).add_(0.5)  # a mean that the derivative lacks
    targets_P = torch.randint(VOCABULARY, (rows,), generator=draw)
    hidden_PH = torch.randn(rows, WIDTH, generator=draw).mul_(0.3).requires_grad_()
    exact_PH = hidden_PH.detach().double().requires_grad_()

    found_P = Head(linear).logprobs(hidden_PH, targets_P)
    found_P.sum().backward()
    logits_PV = exact_PH @ linear.weight.double().T
    expected_P = logits_PV.log_softmax(dim=1).gather(1, targets_P[:, None])[:, 0]
    expected_P.sum().backward()

    assert hidden_PH.grad is not None and exact_PH.grad is not None
    assert float((found_P.double() - expected_P).abs().max().detach()) < 1e-5
    difference = (hidden_PH.grad.double() - exact_PH.grad).norm() / exact_PH.grad.norm()
    assert float(difference) < 8e-6
