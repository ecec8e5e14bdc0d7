"""What the policies before training say of each reply: measured once, kept for all epochs."""

from collections.abc import Callable, Sequence
from itertools import count

from trainer.choices import LossName, OldLogprobs
from trainer.config import TrainConfig
from trainer.data.datums import build_datum
from trainer.data.turns import TrainableTurn, at_turn
from trainer.engine.types import Datum
from trainer.engines import Engine
from trainer.errors import NotFiniteError
from trainer.plan import Step
from trainer.presets import RECIPE_OLD_LOGPROB
from trainer.runs.checkpoint import Logprobs, Progress
from trainer.runs.recorder import Recorder

Passes = Sequence[Sequence[int]]


def first_progress(
    turns: Sequence[TrainableTurn],
    plan: Sequence[Step],
    held_out: tuple[Sequence[TrainableTurn], Passes],
    config: TrainConfig,
    client: Engine,
    recorder: Recorder,
) -> Progress | None:
    """Return where the run stands before its first step; None if a stop was asked for.

    The old log-probabilities are the recipe's constant; or what was stored when the reply was
    sampled; or, for replies that no known policy sampled, what the model says of them before the
    first step. A fresh adapter changes nothing, so that this is the base model too, and one
    measurement serves for both; where the run starts from an earlier adapter, the base model is
    asked by itself, with the adapter switched off. It is asked about every reply if a setting needs
    its answer. All is asked in the passes of the first epoch, so that the first ratios are exactly 1.

    Args:
        turns: The turns to train on.
        plan: The run's steps.
        held_out: The held-out turns, and the passes to measure them in.
        config: The settings.
        client: A training client with the adapter that the run starts from.
        recorder: Told how far it is; says whether to stop.
    """
    known: dict[int, Logprobs] = {}
    for position, turn in enumerate(turns):
        if config.old_logprobs is OldLogprobs.CONSTANT:
            known[position] = (RECIPE_OLD_LOGPROB,) * len(turn.rendered.response_ids)
        elif turn.rendered.sampled_logprobs is not None:
            known[position] = turn.rendered.sampled_logprobs
    needs_base = config.kl_weight > 0 or config.max_kl > 0
    groups = [group for step in plan if step.epoch == 0 for group in step.passes]
    unknown = [group for group in groups if not all(p in known for p in group)]
    is_fresh = not config.start_from
    asked = groups if needs_base and is_fresh else unknown
    asked_base = groups if needs_base and not is_fresh else []
    held_out_turns, held_out_passes = held_out
    total = len(asked) + len(asked_base) + len(held_out_passes)
    numbers = count(1)

    def go_on(_number: int) -> bool:
        text = f"measuring the data before training, {next(numbers)}/{total}"
        return recorder.progress(0.0, text)

    start = measure(turns, asked, client, go_on)
    if start is None:
        return None
    base = start
    if not is_fresh:
        with client.without_adapter():
            base = measure(turns, asked_base, client, go_on)
        if base is None:
            return None
    judges = measure(held_out_turns, held_out_passes, client, go_on)
    if judges is None:
        return None
    every = range(len(turns))
    return Progress(
        step=0,
        old_logprobs=tuple(known[p] if p in known else start[p] for p in every),
        base_logprobs=tuple(base[p] for p in every) if len(base) == len(turns) else None,
        held_out_logprobs=tuple(judges[p] for p in range(len(held_out_turns))),
    )


def measure(
    turns: Sequence[TrainableTurn],
    passes: Passes,
    client: Engine,
    is_stopped: Callable[[int], bool],
    *,
    when: str = "before the first step",
) -> dict[int, Logprobs] | None:
    """Return the log-probabilities of the response tokens of each turn in the passes.

    Args:
        turns: The turns.
        passes: Groups of positions in `turns`; each goes through the model together.
        client: Asked as it is now.
        is_stopped: Called with the number of each pass before it; returns whether to give up.
        when: What an error says about the time.

    Returns:
        By position; None if `is_stopped` said so.

    Raises:
        NotFiniteError: if an answer is NaN or Inf; names conversation and turn.
    """
    found: dict[int, Logprobs] = {}
    for number, group in enumerate(passes):
        if is_stopped(number):
            return None
        try:
            probes = [_probe(turns[position]) for position in group]
            output = client.forward(probes, LossName.CROSS_ENTROPY).result()
        except NotFiniteError as error:
            raise at_turn(error, when, turns, group) from error
        for position, fields in zip(group, output.loss_fn_outputs, strict=True):
            response = len(turns[position].rendered.response_ids)
            found[position] = tuple(fields["logprobs"].tolist()[-response:])
    return found


def _probe(turn: TrainableTurn) -> Datum:
    """A datum that only asks for the log-probabilities of a turn's response."""
    nothing = [0.0] * len(turn.rendered.response_ids)
    return build_datum(turn.rendered, advantage=0.0, old_logprobs=nothing, off_policy=False)
