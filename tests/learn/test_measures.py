"""The measures of the experiments, against numbers worked by hand."""

import math

import pytest

from tests.learn.complaints import TROUBLES, cases, offers_a_step, split
from tests.learn.fluency import CONVERSATIONS, DISLIKED, data
from tests.learn.intervals import t_interval
from tests.learn.preference import pairs
from tests.learn.prose import perplexity


def test_the_interval_of_three_values() -> None:
    interval = t_interval([0.7, 0.8, 0.9])  # deviation 0.1, so half = 4.303 * 0.1 / sqrt(3)
    assert interval.mean == pytest.approx(0.8)
    assert interval.high - interval.mean == pytest.approx(0.24843, abs=1e-5)
    assert interval.mean - interval.low == pytest.approx(0.24843, abs=1e-5)


def test_values_that_agree_leave_no_width() -> None:
    interval = t_interval([0.5, 0.5])
    assert (interval.low, interval.high) == (0.5, 0.5)


def test_one_value_has_no_interval() -> None:
    with pytest.raises(ValueError, match="1 values"):
        t_interval([0.5])


def test_perplexity_is_one_mean_over_all_tokens_not_a_mean_of_texts() -> None:
    # 4 tokens at 1/2 and 1 at 1/32: mean log2 is (4 * 1 + 5) / 5
    texts = [[math.log(1 / 2)] * 4, [math.log(1 / 32)]]
    assert perplexity(texts) == pytest.approx(2 ** (9 / 5))


@pytest.mark.parametrize(
    ("reply", "offers"),
    [
        ("Got it. Shall I send a new one?", True),
        ("shall I help", False),
        ("I'm sorry. What happened? I shall install it.", False),
        ("", False),
    ],
)
def test_what_counts_as_offering_a_step(reply: str, offers: bool) -> None:
    assert offers_a_step(reply) is offers


def test_the_criterion_tells_the_two_styles_apart_in_all_the_data() -> None:
    for trouble in TROUBLES:
        for case in cases(trouble):
            assert all(offers_a_step(reply) for reply in case.preferred)
            assert not any(offers_a_step(reply) for reply in case.other)


def test_held_out_complaints_share_no_trouble_and_no_good_with_the_trained_ones() -> None:
    trained, held_out = split(seed=0, held_out_troubles=4)
    assert (len(trained), len(held_out)) == (24, 12)
    assert not {ask for case in trained for ask in case.asks} & {
        ask for case in held_out for ask in case.asks
    }
    assert not {reply.split(". ")[1] for case in trained for reply in case.preferred} & {
        reply.split(". ")[1] for case in held_out for reply in case.preferred
    }
    goods = [good for trouble in TROUBLES for good in trouble.goods]
    assert len(set(goods)) == len(goods)
    assert split(seed=0, held_out_troubles=4) != split(seed=1, held_out_troubles=4)


def test_a_pair_differs_in_its_last_reply_alone() -> None:
    case = cases(TROUBLES[0])[0]
    for turn, (preferred, other) in enumerate(pairs(case)):
        assert preferred.messages[:-1] == other.messages[:-1]
        assert preferred.messages[-1].content == case.preferred[turn]
        assert other.messages[-1].content == case.other[turn]
        assert len(preferred.messages) == 2 * turn + 2


def test_four_out_of_five_turns_of_the_fixed_data_are_disliked() -> None:
    conversations = data()
    values = [
        score.value for c in conversations for m in c.assistant_messages for score in m.scores
    ]
    assert len(conversations) == CONVERSATIONS
    assert values.count(-1.0) == DISLIKED * len(values)
    assert set(values) == {1.0, -1.0}
    replies = [m.content for c in conversations for m in c.assistant_messages]
    for reply, value in zip(replies, values, strict=True):
        assert offers_a_step(reply) == (value == 1.0)
