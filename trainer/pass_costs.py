"""What a pass costs on a machine that was calibrated: its seconds and its bytes; no torch."""

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any, Self

RECOMPUTING_SHARE = 1 / 3
"""Recomputing every layer repeats the forward pass, a third of forward and backward pass."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Work:
    """What a pass computes.

    Attributes:
        tokens: Distinct tokens.
        pairs: Pairs of a token and one that it attends to, itself included.
    """

    tokens: int
    pairs: int

    @classmethod
    def chain(cls, tokens: int) -> Self:
        """Return the work of a single sequence."""
        return cls(tokens=tokens, pairs=tokens * (tokens + 1) // 2)


@dataclass(frozen=True, slots=True, kw_only=True)
class PassTime:
    """Seconds of a forward and backward pass, none of its layers recomputed.

    Attributes:
        fixed_s: For any pass.
        token_s: For each token.
        pair_s: For each pair of a token and one that it attends to.
    """

    fixed_s: float
    token_s: float
    pair_s: float

    @classmethod
    def fit(cls, measured: Sequence[tuple[int, float]]) -> Self:
        """Return the time as a function of the work.

        Args:
            measured: One to three different lengths of single sequences, ascending, each with the
                seconds it took. Three tell all three parts; two leave attention to the tokens'
                part; one tells the tokens' part alone. No part is below 0.
        """
        works = [Work.chain(length) for length, _ in measured]
        seconds = [taken for _, taken in measured]
        if len(measured) == 1:
            return cls(fixed_s=0.0, token_s=seconds[0] / works[0].tokens, pair_s=0.0)
        tokens = works[-1].tokens - works[0].tokens
        token_s, pair_s = (seconds[-1] - seconds[0]) / tokens, 0.0
        if len(measured) == 3:
            slopes = [
                (seconds[i + 1] - seconds[i]) / (works[i + 1].tokens - works[i].tokens)
                for i in range(2)
            ]
            pairs = [
                (works[i + 1].pairs - works[i].pairs) / (works[i + 1].tokens - works[i].tokens)
                for i in range(2)
            ]
            curved = (slopes[1] - slopes[0]) / (pairs[1] - pairs[0])
            if curved > 0 and slopes[0] > curved * pairs[0]:
                token_s, pair_s = slopes[0] - curved * pairs[0], curved
        fixed_s = seconds[0] - token_s * works[0].tokens - pair_s * works[0].pairs
        return cls(fixed_s=max(0.0, fixed_s), token_s=max(0.0, token_s), pair_s=pair_s)

    def seconds(self, work: Work) -> float:
        """Return what a pass takes."""
        return self.fixed_s + self.token_s * work.tokens + self.pair_s * work.pairs


@dataclass(frozen=True, slots=True, kw_only=True)
class PassMemory:
    """Bytes of a forward and backward pass, beside model and optimiser.

    Attributes:
        fixed_bytes: For any pass.
        kept_bytes: For each token, if no layer is recomputed.
        recomputed_bytes: For each token, if every layer is.
    """

    fixed_bytes: float
    kept_bytes: float
    recomputed_bytes: float

    def needed_bytes(self, tokens: int, recomputed: float) -> float:
        """Return what a pass takes with this share (0 to 1) of the layers recomputed."""
        token = self.kept_bytes + recomputed * (self.recomputed_bytes - self.kept_bytes)
        return self.fixed_bytes + tokens * token

    def recomputed_share(self, tokens: int, limit_bytes: float) -> float:
        """Return the share of the layers that a pass has to recompute; 1 if even all are too few."""
        excess = self.needed_bytes(tokens, 0) - limit_bytes
        if excess <= 0:
            return 0.0
        saved = tokens * (self.kept_bytes - self.recomputed_bytes)
        return min(1.0, excess / saved) if saved > 0 else 1.0

    def most_tokens(self, limit_bytes: float, recomputed: float) -> int:
        """Return the longest pass that fits, 0 if none does."""
        token = self.needed_bytes(1, recomputed) - self.fixed_bytes
        return max(0, int((limit_bytes - self.fixed_bytes) / token))


@dataclass(frozen=True, slots=True, kw_only=True)
class Calibration:
    """What a short trial says of a model on this machine.

    Attributes:
        pass_time: Seconds of a pass.
        forward_share: A forward pass alone takes this share of it.
        step_s: Seconds of an optimiser step.
        answer_token_s: Seconds for each token of an answer.
        load_s: Seconds until the model is loaded.
        pass_memory: Bytes of a pass.
        resident_bytes: What the process (or on CUDA, the device) holds with the model loaded.
        model_bytes: What of that came with the model.
        optimizer_bytes: Gradients and moving averages of the adapter.
        shares_prefixes: Whether a pass computes shared prefixes once.
    """

    pass_time: PassTime
    forward_share: float
    step_s: float
    answer_token_s: float
    load_s: float
    pass_memory: PassMemory
    resident_bytes: int
    model_bytes: int
    optimizer_bytes: int
    shares_prefixes: bool

    def to_json(self) -> dict[str, Any]:
        """Return it as JSON data; `from_json` is its inverse."""
        return asdict(self)

    @classmethod
    def from_json(cls, data: dict[str, Any]) -> Self:
        """Return the calibration that `to_json` wrote.

        Raises:
            KeyError, TypeError: if the data is of another form.
        """
        times, memory = PassTime(**data["pass_time"]), PassMemory(**data["pass_memory"])
        return cls(**{**data, "pass_time": times, "pass_memory": memory})


@dataclass(frozen=True, slots=True, kw_only=True)
class Machine:
    """A calibrated machine as it is now.

    Attributes:
        calibration: How fast it is, and what the model takes.
        free_bytes: What is free beside the loaded model and the optimiser.
        limit_bytes: What of that a pass may take.
    """

    calibration: Calibration
    free_bytes: float
    limit_bytes: float
