"""Engine and baselines compute one gradient, so that their times may be compared."""

from collections.abc import Sequence
from pathlib import Path

import pytest
from peft import PeftModel
from torch import Tensor

from tests.bench.baselines import (
    BASELINES,
    PlainPass,
    load_plain,
    micro_batches,
    one_by_one,
    thinned,
)
from tests.bench.workloads import SEED_PAIR, Lengths, build_data
from tests.models import VOCABULARY
from tests.subject import load_subject, relative_difference
from trainer.engine.gradients import BatchRunner
from trainer.engine.losses import LossConfig


@pytest.mark.parametrize("baseline", BASELINES)
@pytest.mark.parametrize(
    "conversations", [[[(5, 7)] * 3], SEED_PAIR, [[(9, 1)], [(1, 9)]]], ids=["long", "seed", "odd"]
)
def test_a_baseline_s_gradient_is_the_engine_s(
    tiny_llama: Path, tmp_path: Path, baseline: str, conversations: Sequence[Lengths]
) -> None:
    subject = load_subject(tiny_llama, tmp_path)
    data = build_data(conversations, vocabulary=VOCABULARY)
    found = BatchRunner(subject.policy, 2048).run(data, "ppo", LossConfig(), backward=True)

    model = load_plain(tiny_llama, tmp_path / "adapter")
    way = BASELINES[baseline]
    for plain_pass in way.split(data, 40):
        way.run(model, plain_pass.data)

    expected = _gradients(model)
    assert all(bool(gradient.any()) for gradient in expected.values())
    assert relative_difference(found.gradients, expected) <= 1e-4


def test_micro_batches_hold_every_turn_once_within_the_budget_with_padding() -> None:
    data = build_data([[(2, 3)] * 6, [(4, 4)]])
    batches = [batch.data for batch in micro_batches(data, 40)]
    assert sorted(map(id, data)) == sorted(id(datum) for batch in batches for datum in batch)
    assert max(map(len, batches)) > 1
    for batch in batches:
        assert len(batch) * max(datum.model_input.length for datum in batch) <= 40


def test_a_turn_longer_than_the_budget_is_a_batch_of_its_own() -> None:
    assert [len(batch.data) for batch in micro_batches(build_data([[(30, 30)] * 2]), 10)] == [1, 1]


def test_thinning_lets_the_middle_of_each_group_stand_for_it() -> None:
    data = build_data([[(2, 3)] * 8])  # 4, 9, 14, 19, 24, 29, 34, 39 tokens
    kept = thinned(one_by_one(data[::-1], 0), 3)
    assert [(p.data[0].model_input.length, p.stands_for) for p in kept] == [
        (9, 3),
        (24, 3),
        (34, 1),
        (39, 1),
    ]


def test_no_thinning_keeps_every_pass_once() -> None:
    data = build_data([[(2, 3)] * 4])
    kept = thinned(one_by_one(data, 0), 1)
    assert [(p.data[0], p.stands_for) for p in kept] == [(datum, 1) for datum in data]


def test_thinning_leaves_batches_of_several_turns_alone() -> None:
    pair, single = build_data([[(2, 3)] * 2]), build_data([[(2, 3)]])
    kept = thinned([PlainPass(pair), *[PlainPass(single)] * 3, PlainPass(pair)], 3)
    assert [(len(p.data), p.stands_for) for p in kept] == [(2, 1), (2, 1), (1, 3)]


def _gradients(model: PeftModel) -> dict[str, Tensor]:
    trained = [(name, value) for name, value in model.named_parameters() if value.requires_grad]
    return {name: value.grad for name, value in trained if value.grad is not None}
