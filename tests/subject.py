"""The engine under test beside the oracle: one base model, one adapter, the same turns for both."""

import random
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from db.enums import Role
from db.records import Conversation, Message
from db.settings import Settings
from tests import oracle
from tests.oracle import OracleTurn
from trainer.config import Rendering
from trainer.data.datums import build_datum
from trainer.data.rendering import RenderedTurn, render_conversation
from trainer.engine.adapter import AdapterShape
from trainer.engine.gradients import BatchRunner, PassResult
from trainer.engine.losses import LossConfig, LossFunction
from trainer.engine.policy import Policy

SENTENCES = (
    "What is the capital of France?",
    "Paris, of course.",
    "How many people live there",
    "About 2.2 million.",
    "The price is too high for us",
    "Please look into my order",
    "No.",
    "I am sorry to hear that!",
    "Could you be more precise",
    "Ünïcode 🙂 and\nlines",
)

BRIEF = ("Hi!", "Yes.", "No, two.", "Where?", "🙂\nü")
"""For the real model, on which the oracle's pass for each turn takes long."""

LOG_RATIOS = (-0.6, -0.1, 0.05, 0.6)
"""Distances of old from new logprobs: inside and outside the clip band, never near its bounds."""


@dataclass(frozen=True)
class Subject:
    """The engine's policy, and the oracle's model with the same adapter weights."""

    policy: Policy
    reference: Any
    folder: Path

    def pass_over(
        self,
        turns: Sequence[OracleTurn],
        *,
        token_budget: int = 100_000,
        loss: LossFunction = "ppo",
        config: LossConfig | None = None,
        backward: bool = True,
        off_policy: bool = False,
    ) -> PassResult:
        """Return what the engine computes for the turns, packed into passes of the budget."""
        data = [datum_of(turn, off_policy=off_policy) for turn in turns]
        runner = BatchRunner(self.policy, token_budget)
        return runner.run(data, loss, config or LossConfig(), backward=backward)

    def response_logprobs(self, turns: Sequence[OracleTurn], result: PassResult) -> list[Tensor]:
        """Return the logprobs of each turn's response tokens; the context's must be 0."""
        responses = []
        for turn, logprobs_T in zip(turns, result.logprobs, strict=True):
            context, response = logprobs_T.split([len(turn.prompt_ids) - 1, len(turn.response_ids)])
            assert not context.any()
            responses.append(response)
        return responses

    def reference_logprobs(self, turns: Sequence[OracleTurn]) -> list[Tensor]:
        """Return what the oracle says of the same tokens."""
        with torch.no_grad():
            return [oracle.response_logprobs(self.reference, turn) for turn in turns]


def load_subject(
    folder: Path, scratch: Path, *, rank: int = 4, jitter: float = 0.05, seed: int = 1
) -> Subject:
    """Load the model in `folder` twice, under an adapter whose B is not 0 (unless jitter is)."""
    settings = Settings(home=scratch, database_url="sqlite://")
    policy = Policy.load(
        settings,
        str(folder),
        device=torch.device("cpu"),
        shape=AdapterShape(base_name=str(folder), rank=rank, alpha=2.0 * rank),
        seed=seed,
    )
    generator = torch.Generator().manual_seed(2)
    policy.set_tensors(
        {
            name: tensor + jitter * torch.randn(tensor.shape, generator=generator)
            for name, tensor in policy.tensors().items()
        }
    )
    policy.write(scratch / "adapter")
    return Subject(policy, oracle.load_adapted(folder, scratch / "adapter"), folder)


def datum_of(turn: OracleTurn, *, off_policy: bool = False) -> Any:
    """Return the turn as the product hands it to the engine."""
    rendered = RenderedTurn(turn=0, prompt_ids=turn.prompt_ids, response_ids=turn.response_ids)
    return build_datum(
        rendered,
        advantage=turn.advantage,
        old_logprobs=turn.old_logprobs,
        off_policy=off_policy,
    )


def dialogue(
    turns: int,
    *,
    seed: int,
    system: str = "",
    thinking: bool = False,
    sentences: Sequence[str] = SENTENCES,
) -> Conversation:
    """Return a conversation of that many assistant turns; every other one thinks, if asked to."""
    rng = random.Random(seed)
    messages = []
    for turn in range(turns):
        reply = rng.choice(sentences)
        if thinking and turn % 2:
            reply = f"<think>\n{rng.choice(sentences)}\n</think>\n\n{reply}"
        messages.append(Message(role=Role.USER, content=rng.choice(sentences)))
        messages.append(Message(role=Role.ASSISTANT, content=reply))
    return Conversation(messages=tuple(messages), system=system)


def with_advantages(
    subject: Subject, rendered: Sequence[tuple[tuple[int, ...], tuple[int, ...]]], *, seed: int = 0
) -> list[OracleTurn]:
    """Turn (prompt ids, response ids) pairs into turns that meet the loss in all its cases."""
    rng = random.Random(seed)
    blank = [OracleTurn(p, r, 0.0, (0.0,) * len(r)) for p, r in rendered]
    scored = subject.response_logprobs(blank, subject.pass_over(blank, backward=False))
    turns = []
    for (prompt_ids, response_ids), logprobs in zip(rendered, scored, strict=True):
        old = tuple(value - rng.choice(LOG_RATIOS) for value in logprobs.tolist())
        advantage = rng.choice((-1, 1)) * rng.uniform(0.1, 1.0)
        turns.append(OracleTurn(prompt_ids, response_ids, advantage, old))
    return turns


def rendered_turns(
    subject: Subject, conversations: Sequence[Conversation], rendering: Rendering, *, seed: int = 0
) -> list[OracleTurn]:
    """Return the turns of conversations as the product renders them, ready for both sides."""
    rendered = [
        (turn.prompt_ids, turn.response_ids)
        for conversation in conversations
        for turn in render_conversation(conversation, subject.policy.tokenizer, rendering)
    ]
    return with_advantages(subject, rendered, seed=seed)


def relative_difference(found: dict[str, Tensor], expected: dict[str, Tensor]) -> float:
    """Return |found - expected| / |expected| over all parameters; a missing gradient is 0.

    Where the clip removes every gradient, nothing but exactly 0 is right: else infinity.
    """
    assert found.keys() <= expected.keys()
    difference = sum(
        float((found.get(name, torch.zeros_like(value)) - value).double().square().sum())
        for name, value in expected.items()
    )
    length = sum(float(value.double().square().sum()) for value in expected.values())
    if length == 0:
        return 0.0 if difference == 0 else float("inf")
    return (difference / length) ** 0.5


def assert_engine_equals_oracle(
    subject: Subject, turns: Sequence[OracleTurn], *, token_budget: int = 100_000
) -> None:
    """Assert logprobs within 1e-4 nats and the ppo gradient within 1e-4 relative."""
    result = subject.pass_over(turns, token_budget=token_budget)
    expected = oracle.passes(subject.reference, turns)
    found = torch.cat(subject.response_logprobs(turns, result))
    assert float((found - torch.cat(expected.logprobs)).abs().max()) <= 1e-4
    assert relative_difference(result.gradients, expected.gradient) <= 1e-4
