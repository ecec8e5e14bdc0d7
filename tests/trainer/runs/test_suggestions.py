"""After a failure the settings to change are named, with how far."""

import pytest

from db.enums import ErrorKind
from trainer.config import TrainConfig
from trainer.engine.memory import memory_errors
from trainer.errors import OutOfMemoryError, pass_too_large
from trainer.runs.failure import explain
from trainer.runs.suggestions import suggestions, with_suggestions


def changes(
    kind: ErrorKind, config: TrainConfig, text: str = ""
) -> dict[str, tuple[object, object]]:
    return {s.setting: (s.before, s.after) for s in suggestions(kind, config, text)}


def test_memory_that_ran_out_halves_the_tokens_of_the_pass_that_did_not_fit() -> None:
    config = TrainConfig(token_budget=2048)
    assert changes(ErrorKind.OUT_OF_MEMORY, config) == {"token_budget": (2048, 1024)}
    with pytest.raises(OutOfMemoryError) as caught, memory_errors(600):
        raise MemoryError
    failure = explain(caught.value)
    assert changes(failure.kind, config, failure.text) == {"token_budget": (2048, 300)}
    text = str(pass_too_large("did not fit", 8000))
    assert changes(ErrorKind.OUT_OF_MEMORY, config, text) == {"token_budget": (2048, 1024)}


def test_the_smallest_budget_is_not_lowered_any_more() -> None:
    assert changes(ErrorKind.OUT_OF_MEMORY, TrainConfig(token_budget=16)) == {}
    assert changes(ErrorKind.KILLED, TrainConfig(token_budget=20)) == {"token_budget": (20, 16)}


def test_nan_lowers_the_learning_rate_and_switches_clipping_on() -> None:
    config = TrainConfig(learning_rate=2e-4, grad_clip_norm=0.0)
    assert changes(ErrorKind.NOT_A_NUMBER, config) == {
        "learning_rate": (2e-4, 5e-5),
        "grad_clip_norm": (0.0, 1.0),
    }
    clipped = TrainConfig(learning_rate=2e-4, grad_clip_norm=1.0)
    assert set(changes(ErrorKind.NOT_A_NUMBER, clipped)) == {"learning_rate"}


def test_without_a_chat_template_texts_are_joined_plainly() -> None:
    assert changes(ErrorKind.CHAT_TEMPLATE, TrainConfig()) == {"rendering": ("template", "plain")}


@pytest.mark.parametrize("kind", list(ErrorKind))
def test_every_suggestion_makes_a_configuration_that_can_be_launched(kind: ErrorKind) -> None:
    config = TrainConfig()
    found = suggestions(kind, config)
    changed = with_suggestions(config, found)
    assert (changed != config) == bool(found)
    assert all(suggestion.why for suggestion in found)
