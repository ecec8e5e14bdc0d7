"""The colours of the charts: readable on the light and the dark theme, and without red-green sight.

Each colour keeps a contrast of at least 3 : 1 against both page backgrounds.
"""

TURN_COLOURS = (
    "#2f80d0",  # blue
    "#cf6a17",  # orange
    "#1d9174",  # green
    "#a05fc4",  # violet
    "#d1517f",  # pink
    "#8b7a1f",  # olive
    "#3d8fa8",  # teal
    "#b05a45",  # brick
)
"""One for each turn position; a ninth turn starts again with another marker."""

TURN_MARKERS = ("circle", "square", "diamond", "triangle-up", "cross")

POSITIVE = "#2f80d0"
NEGATIVE = "#cf6a17"
NEUTRAL = "#808590"


def turn_colour(turn: int) -> str:
    """Return the colour of an assistant turn, counted from 0: the same on every chart."""
    return TURN_COLOURS[turn % len(TURN_COLOURS)]


def turn_marker(turn: int) -> str:
    """Return a marker that tells turns apart where the colour alone would not."""
    cycle, position = divmod(turn, len(TURN_COLOURS))
    return TURN_MARKERS[(position + cycle) % len(TURN_MARKERS)]


def translucent(colour: str, opacity: float) -> str:
    """Return `#rrggbb` as an rgba() colour; `opacity` from 0 to 1."""
    red, green, blue = (int(colour[start : start + 2], 16) for start in (1, 3, 5))
    return f"rgba({red}, {green}, {blue}, {opacity:g})"
