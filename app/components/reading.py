"""What the figures of a run say, in plain words."""

import math

from app.components.learning import Movement

STILL_NATS = 0.005
"""Changes up to this many nats per token (half a per cent) count as none."""


def read_learning(moved: Movement) -> str:
    """Answer "Is it learning?" from the movement of the last epoch, as Markdown."""
    if not moved.scale:
        return (
            ":orange[:material/signal_disconnected:] **Nothing to learn:** every reply has an "
            "advantage of 0. Score the turns less alike."
        )
    verdict = _verdict(moved)
    parts = [
        f"replies to {name} have become {likelier(change)}"
        for name, change in (("favour", moved.favour_change), ("avoid", moved.avoid_change))
        if change is not None
    ]
    return f"{verdict} {', '.join(parts).capitalize()}."


def _verdict(moved: Movement) -> str:
    if moved.signal <= -STILL_NATS:
        return (
            ":red[:material/trending_down:] **No, it moves against the scores.** Look at the clip "
            "fraction and the KL before you use it."
        )
    if moved.signal < STILL_NATS:
        return (
            ":orange[:material/trending_flat:] **Not yet: hardly anything has moved.** More epochs "
            "or larger steps would move it more."
        )
    if (moved.avoid_change or 0.0) > STILL_NATS:
        return (
            ":blue[:material/trending_up:] **Partly.** It tells good from bad, but learns to speak "
            "like all of the data, low scores included."
        )
    if (moved.favour_change or 0.0) < -STILL_NATS:
        return (
            ":orange[:material/trending_flat:] **Partly.** It leaves what was scored low, but "
            "what was scored high as well."
        )
    return ":green[:material/trending_up:] **Yes, it moves as the scores ask.**"


def likelier(change: float) -> str:
    """Return a change of log-probability in words.

    Args:
        change: In nats per token.
    """
    if abs(change) <= STILL_NATS:
        return "neither likelier nor less likely"
    if change > math.log(2):
        return f"{math.exp(change):.1f} times as likely per token"
    share = abs(math.expm1(change))
    return f"{share:.1%} {'likelier' if change > 0 else 'less likely'} per token"
