"""The engine's one pass over shared prefixes equals the oracle's pass for each turn."""

import random
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
import torch
from hypothesis import given
from hypothesis import settings as hypothesis_settings
from hypothesis import strategies as st

from db.records import Conversation
from tests.conftest import TinyModels
from tests.models import VOCABULARY
from tests.oracle import OracleTurn
from tests.subject import (
    Subject,
    assert_engine_equals_oracle,
    dialogue,
    load_subject,
    relative_difference,
    rendered_turns,
    with_advantages,
)
from trainer.config import Rendering

Subjects = Callable[[str], Subject]


@pytest.fixture(autouse=True, scope="module")
def _one_thread() -> Iterator[None]:
    """At this size a second thread costs more than it gives."""
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(threads)


@pytest.fixture(scope="module")
def subjects(tiny_models: TinyModels, tmp_path_factory: pytest.TempPathFactory) -> Subjects:
    """Return a function from a tiny model's name to that model under test."""
    loaded: dict[str, Subject] = {}

    def subject_of(name: str) -> Subject:
        if name not in loaded:
            loaded[name] = load_subject(tiny_models(name), tmp_path_factory.mktemp(name))
        return loaded[name]

    return subject_of


def _distinct_prefixes(turns: list[OracleTurn]) -> int:
    inputs = [(turn.prompt_ids + turn.response_ids)[:-1] for turn in turns]
    return len({ids[: i + 1] for ids in inputs for i in range(len(ids))})


SHARING = ["llama", "qwen3", "qwen3-prefilled"]
CASES = [
    ("llama", Rendering.PLAIN),
    ("llama", Rendering.TEMPLATE),
    ("qwen3", Rendering.PLAIN),
    ("qwen3", Rendering.TEMPLATE),
    ("qwen3-prefilled", Rendering.TEMPLATE),
]


@pytest.mark.parametrize(("model", "rendering"), CASES)
@pytest.mark.parametrize("turns", range(1, 17))
def test_a_conversation_in_one_pass_equals_a_pass_for_each_turn(
    subjects: Subjects, model: str, rendering: Rendering, turns: int
) -> None:
    subject = subjects(model)
    conversation = dialogue(turns, seed=turns, thinking=model != "llama")
    built = rendered_turns(subject, [conversation], rendering)
    assert len(built) == turns
    before = subject.policy.computed_tokens
    assert_engine_equals_oracle(subject, built)
    assert subject.policy.computed_tokens - before == _distinct_prefixes(built)


GATHERINGS: dict[str, list[Conversation]] = {
    "shared system prompt": [
        dialogue(3, seed=seed, system="Answer in one word, please.") for seed in range(4)
    ],
    "the same conversation twice": [dialogue(3, seed=1), dialogue(3, seed=1)],
    "one continues the other": [dialogue(2, seed=5), dialogue(6, seed=5)],
    "identical turns": [
        Conversation(messages=dialogue(1, seed=3).messages * 6),
        Conversation(messages=dialogue(1, seed=3).messages * 2),
    ],
    "strangers": [dialogue(turns, seed=40 + turns) for turns in (1, 4, 2)],
}


@pytest.mark.parametrize(("model", "rendering"), CASES)
@pytest.mark.parametrize("name", GATHERINGS)
def test_conversations_packed_together_equal_a_pass_for_each_turn(
    subjects: Subjects, model: str, rendering: Rendering, name: str
) -> None:
    subject = subjects(model)
    turns = rendered_turns(subject, GATHERINGS[name], rendering)
    assert_engine_equals_oracle(subject, turns)


@st.composite
def _sequences(draw: st.DrawFn) -> list[tuple[tuple[int, ...], tuple[int, ...]]]:
    """Prompt and response ids over three symbols, so that prefixes collide in every way."""
    symbols = st.integers(5, 7)
    ids = st.lists(symbols, min_size=1, max_size=7).map(tuple)
    return draw(st.lists(st.tuples(ids, ids), min_size=1, max_size=8))


@pytest.mark.parametrize("model", ["llama", "qwen3"])
@hypothesis_settings(max_examples=25, deadline=None)
@given(pairs=_sequences())
def test_any_set_of_sequences_equals_a_pass_for_each(
    subjects: Subjects, model: str, pairs: list[tuple[tuple[int, ...], tuple[int, ...]]]
) -> None:
    subject = subjects(model)
    assert_engine_equals_oracle(subject, with_advantages(subject, pairs))


