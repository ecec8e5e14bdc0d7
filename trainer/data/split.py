"""Which conversations are held out of training, to judge it by."""

import random
from collections.abc import Hashable, Mapping


def hold_out(openings: Mapping[int, Hashable], share: float, seed: int) -> frozenset[int]:
    """Return the positions of the conversations to hold out.

    Conversations with the same opening stay on the same side: the model would otherwise be judged
    by prompts that it was trained on. So the share is met as closely from below as whole groups
    allow; at least one group is held out, and at least one is left to train on.

    Args:
        openings: Position of each conversation that has something to train on, and what it
            begins with.
        share: Between 0 and 0.5; 0 holds nothing out.
        seed: Fixes the choice, together with the order of the conversations.

    Returns:
        An empty set if the share is 0, or if all conversations begin alike.
    """
    groups: dict[Hashable, list[int]] = {}
    for position, opening in openings.items():
        groups.setdefault(opening, []).append(position)
    if not share or len(groups) < 2:
        return frozenset()
    shuffled = list(groups.values())
    random.Random(f"{seed}/held out").shuffle(shuffled)
    wanted = max(1, round(share * len(openings)))
    chosen: list[int] = []
    for group in shuffled:
        if len(chosen) + len(group) <= wanted:
            chosen += group
    return frozenset(chosen or min(shuffled, key=len))
