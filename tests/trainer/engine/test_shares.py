"""How a batch is shared out: conversations stay whole, work is even, nothing is lost."""

import random

from hypothesis import given
from hypothesis import strategies as st

from trainer.engine.prefix_tree import count_distinct
from trainer.engine.shares import split_into_shares

A = [(1, 2, 3), (1, 2, 3, 4, 5, 6), (1, 2, 3, 4, 5, 6, 7, 8, 9)]
B = [(9, 8, 7, 6), (9, 8, 7, 6, 5, 4, 3, 2)]
"""Two conversations: each turn's input begins with the one before it."""


def test_a_conversation_is_never_torn_apart() -> None:
    assert split_into_shares([*A, *B], 2, shares_prefixes=True) == [range(3), range(3, 5)]
    assert split_into_shares([*B, *A], 2, shares_prefixes=True) == [range(2), range(2, 5)]


def test_with_fewer_conversations_than_ranks_the_first_ranks_rest() -> None:
    assert split_into_shares(A, 3, shares_prefixes=True) == [range(0), range(0), range(3)]
    assert split_into_shares([], 2, shares_prefixes=True) == [range(0), range(0)]


def test_where_nothing_is_shared_turns_are_dealt_out_by_length() -> None:
    shares = split_into_shares([*A, *B], 2, shares_prefixes=False)
    tokens = [sum(len([*A, *B][i]) for i in share) for share in shares]
    assert shares == [range(3), range(3, 5)] and tokens == [18, 12]


def test_one_rank_gets_everything() -> None:
    assert split_into_shares([*A, *B], 1, shares_prefixes=True) == [range(5)]


@given(seed=st.integers(0, 10_000), conversations=st.integers(1, 8), ranks=st.integers(1, 5))
def test_no_rank_has_more_than_its_share_and_one_conversation(
    seed: int, conversations: int, ranks: int
) -> None:
    rng = random.Random(seed)
    sequences, costs, begins = [], [], []
    for conversation in range(conversations):
        tokens = [1000 + conversation]  # no two begin alike
        begins.append(len(sequences))
        for _ in range(rng.randint(1, 5)):
            tokens = tokens + [rng.randrange(9) for _ in range(rng.randint(1, 20))]
            sequences.append(tuple(tokens))
        costs.append(len(tokens))
    shares = split_into_shares(sequences, ranks, shares_prefixes=True)
    assert [i for share in shares for i in share] == list(range(len(sequences)))
    assert all(share.start in begins for share in shares if share)
    dearest = max(count_distinct([sequences[i] for i in share]) for share in shares)
    assert dearest <= sum(costs) / ranks + max(costs)
