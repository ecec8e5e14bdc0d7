"""The shipped example sets load whole, and keep the promises that their page makes."""

import json
import math
from collections import Counter
from itertools import pairwise
from pathlib import Path

import pytest

import db.examples
from db.enums import Role
from db.errors import NotFoundError
from db.examples import EXAMPLE_SETS, load_example
from db.records import SCORE_MAX, SCORE_MIN, Conversation

NAMES = [example.name for example in EXAMPLE_SETS]
WRITTEN = [name for name in NAMES if name != "seed"]


def scored_share(conversation: Conversation) -> float:
    """Return the share of assistant turns that carry a score."""
    turns = conversation.assistant_messages
    return sum(bool(turn.scores) for turn in turns) / len(turns)


def opening(conversation: Conversation) -> tuple[str, str]:
    """Return what a model sees before its first turn."""
    return conversation.system, conversation.messages[0].content


def test_there_is_a_set_for_each_use_case_and_the_seed() -> None:
    assert NAMES == ["seed", "dialogue", "negotiation", "problem_solving", "customer_service"]


def test_every_set_says_what_it_is() -> None:
    for example in EXAMPLE_SETS:
        assert example.title
        assert example.description.endswith(".")


def test_every_file_is_a_set() -> None:
    folder = Path(db.examples.__file__).parent
    assert {path.name for path in folder.glob("*.jsonl")} == {e.file for e in EXAMPLE_SETS}


def test_an_unknown_set_is_refused_by_name() -> None:
    with pytest.raises(NotFoundError, match=r"'poetry'.*negotiation"):
        load_example("poetry")


@pytest.mark.parametrize("example", EXAMPLE_SETS, ids=NAMES)
def test_every_line_becomes_a_conversation_with_its_source(example: db.examples.ExampleSet) -> None:
    lines = (Path(db.examples.__file__).parent / example.file).read_text("utf-8").splitlines()
    conversations = load_example(example.name)
    assert [c.title for c in conversations] == [json.loads(line)["title"] for line in lines]
    assert {c.source for c in conversations} == {f"example:{example.name}"}


@pytest.mark.parametrize("name", NAMES)
def test_user_and_assistant_take_turns_and_nobody_is_silent(name: str) -> None:
    for conversation in load_example(name):
        roles = [message.role for message in conversation.messages]
        assert roles[0] is Role.USER
        assert roles[-1] is Role.ASSISTANT
        assert set(roles) == {Role.USER, Role.ASSISTANT}
        assert all(first is not second for first, second in pairwise(roles))
        assert all(message.content.strip() for message in conversation.messages)


@pytest.mark.parametrize("name", NAMES)
def test_scores_are_finite_in_range_and_by_the_example_rater(name: str) -> None:
    for conversation in load_example(name):
        judgements = [*conversation.outcomes]
        for message in conversation.messages:
            assert message.role is Role.ASSISTANT or not message.scores
            judgements += message.scores
        assert {judgement.rater for judgement in judgements} <= {"example"}
        for judgement in judgements:
            assert math.isfinite(judgement.value)
            assert SCORE_MIN <= judgement.value <= SCORE_MAX


@pytest.mark.parametrize("name", WRITTEN)
def test_written_sets_have_enough_conversations_of_three_to_six_turns(name: str) -> None:
    conversations = load_example(name)
    assert len(conversations) >= 6
    assert all(3 <= len(c.assistant_messages) <= 6 for c in conversations)


@pytest.mark.parametrize("name", WRITTEN)
def test_written_sets_are_fully_partly_and_not_scored(name: str) -> None:
    shares = [scored_share(conversation) for conversation in load_example(name)]
    assert sum(share == 1 for share in shares) >= 4
    assert any(0 < share < 1 for share in shares)
    assert any(share == 0 for share in shares)


@pytest.mark.parametrize("name", NAMES)
def test_a_conversation_with_a_score_is_scored_to_its_end(name: str) -> None:
    # A gap after a turn would count as nothing earned in that turn's return.
    for conversation in load_example(name):
        scored = [bool(turn.scores) for turn in conversation.assistant_messages]
        assert scored == sorted(scored)
        assert name == "seed" or bool(conversation.outcomes) == any(scored)


@pytest.mark.parametrize("name", WRITTEN)
def test_written_sets_hold_good_and_bad_turns_and_outcomes(name: str) -> None:
    conversations = load_example(name)
    values = [s.value for c in conversations for m in c.messages for s in m.scores]
    outcomes = [score.value for c in conversations for score in c.outcomes]
    assert min(values) <= 0.2
    assert max(values) >= 0.95
    assert min(outcomes) <= 0.3
    assert max(outcomes) >= 0.9


@pytest.mark.parametrize("name", WRITTEN)
def test_an_opening_is_shared_by_a_better_and_a_worse_course(name: str) -> None:
    conversations = load_example(name)
    counts = Counter(opening(conversation) for conversation in conversations)
    shared = [key for key, count in counts.items() if count > 1]
    assert shared
    for key in shared:
        ends = sorted(c.outcomes[0].value for c in conversations if opening(c) == key)
        assert ends[-1] - ends[0] >= 0.5


def test_a_nice_first_turn_can_cost_the_outcome() -> None:
    by_title = {c.title: c for c in load_example("customer_service")}
    asks = by_title["Parcel not here: looks it up"]
    promises = by_title["Parcel not here: promises first"]
    first = [c.assistant_messages[0].scores[0].value for c in (asks, promises)]
    assert first[0] < first[1]
    assert asks.outcomes[0].value > promises.outcomes[0].value


@pytest.mark.parametrize("name", NAMES)
def test_the_page_on_examples_counts_as_the_files_do(name: str) -> None:
    conversations = load_example(name)
    shares = [scored_share(conversation) for conversation in conversations]
    full, none = shares.count(1), shares.count(0)
    turns = sum(len(conversation.assistant_messages) for conversation in conversations)
    counts = f"| {len(shares)} | {turns} | {full} / {len(shares) - full - none} / {none} |"
    page = Path(db.examples.__file__).parents[2] / "docs" / "examples.md"
    assert f"| `{name}` {counts}" in page.read_text("utf-8")


def test_no_content_appears_twice() -> None:
    contents = [
        (c.system, tuple((m.role, m.content) for m in c.messages))
        for name in NAMES
        for c in load_example(name)
    ]
    assert len(contents) == len(set(contents))
    titles = [c.title for name in NAMES for c in load_example(name)]
    assert len(titles) == len(set(titles))


def test_the_seed_has_the_recipe_s_texts_and_rewards() -> None:
    turns = [
        (question.content, answer.content, answer.scores[0].value)
        for conversation in load_example("seed")
        for question, answer in zip(
            conversation.messages[::2], conversation.messages[1::2], strict=True
        )
    ]
    assert turns == [
        ("What is the capital of France?", "The capital of France is Paris.", 1.0),
        (
            "How many people live there?",
            "Paris has approximately 2.2 million residents in the city proper.",
            0.9,
        ),
        (
            "Explain quantum mechanics.",
            "Quantum mechanics is the study of particles at atomic scales.",
            0.7,
        ),
        (
            "Can you be more precise?",
            "Quantum mechanics uses wave functions and probability amplitudes to describe "
            "particle behavior.",
            0.95,
        ),
    ]
    assert all(not conversation.system for conversation in load_example("seed"))
