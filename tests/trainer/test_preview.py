"""The preview: advantages before training, and what it warns of or refuses."""

from dataclasses import replace

from db.enums import Role
from db.records import Conversation, Message, Score
from trainer.config import Preset, TrainConfig
from trainer.preview import preview

RECIPE = TrainConfig.for_preset(Preset.RECIPE)
STANDARD = TrainConfig()


def conversation(*turns: tuple[str, float | None], title: str = "") -> Conversation:
    """A conversation of user questions and the given replies with their scores."""
    messages: list[Message] = []
    for text, value in turns:
        scores = () if value is None else (Score(rater="local", value=value),)
        messages += [
            Message(role=Role.USER, content="Go on."),
            Message(role=Role.ASSISTANT, content=text, scores=scores),
        ]
    return Conversation(messages=tuple(messages), title=title)


def kinds(conversations: list[Conversation], config: TrainConfig) -> list[tuple[str, bool]]:
    return [(w.kind, w.blocking) for w in preview(conversations, config).warnings]


def test_advantages_come_without_a_tokenizer() -> None:
    table = preview([conversation(("Yes.", 1.0), ("No.", 0.5))], RECIPE)
    assert [turn.advantage for turn in table.turns] == [0.25, -0.25]
    assert [turn.tokens for turn in table.turns] == [None, None]
    assert table.distinct_tokens is None


def test_the_score_of_several_raters_is_their_mean() -> None:
    scores = (Score(rater="ann", value=1.0), Score(rater="bob", value=0.0))
    message = Message(role=Role.ASSISTANT, content="Yes.", scores=scores)
    table = preview([Conversation(messages=(message,))], STANDARD)
    assert table.turns[0].reward == 0.5


def test_data_without_any_score_is_refused() -> None:
    assert ("nothing_scored", True) in kinds([conversation(("Yes.", None))], STANDARD)


def test_data_whose_advantages_are_all_zero_is_refused() -> None:
    same = [conversation(("Yes.", 0.5), ("No.", 0.5))]
    assert ("all_zero", True) in kinds(same, RECIPE)


def test_a_scored_empty_reply_is_refused_by_conversation_and_turn() -> None:
    table = preview([conversation(("Yes.", 1.0), (" ", 0.0), title="refund")], RECIPE)
    (problem,) = [w for w in table.warnings if w.blocking]
    assert (problem.kind, problem.conversation, problem.turn) == ("empty_reply", 0, 1)
    assert "'refund'" in problem.text and "turn 2" in problem.text


def test_conversations_without_signal_are_named() -> None:
    data = [
        conversation(("Yes.", 1.0), ("No.", 0.0)),
        conversation(("Yes.", 0.5), ("No.", 0.5), title="flat"),
        conversation(("Yes.", 0.5), ("No.", None), ("Well.", 1.0)),
        conversation(("Yes.", None)),
        Conversation(messages=(Message(role=Role.USER, content="Hello?"),)),
    ]
    found = {w.kind: w for w in preview(data, RECIPE).warnings}
    assert not any(w.blocking for w in found.values())
    assert (found["no_signal"].conversation, "'flat'" in found["no_signal"].text) == (1, True)
    assert (found["partly_scored"].conversation, "turn 2" in found["partly_scored"].text) == (
        2,
        True,
    )
    assert found["unscored"].conversation == 3
    assert found["no_assistant_turn"].conversation == 4


def test_a_lone_conversation_is_said_to_lack_a_baseline() -> None:
    assert kinds([conversation(("Yes.", 1.0))], STANDARD) == [("no_baseline", False)]


def test_outcomes_on_some_conversations_only_are_named() -> None:
    judged = conversation(("Yes.", 1.0), ("No.", 0.0))
    outcome = Score(rater="local", value=1.0)
    mixed = [replace(judged, outcomes=(outcome,)), conversation(("Well.", 0.2))]
    assert ("uneven_outcomes", False) in kinds(mixed, STANDARD)
    assert kinds(mixed, STANDARD.replace(outcome_weight=0)) == []
    assert ("uneven_outcomes", False) not in kinds(mixed, RECIPE)


