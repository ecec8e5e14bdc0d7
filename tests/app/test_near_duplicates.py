"""Near-duplicates: what is found, what is not, and that a search ends."""

import random
from collections.abc import Sequence

import pytest

from app import near_duplicates
from app.near_duplicates import find_near_duplicates, shingles


def words(seed: int, count: int = 120) -> str:
    chosen = random.Random(seed)
    return " ".join(f"w{chosen.randrange(4000)}" for _ in range(count))


def search(texts: dict[int, str], threshold: float = 0.8, **options: float):
    def read(ids: Sequence[int]) -> dict[int, str]:
        return {id: texts[id] for id in ids}

    return find_near_duplicates(list(texts), read, threshold=threshold, **options)  # type: ignore[arg-type]


def test_a_few_changed_words_are_found_and_other_texts_are_not():
    texts = {n: words(n) for n in range(1, 200)}
    texts[500] = texts[7].replace("w", "W", 3) + " and thanks again"
    found = search(texts)
    assert [(pair.first, pair.second) for pair in found.pairs] == [(7, 500)]
    assert found.pairs[0].similarity > 0.9
    assert (found.compared, found.skipped, found.alike) == (200, 0, 1)


def test_a_text_that_shares_half_is_found_only_below_that():
    base = words(1, 200).split()
    half = " ".join(base[:150]) + " " + words(2, 50)
    texts = {1: " ".join(base), 2: half}
    assert not search(texts, 0.8).pairs
    assert search(texts, 0.5).pairs


def test_a_thousand_copies_name_the_first_and_not_each_other():
    texts = {n: words(1) for n in range(1000)}
    found = search(texts, limit=10)
    assert found.alike == 999
    assert len(found.pairs) == 10
    assert {pair.first for pair in found.pairs} == {0}


def test_scripts_without_spaces_are_compared_too():
    text = "私の荷物はまだ届いていません。注文番号を教えていただけますか。"
    assert len(shingles(text)) > 15
    found = search({1: text, 2: text.replace("私の", "僕の")}, 0.6)
    assert [(p.first, p.second) for p in found.pairs] == [(1, 2)]


@pytest.mark.parametrize("text", ["", "   ", "!?", "\x00"])
def test_texts_without_words_are_like_nothing(text: str):
    assert not search({1: text, 2: text}).pairs


def test_short_texts_are_compared_as_a_whole():
    assert shingles("Yes, please") == ["yes please"]
    assert search({1: "Yes, please", 2: "yes please!"}).pairs


def test_when_the_time_is_up_the_rest_is_left_out_and_told(monkeypatch: pytest.MonkeyPatch):
    clock = iter(range(1000))
    monkeypatch.setattr(near_duplicates.time, "monotonic", lambda: next(clock))
    found = search({n: words(n) for n in range(10)}, seconds=4)
    assert (found.compared, found.skipped) == (4, 6)
