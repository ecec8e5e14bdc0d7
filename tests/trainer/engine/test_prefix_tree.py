"""The prefix tree as a structure: positions, ancestors and packing against the naive way."""

import itertools

from hypothesis import given
from hypothesis import strategies as st

from trainer.engine.prefix_tree import build_prefix_tree, count_distinct, pack

SEQUENCES = st.lists(st.lists(st.integers(0, 2), min_size=1, max_size=7), min_size=1, max_size=8)
"""Few tokens and short sequences, so that duplicates, branches and extensions abound."""


@given(SEQUENCES)
def test_every_distinct_prefix_is_one_node(sequences):
    prefixes = {tuple(s[: n + 1]) for s in sequences for n in range(len(s))}
    assert len(build_prefix_tree(sequences)) == len(prefixes) == count_distinct(sequences)


@given(SEQUENCES)
def test_a_node_carries_its_token_and_position(sequences):
    tree = build_prefix_tree(sequences)
    for sequence, path in zip(sequences, tree.nodes, strict=True):
        assert [tree.tokens[node] for node in path] == sequence
        assert [tree.depth[node] for node in path] == list(range(len(sequence)))


@given(SEQUENCES)
def test_a_position_sees_exactly_the_positions_before_it_in_its_own_sequence(sequences):
    tree = build_prefix_tree(sequences)
    for path in tree.nodes:
        for length, node in enumerate(path, start=1):
            seen = [j for j in range(len(tree)) if j <= node < tree.end[j]]
            assert seen == list(path[:length])


@given(SEQUENCES)
def test_a_chain_is_a_tree_that_nowhere_branches(sequences):
    longest = max(sequences, key=len)
    is_chain = all(sequence == longest[: len(sequence)] for sequence in sequences)
    assert build_prefix_tree(sequences).is_chain == is_chain


@given(SEQUENCES, st.integers(1, 20))
def test_packs_cover_all_sequences_in_order_and_keep_the_budget(sequences, budget):
    packs = pack(sequences, budget)
    assert list(itertools.chain(*packs)) == list(range(len(sequences)))
    for run in packs:
        assert len(run) == 1 or count_distinct([sequences[i] for i in run]) <= budget


@given(SEQUENCES, st.integers(1, 20))
def test_a_pack_ends_only_where_the_next_sequence_does_not_fit(sequences, budget):
    packs = pack(sequences, budget)
    for run, following in itertools.pairwise(packs):
        assert count_distinct([sequences[i] for i in [*run, following.start]]) > budget


def test_a_conversation_and_a_rewritten_reply_share_the_trunk():
    system, user, reply, rewritten = [1, 2], [3], [4, 5], [9, 4, 5]
    turns = [system + user + rewritten, system + user + reply + user + reply]
    tree = build_prefix_tree([*turns, turns[0], [1, 2, 7]])
    assert tree.tokens == (1, 2, 3, 9, 4, 5, 4, 5, 3, 4, 5, 7)
    assert tree.depth == (0, 1, 2, 3, 4, 5, 3, 4, 5, 6, 7, 2)
    assert tree.end == (12, 12, 11, 6, 6, 6, 11, 11, 11, 11, 11, 12)
    assert tree.nodes[0] == tree.nodes[2] == (0, 1, 2, 3, 4, 5)
    assert tree.nodes[1] == (0, 1, 2, 6, 7, 8, 9, 10)
    assert tree.nodes[3] == (0, 1, 11)


def test_nothing_in_nothing_out():
    assert len(build_prefix_tree([])) == 0
    assert pack([], 10) == []
