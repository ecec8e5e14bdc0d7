"""The results as Markdown tables that can be read in a terminal; no torch here."""

from collections.abc import Sequence

from tests.bench.results import Results
from tests.bench.targets import Target

COLUMNS = (
    "",
    "tokens, turn by turn",
    "computed",
    "over distinct",
    "× full logits",
    "× selective",
    "× padded",
    "share of bound",
    "ms a token",
    "an added one costs",
    "peak GB",
)

ANSWERS = {True: "yes", False: "no", None: "not measured"}


def lines_table(results: Results) -> str:
    """Return the table of measured lines."""
    rows = []
    for row in results.rows:
        peak = results.peak_bytes.get(row.name)
        rows.append(
            [
                row.name,
                f"{row.turn_tokens:,}",
                f"{row.computed_tokens:,}",
                f"{row.computed_tokens / row.distinct_tokens:.3f}",
                f"{row.times_as_fast['full']:.2f}",
                f"{row.times_as_fast['selective']:.2f}",
                f"{row.times_as_fast['padded']:.2f}",
                f"{row.share_of_bound:.0%}",
                f"{1000 * row.token_s:.2f}",
                f"{row.added_conversation:.2f}",
                "–" if peak is None else f"{peak / 1e9:.2f}",
            ]
        )
    return markdown(COLUMNS, rows)


def targets_table(reached: Sequence[Target]) -> str:
    """Return the table of what must be reached."""
    rows = [_target_row(target) for target in reached]
    return markdown(("must reach", "target", "measured", "reached"), rows)


def _target_row(target: Target) -> list[str]:
    sign = "≥" if target.is_least else "≤"
    measured = "–" if target.measured is None else target.form.format(target.measured)
    limit = f"{sign} {target.form.format(target.limit)}"
    return [target.text, limit, measured, ANSWERS[target.is_reached]]


def markdown(head: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """Lay out cells as a Markdown table; the first column is text, the others numbers."""
    widths = [max(len(line[i]) for line in [head, *rows]) for i in range(len(head))]

    def line(cells: Sequence[str]) -> str:
        first, *others = zip(cells, widths, strict=True)
        parts = [first[0].ljust(first[1]), *(cell.rjust(width) for cell, width in others)]
        return f"| {' | '.join(parts)} |"

    rule = ["-" * widths[0], *("-" * (width - 1) + ":" for width in widths[1:])]
    return "\n".join([line(head), line(rule), *(line(row) for row in rows)])
