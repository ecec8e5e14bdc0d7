"""Attention in blocks against attention under the whole mask, for trees of every shape."""

from collections.abc import Sequence

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor
from torch.nn.functional import scaled_dot_product_attention

from trainer.engine import attention
from trainer.engine.attention import attend, attention_blocks
from trainer.engine.prefix_tree import PrefixTree, build_prefix_tree

HEADS, GROUPS, WIDTH = 4, 2, 8
CPU = torch.device("cpu")

sequences = st.lists(
    st.lists(st.integers(0, 2), min_size=1, max_size=12).map(tuple), min_size=1, max_size=8
)


def chain(length: int, first: int = 0) -> tuple[int, ...]:
    return tuple(range(first, first + length))


def is_visible(tree: PrefixTree) -> Tensor:
    """Whether the node (row) sees the key (column): both lie on one sequence, the key not after."""
    visible = torch.zeros(len(tree), len(tree), dtype=torch.bool)
    for path in tree.nodes:
        for position, node in enumerate(path):
            visible[node, list(path[: position + 1])] = True
    return visible


def inputs(nodes: int, dtype: torch.dtype = torch.float64) -> list[Tensor]:
    generator = torch.Generator().manual_seed(nodes)
    shapes = [(1, heads, nodes, WIDTH) for heads in (HEADS, GROUPS, GROUPS)]
    return [
        torch.randn(shape, generator=generator, dtype=dtype).requires_grad_() for shape in shapes
    ]


def assert_equals_the_whole_mask(tree: PrefixTree) -> None:
    query, key, value = inputs(len(tree))
    blocks = attention_blocks(tree, dtype=torch.float64, device=CPU)
    found = attend(query, key, value, blocks, 0.3)
    expected = scaled_dot_product_attention(
        query,
        key.repeat_interleave(HEADS // GROUPS, 1),
        value.repeat_interleave(HEADS // GROUPS, 1),
        attn_mask=is_visible(tree)[None, None],
        scale=0.3,
    )
    assert torch.allclose(found, expected, atol=1e-9)
    weight = torch.randn(found.shape, generator=torch.Generator().manual_seed(1)).double()
    for ours, theirs in zip(
        torch.autograd.grad(found, (query, key, value), weight),
        torch.autograd.grad(expected, (query, key, value), weight),
        strict=True,
    ):
        assert torch.allclose(ours, theirs, atol=1e-9)


@pytest.fixture(params=[2, 5, attention.BLOCK_NODES])
def block_nodes(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> int:
    monkeypatch.setattr(attention, "BLOCK_NODES", request.param)
    return request.param


@pytest.mark.usefixtures("block_nodes")
@pytest.mark.parametrize(
    "texts",
    [
        [chain(1)],
        [chain(9)],
        [chain(3), chain(9)],
        [chain(6), (*chain(3), 90, 91), (*chain(6), 92)],  # leaves beside a trunk
        [chain(7), chain(8, 50), chain(2, 70), chain(1, 80), chain(1, 81)],  # strangers
        [(1, 2), (1, 3), (1, 4), (1, 2, 5, 6, 7, 8, 9), (7,)],
    ],
)
def test_blocks_give_what_the_whole_mask_gives(texts: Sequence[tuple[int, ...]]) -> None:
    assert_equals_the_whole_mask(build_prefix_tree(texts))


@settings(max_examples=60, deadline=None)
@given(sequences, st.integers(1, 6))
def test_blocks_give_what_the_whole_mask_gives_for_any_tree(
    texts: list[tuple[int, ...]], nodes: int
) -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(attention, "BLOCK_NODES", nodes)
        assert_equals_the_whole_mask(build_prefix_tree(texts))


@pytest.mark.usefixtures("block_nodes")
def test_blocks_cover_the_nodes_in_order() -> None:
    tree = build_prefix_tree([chain(11), (*chain(4), 70, 71), chain(3, 50), chain(2, 60)])
    blocks = attention_blocks(tree, dtype=torch.float32, device=CPU)
    covered = [node for block in blocks for node in range(block.start, block.stop)]
    assert covered == list(range(len(tree)))


def test_what_the_mask_removes_is_hardly_computed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(attention, "BLOCK_NODES", 8)
    trunk = chain(200)
    leaves = [(*trunk[:end], *chain(20, 1000 + end)) for end in range(20, 200, 20)]
    tree = build_prefix_tree([trunk, *leaves, *(chain(5, 5000 + 10 * n) for n in range(40))])
    blocks = attention_blocks(tree, dtype=torch.float32, device=CPU)
    computed = sum(
        (block.stop - block.start) * (block.stop - block.start + 1) // 2
        if block.hidden_QK is None
        else block.hidden_QK.numel()
        for block in blocks
    )
    assert computed <= int(is_visible(tree).sum()) + 8 * len(tree)
    assert computed < len(tree) ** 2 / 4


def test_a_long_conversation_without_branches_is_plain_causal_attention() -> None:
    tree = build_prefix_tree([chain(300), chain(700), chain(400, 2000), chain(3, 9000)])
    blocks = attention_blocks(tree, dtype=torch.float32, device=CPU)
    assert [(block.stop - block.start, block.hidden_QK is None) for block in blocks] == [
        (700, True),
        (400, True),
        (3, False),
    ]


def test_other_devices_than_a_cpu_get_the_same_numbers(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(attention, "BLOCK_NODES", 4)
    tree = build_prefix_tree([chain(9), (*chain(3), 90, 91), chain(6, 50)])
    blocks = attention_blocks(tree, dtype=torch.float32, device=CPU)
    query, key, value = (tensor.detach().float() for tensor in inputs(len(tree)))
    expected = attend(query, key, value, blocks, 0.3)
    found = attention.attend_by_autograd(query, key, value, blocks, 0.3)
    assert torch.allclose(found, expected, atol=1e-5)
