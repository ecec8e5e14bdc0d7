"""The next token: drawn from the tempered nucleus, reported with the untempered log-probability."""

import pytest
import torch

from trainer.engine.types import SamplingParams
from trainer.errors import NotFiniteError
from trainer.serving.sampling import choose, generators

LOGITS = torch.tensor([0.0, 2.0, 1.0, -torch.inf, 1.5, -3.0])
PROBABILITIES = LOGITS.softmax(-1)


def frequencies(params: SamplingParams, draws: int = 2000) -> torch.Tensor:
    (generator,) = generators(5, 1)
    tokens = [choose(LOGITS, params, generator).token for _ in range(draws)]
    return torch.bincount(torch.tensor(tokens), minlength=len(LOGITS)) / draws


@pytest.mark.parametrize("temperature", [0.5, 1.0, 2.0])
def test_tokens_come_as_often_as_the_tempered_policy_says(temperature: float) -> None:
    expected = (LOGITS / temperature).softmax(-1)
    found = frequencies(SamplingParams(temperature=temperature))
    torch.testing.assert_close(found, expected, atol=0.045, rtol=0)


@pytest.mark.parametrize("temperature", [0.0, 5e-324, 1e-40, 1e-9])
def test_next_to_no_temperature_takes_the_likeliest(temperature: float) -> None:
    found = frequencies(SamplingParams(temperature=temperature), draws=50)
    assert found[LOGITS.argmax()] == 1


def test_top_p_keeps_the_fewest_likeliest_that_reach_it() -> None:
    kept = torch.tensor([False, True, False, False, True, False])  # 0.47 + 0.29 pass 0.6
    expected = torch.where(kept, PROBABILITIES, 0.0)
    found = frequencies(SamplingParams(top_p=0.6))
    torch.testing.assert_close(found, expected / expected.sum(), atol=0.045, rtol=0)


def test_top_p_looks_beyond_the_likeliest_where_many_are_alike() -> None:
    (generator,) = generators(1, 1)
    flat = torch.zeros(2000)
    tokens = {choose(flat, SamplingParams(top_p=0.9), generator).token for _ in range(1500)}
    assert 900 < len(tokens) <= 1800


def test_top_k_keeps_the_k_likeliest() -> None:
    found = frequencies(SamplingParams(top_k=2), draws=500)
    assert set(found.nonzero()[:, 0].tolist()) == {1, 4}


def test_the_logprob_is_that_of_the_untempered_policy() -> None:
    (generator,) = generators(3, 1)
    for params in (SamplingParams(temperature=0.3, top_p=0.5), SamplingParams(temperature=0)):
        sampled = choose(LOGITS, params, generator, likeliest=2)
        assert sampled.logprob == pytest.approx(float(PROBABILITIES[sampled.token].log()))
        assert [token for token, _ in sampled.likeliest] == [1, 4]


def test_not_a_number_is_never_sampled() -> None:
    (generator,) = generators(3, 1)
    with pytest.raises(NotFiniteError):
        choose(LOGITS * float("nan"), SamplingParams(), generator)


def test_choices_of_a_seed_differ_from_each_other_and_return() -> None:
    first = [torch.rand(1, generator=generator).item() for generator in generators(7, 3)]
    again = [torch.rand(1, generator=generator).item() for generator in generators(7, 3)]
    assert first == again and len(set(first)) == 3