@pytest.mark.parametrize("model", SHARING)
@pytest.mark.parametrize("token_budget", [1, 40, 90, 250])
def test_the_token_budget_changes_no_logprob_and_no_gradient(
    subjects: Subjects, model: str, token_budget: int
) -> None:
    subject = subjects(model)
    conversations = [dialogue(turns, seed=turns) for turns in (5, 1, 3, 4)]
    turns = rendered_turns(subject, conversations, Rendering.TEMPLATE)
    whole = subject.pass_over(turns)
    parts = subject.pass_over(turns, token_budget=token_budget)
    assert_engine_equals_oracle(subject, turns, token_budget=token_budget)
    for one, other in zip(whole.logprobs, parts.logprobs, strict=True):
        assert float((one - other).abs().max()) <= 1e-5
    assert relative_difference(parts.gradients, whole.gradients) <= 1e-5


@pytest.mark.parametrize("model", SHARING)
@pytest.mark.parametrize("rendering", list(Rendering))
def test_changing_a_token_of_one_conversation_changes_no_logprob_of_another(
    subjects: Subjects, model: str, rendering: Rendering
) -> None:
    subject = subjects(model)
    rng = random.Random(0)
    before, changed, after = (dialogue(3, seed=seed) for seed in (1, 2, 3))
    first, target, last = (
        rendered_turns(subject, [conversation], rendering)
        for conversation in (before, changed, after)
    )
    original = subject.pass_over([*first, *target, *last], backward=False)
    others = [*range(len(first)), *range(len(first) + len(target), len(original.logprobs))]
    own = range(len(first), len(first) + len(target))
    # Positions of the longest input behind what all three conversations have in common.
    shared = _common_prefix([turns[0].prompt_ids for turns in (first, target, last)])
    for position in rng.sample(range(shared, target[-1].tokens), 12):
        token = rng.randrange(10, VOCABULARY)
        poisoned = [_with_token(turn, position, token) for turn in target]
        result = subject.pass_over([*first, *poisoned, *last], backward=False)
        assert any(not torch.equal(result.logprobs[i], original.logprobs[i]) for i in own), (
            "the changed conversation must notice, or this test proves nothing"
        )
        for index in others:
            assert torch.equal(result.logprobs[index], original.logprobs[index])


def _common_prefix(sequences: list[tuple[int, ...]]) -> int:
    length = 0
    for column in zip(*sequences, strict=False):
        if len(set(column)) > 1:
            break
        length += 1
    return length


def _with_token(turn: OracleTurn, position: int, token: int) -> OracleTurn:
    """Return the turn with another token at `position`, if its input reaches that far."""
    ids = [*turn.prompt_ids, *turn.response_ids]
    if position < len(ids):
        ids[position] = token if ids[position] != token else token - 1
    cut = len(turn.prompt_ids)
    return OracleTurn(tuple(ids[:cut]), tuple(ids[cut:]), turn.advantage, turn.old_logprobs)


@pytest.mark.parametrize("model", ["mistral-sliding", "gemma3-sliding", "lfm2-conv"])
@pytest.mark.parametrize("rendering", list(Rendering))
def test_a_model_that_cannot_share_prefixes_takes_a_pass_for_each_turn(
    subjects: Subjects, model: str, rendering: Rendering
) -> None:
    subject = subjects(model)
    assert not subject.policy.shares_prefixes
    turns = rendered_turns(
        subject, [dialogue(5, seed=3), dialogue(5, seed=3), dialogue(2, seed=4)], rendering
    )
    before = subject.policy.computed_tokens
    assert_engine_equals_oracle(subject, turns)
    assert subject.policy.computed_tokens - before == sum(turn.tokens for turn in turns)


@pytest.mark.parametrize("model", ["mistral-sliding", "gemma3-sliding", "lfm2-conv"])
def test_a_trial_finds_out_where_the_config_does_not_say(
    tiny_models: TinyModels, monkeypatch: pytest.MonkeyPatch, tmp_path: Path, model: str
) -> None:
    monkeypatch.setattr("trainer.engine.forward.sharing_obstacle", lambda _: None)
    assert not load_subject(tiny_models(model), tmp_path).policy.shares_prefixes


@pytest.mark.parametrize("model", SHARING)
def test_a_fresh_adapter_is_the_base_model(
    tiny_models: TinyModels, model: str, tmp_path: Path
) -> None:
    subject = load_subject(tiny_models(model), tmp_path, jitter=0.0)
    turns = rendered_turns(subject, [dialogue(4, seed=9)], Rendering.TEMPLATE)
    found = torch.cat(subject.response_logprobs(turns, subject.pass_over(turns, backward=False)))
    with subject.reference.disable_adapter():
        expected = torch.cat(subject.reference_logprobs(turns))
    assert float((found - expected).abs().max()) <= 1e-5
