"""How well an epoch does on the conversations that it was not trained on."""

from collections.abc import Sequence

from trainer.behaviour import measure
from trainer.data.turns import TrainableTurn
from trainer.engines import Engine
from trainer.plan import Step, by_conversation, group_by_budget
from trainer.runs.checkpoint import Judgement, Logprobs, Progress
from trainer.runs.recorder import Recorder

MOST_CHANGE = 1.0
"""A token that became e times likelier or rarer counts in full; a larger change counts no more."""


class Judge:
    """Asks the held-out conversations after each epoch, and at an early end.

    Attributes:
        turns: The held-out turns.
        passes: Groups of their positions; each goes through the model together.
    """

    def __init__(
        self, turns: Sequence[TrainableTurn], plan: Sequence[Step], *, token_budget: int
    ) -> None:
        """Judge by these turns; without any, nothing is ever due."""
        self.turns = turns
        self.passes = group_by_budget(by_conversation(turns), turns, token_budget)
        self._ends = {step.index + 1: step.epoch for step in plan}
        self._epoch_ends = set({step.epoch: step.index + 1 for step in plan}.values())

    def is_due(self, progress: Progress) -> bool:
        """Return whether the adapter as it is now has still to be judged."""
        if not self.turns or any(known.step == progress.step for known in progress.judgements):
            return False
        return progress.step in self._epoch_ends or progress.kl_limit_passed

    def judge(self, progress: Progress, client: Engine, recorder: Recorder) -> Progress | None:
        """Return the progress with one more judgement; None if a stop was asked for.

        Raises:
            NotFiniteError: if the model's answer is NaN or Inf; names conversation and turn.
        """
        epoch = self._ends[progress.step]
        share = progress.step / len(self._ends)
        message = f"judging epoch {epoch + 1} by held-out conversations"
        found = measure(
            self.turns,
            self.passes,
            client,
            lambda _: recorder.progress(share, message),
            when=f"after step {progress.step}, held out",
        )
        if found is None:
            return None
        logprobs = [found[position] for position in range(len(self.turns))]
        return progress.after_judgement(
            Judgement(
                epoch=epoch,
                step=progress.step,
                signal=signal(
                    [turn.advantage for turn in self.turns], logprobs, progress.held_out_logprobs
                ),
                conversations=len({turn.conversation for turn in self.turns}),
                turns=len(self.turns),
                response_tokens=sum(map(len, logprobs)),
            )
        )


def signal(
    advantages: Sequence[float], logprobs: Sequence[Logprobs], base_logprobs: Sequence[Logprobs]
) -> float:
    """Return how far replies moved as their advantages ask, in nats a token.

    With c = logprob - base logprob of a token, limited to ± `MOST_CHANGE`,

        sum over turns of A · (sum of c) / sum over turns of |A| · (number of tokens).

    It is the run page's "change × advantage" of other conversations, but for the limit: without
    it, replies pushed towards -∞ would pass for the best epoch. 0 for the base model itself, at
    most `MOST_CHANGE`.

    Args:
        advantages: One a turn.
        logprobs: For each turn those of its response tokens under the policy to judge, in nats.
        base_logprobs: The same under the base model.
    """
    asked, scale = 0.0, 0.0
    for advantage, new, base in zip(advantages, logprobs, base_logprobs, strict=True):
        changes = [
            max(-MOST_CHANGE, min(MOST_CHANGE, after - before))
            for after, before in zip(new, base, strict=True)
        ]
        asked += advantage * sum(changes)
        scale += abs(advantage) * len(changes)
    return asked / scale if scale else 0.0
