"""The run page's words on held-out conversations."""

from app.components.held_out import describe
from trainer.runs.checkpoint import Judgement


def judgements(*signals: float) -> list[Judgement]:
    return [
        Judgement(
            epoch=epoch, step=epoch + 1, signal=signal, conversations=2, turns=4, response_tokens=40
        )
        for epoch, signal in enumerate(signals)
    ]


def test_the_best_epoch_is_named_and_kept_at_the_end() -> None:
    found = describe(judgements(0.1, 0.25, 0.2), has_ended=True)
    assert found == (
        "Judged by 2 held-out conversations: epoch 1 +0.100, epoch 2 +0.250, epoch 3 +0.200. "
        "Epoch 2 is the best and kept."
    )
    assert describe(judgements(0.1), has_ended=False).endswith("Epoch 1 is the best so far.")


def test_epochs_that_are_no_better_than_the_untrained_model_are_warned_of() -> None:
    assert "None is better" in describe(judgements(-0.1), has_ended=False)
    assert "compare it with the base model" in describe(judgements(-0.1, 0.0), has_ended=True)
