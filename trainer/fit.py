"""Whether the passes of a run fit into memory, and which setting to change if they do not."""

from collections.abc import Sequence

from trainer.config import TrainConfig
from trainer.data.findings import Finding
from trainer.data.turns import TrainableTurn
from trainer.engine.prefix_tree import count_distinct
from trainer.pass_costs import RECOMPUTING_SHARE, Machine
from trainer.plan import by_conversation

LEAST_TOKENS = 16
"""A shorter limit for a turn, or a pass, would leave nothing to train on."""


def find_misfits(
    turns: Sequence[TrainableTurn], config: TrainConfig, machine: Machine, *, pass_tokens: int
) -> list[Finding]:
    """Return what memory stands in the way of, the worst alone; empty if all fits at full speed.

    Only a turn that is too long for a pass of its own forbids the start: a longer pass is split,
    and what is still too long computes layers twice.

    Args:
        turns: The turns to train on, at least one.
        config: The settings.
        machine: What the run has.
        pass_tokens: Distinct tokens of the run's largest pass.
    """
    memory = machine.calibration.pass_memory
    limit_bytes = min(machine.limit_bytes, machine.free_bytes)
    most = memory.most_tokens(limit_bytes, 1)
    longest = max(turns, key=lambda turn: turn.rendered.tokens)
    if longest.rendered.tokens > most:
        needed_bytes = memory.needed_bytes(longest.rendered.tokens, 1)
        return [_does_not_fit(longest, needed_bytes, limit_bytes, most, config)]

    if pass_tokens > most:
        return [_is_split(turns, pass_tokens, most)]
    share = memory.recomputed_share(pass_tokens, limit_bytes)
    if share:
        most = memory.most_tokens(limit_bytes, 0)
        return [_recomputes(turns, pass_tokens, share, most, limit_bytes)]
    return []


def _does_not_fit(
    turn: TrainableTurn, needed_bytes: float, limit_bytes: float, most: int, config: TrainConfig
) -> Finding:
    tokens = turn.rendered.tokens
    text = (
        f"{_capital(turn.place)} does not fit into memory: with every layer recomputed its "
        f"{tokens:,} tokens need {_gb(needed_bytes)} beside the model, and {_gb(limit_bytes)} are "
        "free for it. "
    )
    if most >= LEAST_TOKENS:
        text += (
            f"Lower the context limit (max_context_tokens) to {most}, which leaves longer turns "
            "out; or shorten the conversation, or choose a smaller model."
        )
    else:
        text += "Free some memory, or choose a smaller model."
    if config.memory_limit_gb:
        text += f" The memory limit (memory_limit_gb) is set to {config.memory_limit_gb:g} GB."
    return Finding(
        kind="will_not_fit",
        text=text,
        conversation=turn.conversation,
        turn=turn.turn,
        blocking=True,
    )


def _is_split(turns: Sequence[TrainableTurn], tokens: int, most: int) -> Finding:
    text = (
        f"A pass over {tokens:,} tokens does not fit into memory and will be split; at most "
        f"{most:,} fit. "
    )
    longest, place = _longest_conversation(turns)
    if longest <= most:
        return Finding(
            kind="is_split", text=text + f"Lower 'Tokens a pass' (token_budget) to {most}."
        )
    text += (
        f"{_capital(place)} is torn apart, at {longest:,} tokens: its beginning is computed more "
        "than once. Shorten it to save that time."
    )
    return Finding(kind="is_split", text=text)


def _recomputes(
    turns: Sequence[TrainableTurn], tokens: int, share: float, most: int, limit_bytes: float
) -> Finding:
    text = (
        f"The largest pass, of {tokens:,} tokens, computes layers twice to stay within "
        f"{_gb(limit_bytes)}, and takes {RECOMPUTING_SHARE * share:.0%} longer. "
    )
    longest, place = _longest_conversation(turns)
    if longest <= most:
        text += f"At full speed if 'Tokens a pass' (token_budget) is at most {most}."
    else:
        text += f"{_capital(place)} alone has {longest:,} tokens, and {most:,} fit at full speed."
    return Finding(kind="recomputes", text=text)


def _longest_conversation(turns: Sequence[TrainableTurn]) -> tuple[int, str]:
    """Return the most distinct tokens that a conversation has, and which one it is."""
    counts = {
        positions[0]: count_distinct([turns[p].rendered.model_input for p in positions])
        for positions in by_conversation(turns)
    }
    first = max(counts, key=counts.__getitem__)
    return counts[first], turns[first].place.rpartition(", turn")[0]


def _capital(text: str) -> str:
    return text[0].upper() + text[1:]


def _gb(size_bytes: float) -> str:
    size = max(size_bytes, 0) / 1e9
    return f"{size:.2f} GB" if size < 1 else f"{size:.1f} GB"
