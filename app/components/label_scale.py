"""The scales on which people give scores, and the keys that give them.

Every scale writes the same kind of number, so that a project can change its scale at any time
without a stored score changing; a score that is not one of the scale's steps is shown as it is.
"""

from collections.abc import Mapping
from dataclasses import dataclass

from app.components.format import score_text
from db.enums import ScoreScale
from db.records import SCORE_MAX, SCORE_MIN

STEP = 0.05
"""The finest step that people give by hand."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Choice:
    """One score that takes one click or one key.

    Attributes:
        label: Short words for it, as Markdown.
        keys: The keys that give it.
        names_key: Whether the label itself says which key, so that none need be printed.
    """

    value: float
    label: str
    keys: tuple[str, ...]
    names_key: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Scale:
    """A way to give scores.

    Attributes:
        low: The lowest score that can be given by hand; the highest is 1.
        is_fine: Whether scores between the choices can be given, in steps of 0.05.
        told: What the choices and keys mean, in one sentence.
    """

    choices: tuple[Choice, ...]
    low: float
    is_fine: bool
    told: str

    @property
    def keys(self) -> Mapping[str, float]:
        """The score that each key gives."""
        return {key: choice.value for choice in self.choices for key in choice.keys}

    def choice_of(self, value: float | None) -> Choice | None:
        """Return the choice with exactly this value, if there is one."""
        return next((choice for choice in self.choices if choice.value == value), None)

    def text(self, value: float | None) -> str:
        """Return a score as this scale tells it, as Markdown."""
        choice = self.choice_of(value)
        return score_text(value) if choice is None or self.is_fine else choice.label


def short(value: float) -> str:
    """Return a score as briefly as it can be told: "0", "0.3", "−0.75", "1"."""
    return f"{value:.2f}".rstrip("0").rstrip(".").replace("-", "−")


def nudged(value: float, by: int, *, low: float) -> float:
    """Return a score `by` fine steps higher, kept between `low` (or what it is) and 1."""
    steps = round(value / STEP) + by
    bottom = min(low, value)
    return round(min(SCORE_MAX, max(bottom, steps * STEP)), 2)


_UNIT = Scale(
    choices=(
        *(
            Choice(
                value=digit / 10,
                label=f"0.**{digit}**" if digit else "**0**",
                keys=(str(digit),),
                names_key=True,
            )
            for digit in range(10)
        ),
        Choice(value=1.0, label="**1**", keys=("A", "*")),
    ),
    low=0.0,
    is_fine=True,
    told="0 is useless or harmful, 1 is as good as it gets. A digit is the first decimal (7 is "
    "0.7), A or * gives 1 (all of it), + and − change that score, or the marked "
    "turn's, by 0.05.",
)
_STARS = Scale(
    choices=tuple(
        Choice(value=(stars - 1) / 4, label=f"{stars} ★", keys=(str(stars),))
        for stars in range(1, 6)
    ),
    low=0.0,
    is_fine=False,
    told="1 to 5 give so many stars. They are stored as 0, 0.25, 0.5, 0.75 and 1.",
)
_THUMBS = Scale(
    choices=(
        Choice(value=0.0, label=":material/thumb_down: down", keys=("0", "-")),
        Choice(value=1.0, label=":material/thumb_up: up", keys=("1", "+")),
    ),
    low=0.0,
    is_fine=False,
    told="1 or + is thumbs up, 0 or − is thumbs down. They are stored as 1 and 0.",
)
_SIGNED = Scale(
    choices=tuple(
        Choice(
            value=(digit - 5) / 4,
            label=short((digit - 5) / 4),
            keys=("5", "0") if digit == 5 else (str(digit),),
        )
        for digit in range(1, 10)
    ),
    low=SCORE_MIN,
    is_fine=True,
    told="1 is −1, the worst; 5 (or 0) is 0, neither good nor bad; 9 is 1, the best. + and − "
    "change that score, or the marked turn's, by 0.05.",
)

SCALES: Mapping[ScoreScale, Scale] = {
    ScoreScale.UNIT: _UNIT,
    ScoreScale.STARS: _STARS,
    ScoreScale.THUMBS: _THUMBS,
    ScoreScale.SIGNED: _SIGNED,
}
