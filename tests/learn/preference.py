"""Experiment (b): does a run with default settings teach a style that carries over to new prompts?

Complaints answered in two styles are scored and trained on with the `standard` preset as it is.
Whole troubles are held out, others with each seed. On these the model is asked twice: which of the
two replies it finds likelier, and what it says by itself.
"""

from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from statistics import fmean
from tempfile import TemporaryDirectory

from db.enums import Role
from db.records import Conversation, Message
from db.settings import Settings
from tests import runs
from tests.learn.complaints import Case, offers_a_step, split
from tests.learn.intervals import t_interval
from tests.learn.outcome import Check, Outcome
from tests.learn.reader import Reader
from trainer.config import Device, Preset, TrainConfig
from trainer.engine.types import SamplingParams

SEEDS = (0, 1, 2)
HELD_OUT_TROUBLES = 4
"""Of twelve; each happens to three goods, so 24 complaints are trained on and 12 are held out."""

SAMPLES = 4
SAMPLING = SamplingParams(max_tokens=24, temperature=0.7, seed=0)


@dataclass(frozen=True, slots=True)
class Standing:
    """How a model does on held-out complaints.

    Attributes:
        win_rate: Share of reply pairs in which the preferred style has the higher mean logprob.
        margin: Mean difference of these logprobs, preferred minus other, in nats per token.
        offer_rate: Share of sampled replies that offer a step as the preferred style does.
        example: One sampled reply.
    """

    win_rate: float
    margin: float
    offer_rate: float
    example: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Trial:
    """One seed: its own split, order and first adapter weights."""

    seed: int
    before: Standing
    after: Standing


def run(settings: Settings, model: str, report: Callable[[str], None]) -> Outcome:
    """Train once for each seed and compare before and after."""
    base = Reader(settings, model)
    trials: list[Trial] = []
    for seed in SEEDS:
        trained, held_out = split(seed, HELD_OUT_TROUBLES)
        config = TrainConfig.for_preset(
            Preset.STANDARD, base_model=model, device=Device.CPU, seed=seed, sample_prompts=0
        )
        data = [c.conversation(preferred=style) for c in trained for style in (True, False)]
        with TemporaryDirectory() as folder:
            out = Path(folder) / "run"
            runs.run(out, data, config, settings)
            tuned = Reader(settings, model, str(out / "adapter"))
        trials.append(
            Trial(seed=seed, before=standing(base, held_out), after=standing(tuned, held_out))
        )
        report(f"seed {seed}: {trials[-1].after}")
    return judge(trials)


def standing(reader: Reader, held_out: Sequence[Case]) -> Standing:
    """Measure a model on held-out complaints."""
    margins = [
        reader.reply_logprob(good) - reader.reply_logprob(bad)
        for case in held_out
        for good, bad in pairs(case)
    ]
    replies = [
        reply for case in held_out for reply in reader.replies(opening(case), SAMPLING, SAMPLES)
    ]
    return Standing(
        win_rate=fmean(margin > 0 for margin in margins),
        margin=fmean(margins),
        offer_rate=fmean(offers_a_step(reply) for reply in replies),
        example=replies[0],
    )


def opening(case: Case) -> Conversation:
    """Return the conversation up to the first reply."""
    return Conversation(messages=(Message(role=Role.USER, content=case.asks[0]),))


def pairs(case: Case) -> list[tuple[Conversation, Conversation]]:
    """Return, for each turn, the conversation up to a preferred and to another last reply.

    Both have the same history. In the second turn it holds the other style's reply, so that the
    preferred one cannot be copied from it.
    """
    other = case.conversation(preferred=False).messages
    preferred = case.conversation(preferred=True).messages
    return [
        (
            Conversation(messages=(*other[:end], preferred[end])),
            Conversation(messages=other[: end + 1]),
        )
        for end in (1, 3)
    ]


def judge(trials: Sequence[Trial]) -> Outcome:
    """Return the table and what had to hold."""
    won = t_interval([trial.after.win_rate for trial in trials])
    win_gain = t_interval([trial.after.win_rate - trial.before.win_rate for trial in trials])
    offer_gain = t_interval([trial.after.offer_rate - trial.before.offer_rate for trial in trials])
    lines = [
        f"{len(trials)} seeds, each with its own held-out troubles; `standard` with its defaults.",
        f"{'seed':<6}{'win rate':>16}{'margin (nats)':>20}{'offers a step':>20}",
        *(_row(trial) for trial in trials),
        f"Win rate after: {won}; gain {win_gain}. Gain of sampled offers: {offer_gain}.",
        "(mean over seeds and 95 % t-interval)",
        f"Before: {trials[0].before.example!r}",
        f"After:  {trials[0].after.example!r}",
    ]
    checks = (
        Check(
            name="the preferred style wins on held-out prompts",
            passed=won.low > 0.5,
            text=f"win rate {won}, above 0.5 with its whole interval",
        ),
        Check(
            name="it wins more often than before",
            passed=win_gain.low > 0,
            text=f"gain {win_gain}, above 0 with its whole interval",
        ),
        Check(
            name="sampled replies take the style up",
            passed=offer_gain.low > 0,
            text=f"gain {offer_gain}, above 0 with its whole interval",
        ),
    )
    return Outcome(
        title="(b) A preferred style on held-out prompts",
        lines=tuple(lines),
        figures={"trials": [asdict(trial) for trial in trials]},
        checks=checks,
    )


def _row(trial: Trial) -> str:
    before, after = trial.before, trial.after
    return (
        f"{trial.seed:<6}{before.win_rate:>8.2f} → {after.win_rate:.2f}"
        f"{before.margin:>12.2f} → {after.margin:>5.2f}"
        f"{before.offer_rate:>13.2f} → {after.offer_rate:.2f}"
    )
