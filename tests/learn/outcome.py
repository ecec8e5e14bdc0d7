"""What an experiment found: a table for people, figures for machines, and what had to hold."""

from dataclasses import asdict, dataclass
from typing import Any


@dataclass(frozen=True, slots=True, kw_only=True)
class Check:
    """One thing that must hold, and the figures that say whether it does."""

    name: str
    passed: bool
    text: str

    @property
    def line(self) -> str:
        """The check as it is printed."""
        return f"{'pass' if self.passed else 'FAIL'}  {self.name}: {self.text}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Outcome:
    """The result of one experiment.

    Attributes:
        lines: The table, as it is printed.
        figures: Everything that was measured, as JSON data.
    """

    title: str
    lines: tuple[str, ...]
    figures: dict[str, Any]
    checks: tuple[Check, ...]

    @property
    def passed(self) -> bool:
        """Whether everything that had to hold does."""
        return all(check.passed for check in self.checks)

    def to_json(self) -> dict[str, Any]:
        """Return the figures with the checks, as JSON data."""
        return {**self.figures, "checks": [asdict(check) for check in self.checks]}