def test_low_scored_replies_under_positive_only_are_counted_and_marked() -> None:
    data = [conversation(("Yes.", 1.0), ("No.", 0.0)), conversation(("Well.", 0.5), ("Hm.", 0.5))]
    config = STANDARD.replace(guard="positive_only", credit="recipe")
    table = preview(data, config)
    assert [turn.silenced for turn in table.turns] == [False, True, False, False]
    (found,) = [w for w in table.warnings if w.kind == "silenced"]
    assert found.text.startswith("1 of 4 scored turns carry no gradient") and not found.blocking
    assert not any(turn.silenced for turn in preview(data, STANDARD).turns)
    imitation = config.replace(loss="cross_entropy")  # which knows no guard
    assert not any(turn.silenced for turn in preview(data, imitation).turns)


def test_replies_sampled_by_a_known_policy_are_not_guarded() -> None:
    low = conversation(("No.", -1.0))
    message = replace(low.messages[1], token_ids=(5, 6), logprobs=(-1.0, -1.0))
    known = replace(low, messages=(low.messages[0], message))
    data = [conversation(("Yes.", 1.0)), known]
    config = STANDARD.replace(guard="positive_only")
    assert not any(turn.silenced for turn in preview(data, config).turns)
    plain = preview(data, config.replace(rendering="plain"))  # which uses no stored ids
    assert [turn.silenced for turn in plain.turns] == [False, True]


def test_only_low_scored_replies_under_positive_only_are_refused() -> None:
    data = [conversation(("No.", -1.0))]
    assert ("all_silenced", True) in kinds(data, STANDARD.replace(guard="positive_only"))


def test_a_warm_up_longer_than_the_run_is_named_with_its_steps() -> None:
    data = [conversation(("Yes.", i / 10), title=str(i)) for i in range(9)]
    config = STANDARD.replace(warmup_steps=9, epochs=3, batch_conversations=4)
    (found,) = [w for w in preview(data, config).warnings if w.kind == "long_warmup"]
    assert "9 steps and the run only 9" in found.text
    assert "long_warmup" not in dict(kinds(data, config.replace(warmup_steps=8)))


def openings(count: int) -> list[Conversation]:
    return [
        Conversation(
            messages=(
                Message(role=Role.USER, content=f"Question {i}?"),
                Message(
                    role=Role.ASSISTANT,
                    content="Yes.",
                    scores=(Score(rater="local", value=i / count),),
                ),
            )
        )
        for i in range(count)
    ]


def test_held_out_conversations_are_marked_and_too_few_are_warned_of() -> None:
    table = preview(openings(10), STANDARD.replace(held_out=0.2))
    assert sum(turn.held_out for turn in table.turns) == 2
    (found,) = [w for w in table.warnings if w.kind == "few_held_out"]
    assert "Only 2" in found.text and not found.blocking
    assert "few_held_out" not in dict(kinds(openings(20), STANDARD.replace(held_out=0.25)))


def test_a_split_that_cannot_judge_is_refused() -> None:
    alike = [conversation(("Yes.", i / 10)) for i in range(10)]
    assert ("none_held_out", True) in kinds(alike, STANDARD.replace(held_out=0.2))
    flat = [*openings(2), *[replace(one, outcomes=()) for one in openings(2)]]
    config = STANDARD.replace(held_out=0.5, credit="recipe")
    mixed = [
        *flat,
        conversation(("Yes.", 1.0), ("No.", 0.0)),
        conversation(("Y.", 1.0), ("N.", 0.0)),
    ]
    held = [kinds(mixed, config.replace(seed=seed)) for seed in range(8)]
    assert any(("held_out_no_signal", True) in found for found in held)
