"""Experiment (c): many disliked replies that nobody's policy wrote. Does the model stay fluent?

Thirty complaints with typed replies, four out of five turns scored -1. Every way of training sees
the same data in the same order, with the same rate and number of steps. Plain PPO is the textbook
form: each epoch is an iteration, so its old policy is the model as that epoch finds it. Fluency is
the perplexity of ordinary prose that has nothing to do with the data.
"""

import io
import random
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from tempfile import TemporaryDirectory

from db.records import Conversation
from db.settings import Settings
from tests.learn.complaints import TROUBLES, cases
from tests.learn.outcome import Check, Outcome
from tests.learn.prose import Prose
from trainer.behaviour import first_progress
from trainer.config import Device, Guard, Preset, TrainConfig
from trainer.data.turns import build_turns, trainable_turns
from trainer.engine.client import ServiceClient, TrainingClient
from trainer.plan import make_plan
from trainer.runs.checkpoint import Progress
from trainer.runs.recorder import FileRecorder
from trainer.stepping import Stepper

CONVERSATIONS = 30
DISLIKED = 0.8
"""Share of turns that are scored -1."""

EPOCHS, CONVERSATIONS_A_STEP, RATE = 5, 2, 5e-4
"""Longer and harder than the defaults (3, 4, 2e-4): what somebody does who wants to see more."""

TOLERANCE = 1.05
"""Most that perplexity may grow with the guard, as a factor."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Way:
    """A way of training.

    Attributes:
        is_iterated: Whether the old policy is measured anew before each epoch.
    """

    name: str
    guard: Guard
    is_iterated: bool


GUARDED = Way(name="standard's guard", guard=Guard.TRUNCATE, is_iterated=False)
CLIPPED = Way(name="without guard", guard=Guard.NONE, is_iterated=False)
PLAIN = Way(name="plain PPO", guard=Guard.NONE, is_iterated=True)
ITERATED = Way(name="guard, iterated", guard=Guard.TRUNCATE, is_iterated=True)
WAYS = (GUARDED, CLIPPED, PLAIN, ITERATED)


@dataclass(frozen=True, slots=True, kw_only=True)
class Course:
    """How one way of training went.

    Attributes:
        bare: Perplexity of prose by itself over that of the base model, after each epoch.
        replies: The same for prose as replies in a chat.
        steps: Optimiser steps taken.
    """

    way: Way
    bare: tuple[float, ...]
    replies: tuple[float, ...]
    steps: int


def run(settings: Settings, model: str, report: Callable[[str], None]) -> Outcome:
    """Train in each way from the same fresh adapter."""
    config = TrainConfig.for_preset(
        Preset.STANDARD,
        base_model=model,
        device=Device.CPU,
        epochs=EPOCHS,
        batch_conversations=CONVERSATIONS_A_STEP,
        learning_rate=RATE,
        max_kl=0.0,
    )
    client = ServiceClient(device=config.device, settings=settings).create_lora_training_client(
        model,
        rank=config.lora_rank,
        seed=config.seed,
        train_unembed=False,
        alpha=config.lora_alpha,
        token_budget=config.token_budget,
    )
    prose = Prose(client)
    base = prose.bare(), prose.as_replies()
    courses: list[Course] = []
    with TemporaryDirectory() as folder:
        fresh = client.save_state(f"{folder}/fresh").result().path
        for number, way in enumerate(WAYS):
            client.load_state(fresh).result()
            recorder = FileRecorder(Path(folder) / f"{number}.jsonl", output=io.StringIO())
            courses.append(
                course(way, config.replace(guard=way.guard), client, recorder, prose, base)
            )
            report(f"{way.name}: {_series(courses[-1].replies)}")
    return judge(courses, base)


def course(
    way: Way,
    config: TrainConfig,
    client: TrainingClient,
    recorder: FileRecorder,
    prose: Prose,
    base: tuple[float, float],
) -> Course:
    """Train in one way, and measure prose after each epoch."""
    turns = trainable_turns(build_turns(data(), config, client.get_tokenizer()), config)
    plan = make_plan(turns, config)
    stepper = Stepper(config=config, client=client, turns=turns, plan=plan, recorder=recorder)

    def measured() -> Progress:
        progress = first_progress(turns, plan, ((), ()), config, client, recorder)
        assert progress is not None  # nobody asks for a stop
        return progress

    progress = measured()
    bare: list[float] = []
    replies: list[float] = []
    for step in plan:
        after = stepper.run(progress)
        assert after is not None
        progress = after
        if step is plan[-1] or plan[step.index + 1].epoch > step.epoch:
            bare.append(prose.bare() / base[0])
            replies.append(prose.as_replies() / base[1])
            if way.is_iterated:
                progress = replace(progress, old_logprobs=measured().old_logprobs)
    return Course(way=way, bare=tuple(bare), replies=tuple(replies), steps=progress.step)


def data(seed: int = 0) -> list[Conversation]:
    """Return the conversations; which turns are disliked is drawn, their share is not."""
    rng = random.Random(seed)
    chosen = rng.sample([case for trouble in TROUBLES for case in cases(trouble)], CONVERSATIONS)
    turns = 2 * CONVERSATIONS
    is_disliked = [turn < DISLIKED * turns for turn in range(turns)]
    rng.shuffle(is_disliked)
    conversations: list[Conversation] = []
    for place, case in enumerate(chosen):
        styles = {disliked: case.conversation(preferred=not disliked) for disliked in (True, False)}
        messages = [
            styles[is_disliked[2 * place + position // 2]].messages[position]
            for position in range(4)
        ]
        conversations.append(Conversation(messages=tuple(messages)))
    return conversations


def judge(courses: Sequence[Course], base: tuple[float, float]) -> Outcome:
    """Return the table and what had to hold."""
    by_way = {course.way: course for course in courses}
    guarded, plain = by_way[GUARDED], by_way[PLAIN]
    lines = [
        f"{CONVERSATIONS} conversations, {DISLIKED:.0%} of the turns scored -1, typed; "
        f"{plain.steps} steps at rate {RATE:g}, no KL limit.",
        f"Perplexity of the base model: {base[0]:.1f} for prose by itself, {base[1]:.1f} for "
        "prose as replies. After each epoch, as a factor on that:",
        f"{'':<18}{'':<9}" + "".join(f"{epoch + 1:>8}" for epoch in range(EPOCHS)),
    ]
    for one in courses:
        lines.append(f"{one.way.name:<18}{'prose':<9}{_series(one.bare)}")
        lines.append(f"{'':<18}{'replies':<9}{_series(one.replies)}")
    checks = (
        Check(
            name="the guard keeps the model fluent",
            passed=max(guarded.bare[-1], guarded.replies[-1]) <= TOLERANCE,
            text=f"perplexity × {guarded.bare[-1]:.3f} for prose, × {guarded.replies[-1]:.3f} "
            f"for replies; at most × {TOLERANCE}",
        ),
        Check(
            name="plain PPO does not",
            passed=min(plain.bare[-1], plain.replies[-1]) > TOLERANCE,
            text=f"perplexity × {plain.bare[-1]:.3f} for prose, × {plain.replies[-1]:.3f} "
            f"for replies; more than × {TOLERANCE}",
        ),
    )
    return Outcome(
        title="(c) Many disliked replies: is the model still fluent?",
        lines=tuple(lines),
        figures={"base": base, "courses": [asdict(one) for one in courses]},
        checks=checks,
    )


def _series(values: Sequence[float]) -> str:
    return "".join(f"{value:>8.3f}" for value in values)
