"""The count of operations is torch's own for a plain pass, and a hand's for a small tree."""

from pathlib import Path

import pytest
import torch
from torch.utils.flop_counter import FlopCounterMode

from tests.bench.baselines import full_logits, load_plain
from tests.bench.flops import AdaptedLinear, ModelShape, PassWork, pass_flops
from tests.bench.gemm import gemm_products
from tests.bench.workloads import build_data
from tests.conftest import TinyModels
from tests.models import VOCABULARY
from tests.subject import load_subject
from trainer.engine.types import Datum, ModelInput


def test_a_plain_pass_costs_what_torch_counts(tiny_models: TinyModels, tmp_path: Path) -> None:
    folder = tiny_models("llama")
    load_subject(folder, tmp_path, rank=4)
    # Eager attention multiplies all pairs, visible or not, and keeps its probabilities.
    model = load_plain(folder, tmp_path / "adapter", attn_implementation="eager")
    (datum,) = build_data([[(5, 7)]], vocabulary=VOCABULARY)
    with FlopCounterMode(display=False) as counter:
        full_logits(model, [datum])
    tokens = datum.model_input.length
    work = PassWork(tokens, predicting=tokens, pairs=tokens**2, predicting_pairs=tokens**2)
    assert pass_flops(ModelShape.of(model), work) == counter.get_total_flops()


def test_a_shared_prefix_is_counted_once() -> None:
    data = [_datum([1, 2, 3], [0, 1, 1]), _datum([1, 2, 4, 5], [0, 0, 0, 1])]
    work = PassWork.distinct(data)
    # 1 sees itself, 2 two tokens, 3 and 4 three each, 5 four; 2, 3 and 5 predict.
    assert work == PassWork(tokens=5, predicting=3, pairs=13, predicting_pairs=2 + 3 + 4)


def test_a_conversation_of_many_turns_costs_no_more_tokens_than_its_last_turn() -> None:
    data = build_data([[(6, 12)] * 5])
    work = PassWork.distinct(data)
    assert work.tokens == data[-1].model_input.length == 5 * 18 - 1
    assert work.predicting == 5 * 12
    assert sum(datum.model_input.length for datum in data) == 18 * 15 - 5


def test_each_part_of_a_pass_is_counted_as_stated() -> None:
    query, value = AdaptedLinear("q_proj", 10, 6, 2), AdaptedLinear("v_proj", 10, 3, 2)
    other = AdaptedLinear("o_proj", 6, 10, 2)
    shape = ModelShape(
        blocks=2, linears=(query, value, other), attention_width=6, hidden=10, vocabulary=100
    )
    work = PassWork(tokens=8, predicting=4, pairs=36, predicting_pairs=20)
    # Frozen weights, A and B forward; A and B's weight gradients; then the input gradients.
    query_first = 2 * 8 * ((60 + 20 + 12) + (20 + 12) + 12)
    value_first = 2 * 8 * ((30 + 20 + 6) + (20 + 6) + 6)
    other_first = 2 * 8 * 3 * 32 + 2 * 8 * 2 * 60
    query_last = 2 * 4 * 3 * 32 + 2 * 4 * 2 * 60
    value_last = 2 * 8 * 3 * 26 + 2 * 8 * 2 * 30
    other_last = 2 * 4 * 3 * 32 + 2 * 4 * 2 * 60
    linears = query_first + value_first + other_first + query_last + value_last + other_last
    attention = 6 * (2 * 36 * 6) + 6 * (2 * 20 * 6)
    head = 2 * (2 * 4 * 10 * 100)
    assert pass_flops(shape, work) == linears + attention + head


def test_a_model_s_sizes_are_read_off_its_layers(tiny_llama: Path, tmp_path: Path) -> None:
    load_subject(tiny_llama, tmp_path, rank=4)
    shape = ModelShape.of(load_plain(tiny_llama, tmp_path / "adapter"))
    assert (shape.blocks, shape.attention_width, shape.hidden) == (2, 48, 48)
    assert shape.vocabulary == VOCABULARY
    assert set(shape.linears) == {
        AdaptedLinear("q_proj", 48, 48, 4),
        AdaptedLinear("k_proj", 48, 24, 4),
        AdaptedLinear("v_proj", 48, 24, 4),
        AdaptedLinear("o_proj", 48, 48, 4),
        AdaptedLinear("gate_proj", 48, 96, 4),
        AdaptedLinear("up_proj", 48, 96, 4),
        AdaptedLinear("down_proj", 96, 48, 4),
    }


@pytest.mark.parametrize("tokens", [3, 300])
def test_the_rate_of_matrix_products_is_that_of_the_shapes_given(tokens: int) -> None:
    linear = AdaptedLinear("o_proj", 6, 10, 2)
    shape = ModelShape(blocks=1, linears=(linear,), attention_width=6, hidden=10, vocabulary=9)
    products = gemm_products(shape, tokens)
    with FlopCounterMode(display=False) as counter:
        for left, right, out in products:
            torch.mm(left, right, out=out)
    assert counter.get_total_flops() == 2 * (2 * tokens * 6 * 10)


def _datum(tokens: list[int], weights: list[float]) -> Datum:
    inputs = {"target_tokens": [0] * len(tokens), "weights": weights}
    return Datum(ModelInput.from_ints(tokens), inputs)  # pyright: ignore[reportArgumentType] # coerced
