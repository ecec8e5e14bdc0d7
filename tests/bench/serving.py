"""The chat endpoint beside plain `generate`, and what later turns of a chat compute; no torch here."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Self

from tests.bench.children import in_child
from tests.bench.stored import read_figures
from tests.bench.table import markdown
from tests.bench.targets import Target

STREAMS = 8
"""So many clients ask at once."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ChatTurn:
    """One turn of a long chat.

    Attributes:
        prompt_tokens: The whole prompt.
        new_tokens: Those that the chat had not seen or said before: the message and its frame.
        computed_tokens: Those of the prompt that went through the model.
        first_token_s: Seconds until the first token.
    """

    prompt_tokens: int
    new_tokens: int
    computed_tokens: int
    first_token_s: float

    @property
    def needless_tokens(self) -> int:
        """Tokens that were computed again."""
        return self.computed_tokens - self.new_tokens


@dataclass(frozen=True, slots=True, kw_only=True)
class ServingResults:
    """What was measured; ratios are medians over rounds of which each measures all, one by one.

    Attributes:
        first_token_s: Seconds from a request to its first token.
        generate_rate: Tokens a second of plain `generate`, one stream.
        one_rate: Tokens a second of the endpoint, one stream.
        many_rate: Tokens a second of the endpoint, `STREAMS` streams together.
        one_of_generate: One stream over `generate`.
        adapter_of_generate: One stream of an adapter over `generate` of the base.
        many_of_one: `STREAMS` streams together over one stream.
        turns: The long chat.
    """

    first_token_s: float
    generate_rate: float
    one_rate: float
    many_rate: float
    one_of_generate: float
    adapter_of_generate: float
    many_of_one: float
    turns: Sequence[ChatTurn]

    @classmethod
    def from_json(cls, data: Mapping[str, Any]) -> Self:
        """Read what `dataclasses.asdict` gave."""
        turns = tuple(read_figures(ChatTurn, turn) for turn in data.get("turns", ()))
        return read_figures(cls, {**data, "turns": turns})


def measure_serving() -> ServingResults:
    """Measure it, the server in a process of its own, `generate` in another."""
    return ServingResults.from_json(in_child("serving", "times"))


def serving_targets(results: ServingResults) -> list[Target]:
    """Return what serving must reach, beside what was measured."""
    return [
        Target("seconds to the first token", 1.0, results.first_token_s, is_least=False),
        Target("one stream, share of plain generate", 0.6, results.one_of_generate),
        Target(f"{STREAMS} streams at once over one stream", 2.5, results.many_of_one),
        Target(
            "tokens computed again, any later turn of a chat",
            0,
            max(turn.needless_tokens for turn in results.turns[1:]),
            form="{:.0f}",
            is_least=False,
        ),
    ]


def serving_table(results: ServingResults) -> str:
    """Return the figures as tables."""
    rates = [
        ["plain generate", f"{results.generate_rate:.1f}", "1.00"],
        ["one stream, base", f"{results.one_rate:.1f}", f"{results.one_of_generate:.2f}"],
        ["one stream, adapter", "", f"{results.adapter_of_generate:.2f}"],
        [
            f"{STREAMS} streams at once",
            f"{results.many_rate:.1f}",
            f"{results.many_of_one * results.one_of_generate:.2f}",
        ],
    ]
    turns = [
        [
            str(number),
            str(turn.prompt_tokens),
            str(turn.new_tokens),
            str(turn.computed_tokens),
            f"{turn.first_token_s:.2f}",
        ]
        for number, turn in enumerate(results.turns, start=1)
    ]
    return "\n\n".join(
        [
            markdown(("answers", "tokens a second", "× generate"), rates),
            markdown(("turn", "prompt", "new", "computed", "first token (s)"), turns),
        ]
    )
