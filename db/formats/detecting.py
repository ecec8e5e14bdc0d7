"""Which format a file is in, how sure that is, and how its scores are to be read."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import NoReturn, cast

from db.errors import DataError
from db.formats.doubts import Doubt, find_doubt
from db.formats.draft import Draft, RawScore
from db.formats.fields import check_values, describe
from db.formats.format import Format
from db.formats.gather import gathered
from db.formats.guessing import guess_scale
from db.formats.opening import FileFacts, look, open_rows
from db.formats.result import Notes, RowError
from db.formats.rows import FileKind, Row
from db.formats.scales import Scale, ScoreRule
from db.formats.source import Source, Unpacked
from db.formats.values import UntrustedError
from db.records import ImportIssue, IssueOutcome

_SAMPLE_BYTES = 4 * 2**20
_SAMPLE_ROWS = 5000
_EXAMPLES = 5


@dataclass(frozen=True, slots=True, kw_only=True)
class SeenScores:
    """One kind of score in the sample of a file.

    Attributes:
        count: How many there are, those that say "no score" left out.
        missing: How many say "no score".
        examples: A few different values as the file has them.
        untrusted: How many the scale does not accept.
        doubt: What makes them suspicious as a whole, if anything does.
    """

    scale: Scale
    count: int
    missing: int
    examples: tuple[str, ...]
    untrusted: int
    doubt: Doubt | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Detection:
    """What a look at the beginning of a file tells.

    Attributes:
        format: The format that fits best, or the one that was asked for.
        confidence: How well it fits the sample, from 0 to 1.
        runner_up: The next best; empty if nothing else fits at all.
        kind: How rows are kept in the file.
        encoding: Name of the text's encoding.
        sampled_rows: How many rows were looked at.
        rule: How the file's scores would be read.
        scores: The kinds of scores that the sample has.
        issues: What is remarkable about the file as a whole.
        facts: How the file is read, for reading on.
    """

    format: str
    confidence: float
    runner_up: str
    runner_up_confidence: float
    kind: FileKind
    is_gzip: bool
    encoding: str
    sampled_rows: int
    rule: ScoreRule
    scores: tuple[SeenScores, ...]
    issues: tuple[ImportIssue, ...]
    facts: FileFacts


def detect_among(
    source: Source,
    formats: Mapping[str, Format],
    wanted: str | None,
    encoding: str | None = None,
) -> Detection:
    """Recognise a file's format from its content, in order of preference where two fit equally.

    Args:
        source: The file.
        formats: The formats to choose from, by name.
        wanted: The format the person chose, None to recognise it.
        encoding: The encoding the person chose, None to recognise it.

    Raises:
        DataError: if the file cannot be read, has no rows, or is of none of the formats.
    """
    facts = look(source, encoding)
    sample = list(_sample(source, facts))
    values = [row.value for row in sample]
    if not values:
        _refuse_sample(source, facts)
    fits = {name: format.confidence(values) for name, format in formats.items()}
    ranking = sorted(fits, key=lambda name: -fits[name])  # stable: the order of preference stays
    chosen = wanted or ranking[0]
    if wanted is None and fits[chosen] == 0:
        raise DataError(
            f"this is none of the known formats: its first row is {_shape(values[0])}",
            where="row 1",
            remedy=f"The formats are {', '.join(formats)}; docs/formats.md shows each.",
        )
    second = next(name for name in ranking if name != chosen)
    rule, seen = _scores(formats[chosen], sample)
    return Detection(
        format=chosen,
        confidence=fits[chosen],
        runner_up=second if fits[second] > 0 else "",
        runner_up_confidence=fits[second],
        kind=facts.kind,
        is_gzip=facts.is_gzip,
        encoding=facts.encoding.name,
        sampled_rows=len(sample),
        rule=rule,
        scores=seen,
        issues=_file_issues(facts),
        facts=facts,
    )


def _sample(source: Source, facts: FileFacts) -> Iterator[Row]:
    content = Unpacked(source)
    for number, row in enumerate(open_rows(content, facts), start=1):
        if isinstance(row, Row):
            yield row
        if number >= _SAMPLE_ROWS or content.unpacked_bytes > _SAMPLE_BYTES:
            return


def _refuse_sample(source: Source, facts: FileFacts) -> NoReturn:
    """Say why a file has no rows: its first issue, or that there is nothing in it.

    Raises:
        DataError: always.
    """
    for item in open_rows(Unpacked(source), facts):
        if isinstance(item, ImportIssue):
            raise DataError(item.reason, where=item.field, remedy=item.remedy)
    raise DataError(
        "the list is empty: there are no conversations in it",
        where="file",
        remedy="Choose a file that holds conversations.",
    )


def _scores(format: Format, sample: list[Row]) -> tuple[ScoreRule, tuple[SeenScores, ...]]:
    raws: dict[str, list[RawScore]] = {}
    for unit in gathered(sample, format.links):
        if isinstance(unit, ImportIssue):
            continue
        for draft in _drafts(format, unit):
            for _, scores in draft.scores:
                for raw in scores:
                    raws.setdefault(raw.name, []).append(raw)
    fixed = {scale.name: scale for scale in format.scales}
    order = [
        *(name for name in fixed if name in raws),
        *(name for name in raws if name not in fixed),
    ]
    seen = tuple(_seen(name, raws[name], fixed.get(name)) for name in order)
    return ScoreRule(tuple(scores.scale for scores in seen)), seen


def _drafts(format: Format, unit: Sequence[Row]) -> Iterator[Draft]:
    try:
        for row in unit:
            check_values(row.value, Notes(), format.max_depth)
        yield from format.parse(unit, Notes(row=unit[0].number))
    except RowError:
        return


def _seen(name: str, raws: Sequence[RawScore], fixed: Scale | None) -> SeenScores:
    values = [raw.value for raw in raws]
    scale = fixed or guess_scale(name, values)
    doubt = find_doubt(scale, values, is_guess=fixed is None)
    if doubt is not None and doubt.is_of_scale:
        scale = replace(scale, used=False)
    missing = untrusted = 0
    examples: dict[str, None] = {}
    for raw in raws:
        try:
            value = scale.value(raw.value, max(raw.siblings, 2))
        except UntrustedError:
            value = 0.0
            untrusted += 1
        if value is None:
            missing += 1
        elif len(examples) < _EXAMPLES:
            examples[str(raw.value)[:20]] = None
    return SeenScores(
        scale=scale,
        count=len(raws) - missing,
        missing=missing,
        examples=tuple(examples),
        untrusted=untrusted,
        doubt=doubt,
    )


def _file_issues(facts: FileFacts) -> tuple[ImportIssue, ...]:
    if not facts.encoding.remark:
        return ()
    return (
        ImportIssue(
            row=0,
            field="file",
            reason=facts.encoding.remark,
            remedy="If it looks wrong, choose another encoding, or save the file as UTF-8.",
            outcome=IssueOutcome.FLAGGED,
        ),
    )


def _shape(row: object) -> str:
    if not isinstance(row, dict):
        return describe(row)
    keys = [repr(key)[:40] for key in cast("dict[str, object]", row)]
    return f"an object with {', '.join(keys[:6])}" if keys else "an empty object"
