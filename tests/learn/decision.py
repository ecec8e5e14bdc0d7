"""Experiment (a): which credit lets the model learn to give now and reap later?

The embedded model plays the three-turn game of `tests.learn.game` in its own words. A short
imitation of both words of each situation, equally often, teaches it the form of an answer; from
there each credit mode starts with the same adapter and learns on-policy from its own games.
"""

from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from statistics import fmean
from tempfile import TemporaryDirectory

import torch

from db.records import Conversation
from db.settings import Settings
from tests.learn.game import BEST_RETURN, GREEDY_RETURN, INVEST, Situation
from tests.learn.outcome import Check, Outcome
from tests.learn.player import Player
from trainer.config import CreditMode, Device, Preset, TrainConfig

MODES = (CreditMode.RECIPE, CreditMode.IMMEDIATE, CreditMode.RETURN_TO_GO)
SEEDS = (0, 1, 2)
GAMES = 64
"""Games an iteration. Their answers share prefixes, so they cost little more than a single one."""

ITERATIONS = 16
RATE = 5e-5
FORM_STEPS, FORM_RATE = 24, 2e-4
FOUND, MISSED = 0.9, 0.1
"""P(plant) above the one counts as having found the investment, below the other as missing it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Course:
    """How one method did with one seed.

    Attributes:
        invest: P(plant) before each iteration, and after the last.
        returns: Mean pay of the games played at each of these points.
        ratio_error: Largest distance of a mean probability ratio from 1.
    """

    mode: CreditMode
    seed: int
    invest: tuple[float, ...]
    returns: tuple[float, ...]
    ratio_error: float


def run(settings: Settings, model: str, report: Callable[[str], None]) -> Outcome:
    """Train with each credit mode from the same start, once for each seed."""
    courses: list[Course] = []
    untrained = 0.0
    for seed in SEEDS:
        config = TrainConfig.for_preset(
            Preset.STANDARD, base_model=model, device=Device.CPU, seed=seed, learning_rate=RATE
        )
        player = Player(settings, config)
        untrained = player.probability(Situation(), INVEST)
        for step in range(FORM_STEPS):
            player.learn_words(FORM_RATE * (1 - step / FORM_STEPS))
        with TemporaryDirectory() as folder:
            start = player.client.save_state(f"{folder}/start").result().path
            for mode in MODES:
                player.client.load_state(start).result()
                courses.append(course(player, config.replace(credit=mode)))
                report(f"{mode}, seed {seed}: P(plant) {_series(courses[-1].invest)}")
    return judge(courses, untrained)


def course(player: Player, config: TrainConfig) -> Course:
    """Play and learn, iteration after iteration."""
    generator = torch.Generator().manual_seed(config.seed)
    invest: list[float] = []
    returns: list[float] = []
    ratio_error = 0.0
    for iteration in range(ITERATIONS + 1):
        games = player.play(GAMES, generator)
        invest.append(player.probability(Situation(), INVEST))
        returns.append(fmean(total_pay(game) for game in games))
        if iteration < ITERATIONS:
            ratio_error = max(ratio_error, abs(player.learn_from(games, config) - 1))
    return Course(
        mode=config.credit,
        seed=config.seed,
        invest=tuple(invest),
        returns=tuple(returns),
        ratio_error=ratio_error,
    )


def total_pay(game: Conversation) -> float:
    """Return what a game paid in all."""
    return sum(score.value for reply in game.assistant_messages for score in reply.scores)


def judge(courses: Sequence[Course], untrained: float) -> Outcome:
    """Return the table and what had to hold."""
    by_mode = {mode: [c for c in courses if c.mode is mode] for mode in MODES}
    starts = [c.invest[0] for c in courses]
    checks = [
        Check(
            name="both first moves are open at the start",
            passed=all(0.2 < start < 0.8 for start in starts),
            text=f"P(plant) from {min(starts):.2f} to {max(starts):.2f}",
        )
    ]
    for mode, own in by_mode.items():
        ends = [c.invest[-1] for c in own]
        finds = mode is CreditMode.RETURN_TO_GO
        checks.append(
            Check(
                name=f"{mode} {'finds' if finds else 'misses'} the investment",
                passed=min(ends) > FOUND if finds else max(ends) < MISSED,
                text=f"P(plant) {_series(ends)} at the end, one a seed",
            )
        )
    lines = [
        f"A game pays {BEST_RETURN:.1f} at best, {GREEDY_RETURN:.1f} to those who eat at once. "
        f"P(plant) of the untrained model: {untrained:.4f}.",
        f"{len(SEEDS)} seeds, {ITERATIONS} iterations of {GAMES} games; means over seeds.",
        f"{'credit':<14}{'P(plant) start':>16}{'end':>8}{'return start':>14}{'end':>8}",
        *(_row(mode, own) for mode, own in by_mode.items()),
        "Mean return before iteration",
        f"{'':<14}" + "".join(f"{i:>7}" for i in _shown()),
        *(_curve(mode, own) for mode, own in by_mode.items()),
    ]
    return Outcome(
        title="(a) Give now, reap later: the three-turn decision problem",
        lines=tuple(lines),
        figures={"untrained": untrained, "courses": [asdict(c) for c in courses]},
        checks=tuple(checks),
    )


def _shown() -> range:
    return range(0, ITERATIONS + 1, 4)


def _row(mode: CreditMode, own: Sequence[Course]) -> str:
    start, end = (fmean(c.invest[i] for c in own) for i in (0, -1))
    paid, pays = (fmean(c.returns[i] for c in own) for i in (0, -1))
    return f"{mode:<14}{start:>16.3f}{end:>8.3f}{paid:>14.2f}{pays:>8.2f}"


def _curve(mode: CreditMode, own: Sequence[Course]) -> str:
    return f"{mode:<14}" + "".join(f"{fmean(c.returns[i] for c in own):>7.2f}" for i in _shown())


def _series(values: Sequence[float]) -> str:
    return ", ".join(f"{value:.3f}" for value in values)
