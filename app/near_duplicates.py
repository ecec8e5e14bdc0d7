"""Conversations that say almost the same, found by MinHash signatures in bounded time."""

import re
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from rensa import (  # pyright: ignore[reportMissingTypeStubs] - compiled, without stubs
    RMinHash,  # pyright: ignore[reportAttributeAccessIssue]
    RMinHashLSH,  # pyright: ignore[reportAttributeAccessIssue]
)

SIGNATURE = 128
"""Hashes a signature; similarity is estimated to within about 1 / sqrt(SIGNATURE) = 0.09."""

BANDS = 32
"""Pairs of similarity 0.6 fall together in one of 32 bands of 4 hashes with a chance of 99 %."""

SHINGLE = 3
"""Words that are taken together: their order counts, but not what stands far away."""

MOST_WORDS = 4000
"""What stands behind them in a conversation is not compared."""

CHUNK = 500

_WORD = re.compile(r"[\u3040-\u30ff\u3400-\u9fff\uac00-\ud7af]|\w+")
"""A word, or one character of the scripts that write no spaces between them."""


@dataclass(frozen=True, slots=True, kw_only=True)
class NearDuplicate:
    """A conversation that shares much of its wording with an earlier one of the search.

    Attributes:
        first: The earlier one; all that are like it name it, rather than each other.
        second: The conversation.
        similarity: Estimated share of their three-word sequences that both have, 0 to 1.
    """

    first: int
    second: int
    similarity: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Search:
    """What a search found.

    Attributes:
        pairs: The most alike first, at most the limit.
        alike: How many there are without a limit.
        compared: How many conversations were looked at.
        skipped: How many were not, because the time was up.
    """

    pairs: tuple[NearDuplicate, ...]
    alike: int
    compared: int
    skipped: int


def find_near_duplicates(
    ids: Sequence[int],
    texts: Callable[[Sequence[int]], Mapping[int, str]],
    *,
    threshold: float,
    limit: int = 200,
    seconds: float = 30.0,
) -> Search:
    """Compare conversations with each other; the first ones where the time does not do for all.

    Args:
        ids: The conversations, those that matter most first.
        texts: Reads what was said in some of them.
        threshold: Least similarity of a pair, from 0 to 1.
        limit: Most pairs to return.
        seconds: After this time no more conversations are compared.
    """
    started = time.monotonic()
    index = RMinHashLSH(threshold=threshold, num_perm=SIGNATURE, num_bands=BANDS)
    signatures: dict[int, RMinHash] = {}
    pairs: list[NearDuplicate] = []
    compared = 0
    for id, text in _in_turn(ids, texts):
        if time.monotonic() - started > seconds:
            break
        compared += 1
        words = shingles(text)
        if not words:
            continue
        signature = RMinHash(num_perm=SIGNATURE, seed=0)
        signature.update(words)
        alike = [(signature.jaccard(signatures[other]), other) for other in index.query(signature)]
        similarity, first = max(alike, default=(0.0, id))
        if alike and similarity >= threshold:
            pairs.append(NearDuplicate(first=first, second=id, similarity=similarity))
        else:  # only these are compared with, so that a thousand copies cost no million pairs
            index.insert(id, signature)
            signatures[id] = signature
    pairs.sort(key=lambda pair: (-pair.similarity, pair.first, pair.second))
    return Search(
        pairs=tuple(pairs[:limit]),
        alike=len(pairs),
        compared=compared,
        skipped=len(ids) - compared,
    )


def _in_turn(
    ids: Sequence[int], texts: Callable[[Sequence[int]], Mapping[int, str]]
) -> Iterator[tuple[int, str]]:
    for start in range(0, len(ids), CHUNK):
        yield from texts(ids[start : start + CHUNK]).items()


def shingles(text: str) -> list[str]:
    """Return each run of three words in a text, in lower case; all of it where it has fewer."""
    words = _WORD.findall(text.casefold())[:MOST_WORDS]
    if len(words) < SHINGLE:
        return [" ".join(words)] if words else []
    return [" ".join(words[i : i + SHINGLE]) for i in range(len(words) - SHINGLE + 1)]
