"""The conversations that are measured: random tokens, so that two of them share next to nothing; no torch."""

import random
from collections.abc import Sequence
from dataclasses import dataclass

from trainer.data.datums import build_datum
from trainer.data.rendering import RenderedTurn
from trainer.engine.types import Datum

TURN = (60, 120)
"""Tokens of a user's message and of the reply."""

SEED_PAIR = (((7, 7), (6, 14)), ((4, 11), (6, 14)))
"""The two conversations of the published recipe, as long as SmolLM2's tokenizer makes them."""

Lengths = Sequence[tuple[int, int]]
"""A conversation as the lengths of its messages and replies."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Row:
    """A line of the table: what is trained on, and how often that is timed.

    Attributes:
        name: What the line is called.
        unit: The conversations that are repeated, each time with other tokens.
        copies: How many units are trained together.
        added: How many units are trained together to find what one more costs.
        rounds: How often each way is timed.
        thinning: Of this many passes of a plain way one is timed; see `baselines.thinned`.
    """

    name: str
    unit: Sequence[Lengths]
    copies: int = 1
    added: int = 2
    rounds: int = 1
    thinning: int = 1

    def data(self, copies: int | None = None) -> list[Datum]:
        """Return the datums of that many units (of `self.copies` if None)."""
        return build_data(list(self.unit) * (self.copies if copies is None else copies))


ROWS = (
    Row(name="1 turn", unit=[[TURN]], added=4, rounds=3),
    Row(name="2 turns", unit=[[TURN] * 2], added=4, rounds=3),
    Row(name="4 turns", unit=[[TURN] * 4], rounds=3),
    Row(name="8 turns", unit=[[TURN] * 8], rounds=2, thinning=3),
    Row(name="16 turns", unit=[[TURN] * 16], thinning=5),
    Row(name="seed x 64", unit=SEED_PAIR, copies=64, added=64, thinning=8),
)

QUICK_ROWS = (
    Row(name="1 turn", unit=[[TURN]], rounds=2),
    Row(name="2 turns", unit=[[TURN] * 2]),
    Row(name="seed x 4", unit=SEED_PAIR, copies=4, added=4, thinning=4),
)

LONG, HUNDRED_SHORT, THOUSAND_SHORT = "4,000 tokens", "100 short", "1,000 short"

PEAK_CASES: dict[str, Sequence[Lengths]] = {
    **{row.name: list(row.unit) * row.copies for row in ROWS},
    LONG: [[(80, 120)] * 20],
    # A hundred already fill a pass, so that what is compared is what outlives a pass.
    HUNDRED_SHORT: [[(20, 30)]] * 100,
    THOUSAND_SHORT: [[(20, 30)]] * 1000,
}
"""What a process is given whose peak memory is asked for, by name."""


def build_data(conversations: Sequence[Lengths], *, vocabulary: int = 40_000) -> list[Datum]:
    """Return the datums of conversations, one a reply, each reply's prompt all that went before."""
    rng = random.Random(0)
    data: list[Datum] = []
    for lengths in conversations:
        history: tuple[int, ...] = ()
        for turn, (user, reply) in enumerate(lengths):
            prompt = history + tuple(rng.randrange(vocabulary) for _ in range(user))
            response = tuple(rng.randrange(vocabulary) for _ in range(reply))
            rendered = RenderedTurn(turn=turn, prompt_ids=prompt, response_ids=response)
            old = [-5.0] * reply
            data.append(build_datum(rendered, advantage=0.5, old_logprobs=old, off_policy=False))
            history = prompt + response
    return data
