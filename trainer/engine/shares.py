"""Which part of a batch each rank computes: whole conversations, about the same number of tokens."""

from collections.abc import Sequence
from itertools import pairwise

from trainer.engine.prefix_tree import common_prefix

Sequences = Sequence[Sequence[int]]


def split_into_shares(sequences: Sequences, count: int, *, shares_prefixes: bool) -> list[range]:
    """Split sequences, in order, so that the most expensive part is as cheap as it can be.

    A part costs its distinct tokens, as far as neighbours share them. Parts grow from the end: the
    last turn of a conversation holds most of the earlier ones, which are then almost free, so a
    conversation is only ever torn apart where that makes nothing slower.

    Args:
        sequences: Model inputs; the turns of a conversation are neighbours, in their order.
        count: How many parts.
        shares_prefixes: Whether neighbours in one part compute what they share only once.

    Returns:
        `count` adjoining ranges; those at the front are empty if there is too little to share out.
    """
    lengths = [len(sequence) for sequence in sequences]
    extra = lengths.copy()  # what a sequence adds to a part that begins right behind it
    if shares_prefixes:
        for index, (this, following) in enumerate(pairwise(sequences)):
            extra[index] -= common_prefix(this, following)
    low, high = max(lengths, default=0), sum(lengths)
    while low < high:
        limit = (low + high) // 2
        if len(_starts(lengths, extra, limit)) <= count:
            high = limit
        else:
            low = limit + 1
    starts = _starts(lengths, extra, low)
    bounds = [0] * (count - len(starts)) + starts[::-1] + [len(sequences)]
    return [range(start, end) for start, end in pairwise(bounds)]


def _starts(lengths: Sequence[int], extra: Sequence[int], limit: int) -> list[int]:
    """Return where parts of at most `limit` tokens begin, filled from the end; last part first."""
    starts: list[int] = []
    room = -1
    for index in reversed(range(len(lengths))):
        if starts and extra[index] <= room:
            room -= extra[index]
            starts[-1] = index
        else:
            room = limit - lengths[index]
            starts.append(index)
    return starts
