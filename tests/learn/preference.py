"""Experiment (b): does a run teach a style that carries over to new prompts?

Complaints answered in two styles are scored and trained on: with the `standard` preset as it is, and
with the guard that imitates typed replies by their scores. Whole troubles are held out, others with
each seed. On these the model is asked twice: which of the two replies it finds likelier, and what it
says by itself.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from statistics import fmean
from tempfile import TemporaryDirectory
from typing import Any

from db.enums import Role
from db.records import Conversation, Message
from db.settings import Settings
from tests import runs
from tests.learn.complaints import Case, offers_a_step, split
from tests.learn.intervals import t_interval
from tests.learn.outcome import Check, Outcome
from tests.learn.reader import Reader
from trainer.config import Device, Guard, Preset, TrainConfig
from trainer.engine.types import SamplingParams
from trainer.runs.folder import RunFolder, read_json

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
class Method:
    """A way of training.

    Attributes:
        settings: What differs from the `standard` preset.
    """

    name: str
    settings: Mapping[str, Any]


DEFAULTS = Method(name="standard", settings={})
IMITATING = Method(name="exp_weighted", settings={"guard": Guard.EXP_WEIGHTED, "max_kl": 0.0})
METHODS = (DEFAULTS, IMITATING)


@dataclass(frozen=True, slots=True, kw_only=True)
class Trial:
    """One method with one seed, which has its own split, order and first adapter weights.

    Attributes:
        steps: Optimiser steps taken.
        planned_steps: Those that would have been taken without a KL limit.
    """

    method: str
    seed: int
    steps: int
    planned_steps: int
    before: Standing
    after: Standing


def run(settings: Settings, model: str, report: Callable[[str], None]) -> Outcome:
    """Train with each method, once for each seed, and compare before and after."""
    base = Reader(settings, model)
    trials: list[Trial] = []
    for seed in SEEDS:
        trained, held_out = split(seed, HELD_OUT_TROUBLES)
        data = [case.conversation(preferred=style) for case in trained for style in (True, False)]
        before = standing(base, held_out)
        for method in METHODS:
            config = TrainConfig.for_preset(
                Preset.STANDARD,
                base_model=model,
                device=Device.CPU,
                seed=seed,
                sample_prompts=0,
                **method.settings,
            )
            with TemporaryDirectory() as name:
                folder = RunFolder(Path(name) / "run")
                runs.run(folder.path, data, config, settings)
                summary = read_json(folder.summary)
                tuned = Reader(settings, model, str(folder.adapter))
            trials.append(
                Trial(
                    method=method.name,
                    seed=seed,
                    steps=summary["steps"],
                    planned_steps=summary["planned_steps"],
                    before=before,
                    after=standing(tuned, held_out),
                )
            )
            report(f"{method.name}, seed {seed}: {trials[-1].after}")
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
    lines = [
        f"{len(SEEDS)} seeds, each with its own held-out troubles.",
        f"{'method':<14}{'seed':>4}{'steps':>10}{'win rate':>16}{'margin (nats)':>18}"
        f"{'offers a step':>17}",
        *(_row(trial) for trial in trials),
        "Means over seeds after training, with 95 % t-intervals:",
    ]
    checks: list[Check] = []
    for method in METHODS:
        own = [trial for trial in trials if trial.method == method.name]
        won = t_interval([trial.after.win_rate for trial in own])
        gain = t_interval([trial.after.win_rate - trial.before.win_rate for trial in own])
        offers = t_interval([trial.after.offer_rate for trial in own])
        lines.append(f"{method.name:<14}win rate {won}, gain {gain}; offers a step {offers}")
        checks.append(
            Check(
                name=f"{method.name}: the preferred style wins on held-out prompts",
                passed=won.low > 0.5 and gain.low > 0,
                text=f"win rate {won}, whole interval above 0.5; gain {gain}, above 0",
            )
        )
        if method is IMITATING:
            checks.append(
                Check(
                    name=f"{method.name}: the model's own replies take the style up",
                    passed=offers.low > 0.5,
                    text=f"offers a step {offers}, whole interval above 0.5",
                )
            )
    lines.append(f"Before:        {trials[0].before.example!r}")
    for trial in trials[: len(METHODS)]:
        lines.append(f"{trial.method + ':':<15}{trial.after.example!r}")
    return Outcome(
        title="(b) A preferred style on held-out prompts",
        lines=tuple(lines),
        figures={"trials": [asdict(trial) for trial in trials]},
        checks=tuple(checks),
    )


def _row(trial: Trial) -> str:
    before, after = trial.before, trial.after
    return (
        f"{trial.method:<14}{trial.seed:>4}{trial.steps:>4} of {trial.planned_steps:<2}"
        f"{before.win_rate:>9.2f} → {after.win_rate:.2f}"
        f"{before.margin:>10.2f} → {after.margin:>5.2f}"
        f"{before.offer_rate:>10.2f} → {after.offer_rate:.2f}"
    )
