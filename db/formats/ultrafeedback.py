"""Several replies to one instruction, graded in several aspects; or the best beside a worse one."""

from collections.abc import Iterator, Sequence
from typing import cast

from db.enums import Role
from db.formats.draft import Draft, Piece, RawScore, draft, group_key
from db.formats.fields import (
    JsonObject,
    as_list,
    as_object,
    is_object_with,
    optional_text,
    remark_others,
    required,
    required_text,
)
from db.formats.format import Format, each_row
from db.formats.pairs import PREFERENCE, parse_pair
from db.formats.result import Notes, share
from db.formats.scales import Scale
from db.formats.values import UntrustedError
from db.records import Message

_ROW_KEYS = frozenset(
    {"instruction", "completions", "source", "models", "id", "correct_answers", "incorrect_answers"}
)
_PAIR_KEYS = frozenset(
    {"prompt", "prompt_id", "messages", "chosen", "rejected", "score_chosen", "score_rejected"}
)
_COMPLETION_KEYS = frozenset(
    {"model", "response", "overall_score", "fine-grained_score", "fine_grained_score",
     "annotations", "critique", "principle", "custom_system_prompt"}
)  # fmt: skip
_OVERALL = Scale(name="overall_score", low=1.0, high=10.0, to_low=0.0, to_high=1.0)
_BINARISED = Scale(name="score", low=1.0, high=10.0, to_low=0.0, to_high=1.0)
_ASPECTS = tuple(
    Scale(name=name, low=1.0, high=5.0, to_low=0.0, to_high=1.0, used=False)
    for name in (
        "fine-grained_score", "helpfulness", "honesty", "instruction_following", "truthfulness"
    )
)  # fmt: skip
_FAR_APART = 0.5


def _confidence(rows: Sequence[object]) -> float:
    return share(
        rows, lambda row: is_object_with(row, "instruction", "completions") or _is_pair(row)
    )


def _is_pair(row: object) -> bool:
    return is_object_with(
        row, "prompt", "chosen", "rejected", "score_chosen", "score_rejected"
    ) and (isinstance(cast(JsonObject, row)["prompt"], str))


def _parse_row(row: object, notes: Notes) -> Iterator[Draft]:
    data = as_object(row, "")
    if "completions" not in data:
        remark_others(data, _PAIR_KEYS, "", notes)
        yield from parse_pair({k: v for k, v in data.items() if k != "messages"}, notes)
        return
    remark_others(data, _ROW_KEYS, "", notes)
    question = Message(role=Role.USER, content=required_text(data, "instruction", ""))
    entries = as_list(required(data, "completions", ""), "completions")
    group = group_key([question]) if len(entries) > 1 else ""
    for index, value in enumerate(entries):
        path = f"completions[{index}]"
        entry = as_object(value, path)
        remark_others(entry, _COMPLETION_KEYS, "completions[]", notes)
        reply = Message(
            role=Role.ASSISTANT,
            content=required_text(entry, "response", path),
            model=optional_text(entry, "model", path) or None,
        )
        yield draft(
            [Piece(question), Piece(reply, tuple(_raw_scores(entry, path)))],
            path=path,
            system=optional_text(entry, "custom_system_prompt", path),
            group=group,
        )


def _raw_scores(entry: JsonObject, path: str) -> Iterator[RawScore]:
    ratings = list(_ratings(entry, path))
    if "overall_score" in entry:
        yield RawScore(
            name=_OVERALL.name,
            value=entry["overall_score"],
            field=f"{path}.overall_score",
            doubt=_doubt(entry["overall_score"], [raw.value for raw in ratings]),
        )
    for key in ("fine-grained_score", "fine_grained_score"):
        if key in entry:
            yield RawScore(name="fine-grained_score", value=entry[key], field=f"{path}.{key}")
    yield from ratings


def _ratings(entry: JsonObject, path: str) -> Iterator[RawScore]:
    field = f"{path}.annotations"
    annotations = entry.get("annotations")
    for aspect, value in as_object({} if annotations is None else annotations, field).items():
        found = value
        if isinstance(value, list) and value:  # the first of several annotations
            found = cast("list[object]", value)[0]
        if is_object_with(found, "Rating"):
            yield RawScore(
                name=aspect,
                value=cast(JsonObject, found)["Rating"],
                field=f"{field}.{aspect}.Rating",
            )


def _doubt(overall: object, ratings: Sequence[object]) -> str:
    """Say so if the overall score is far from the aspects' mean: a known slip is 10 for 1.0."""
    try:
        score = _OVERALL.value(overall)
        aspects = [value for rating in ratings if (value := _ASPECTS[0].value(rating)) is not None]
    except UntrustedError:
        return ""
    if score is None or not aspects or abs(score - sum(aspects) / len(aspects)) <= _FAR_APART:
        return ""
    shown = ", ".join(str(rating) for rating in ratings)
    return f"the overall score {overall} of 10 contradicts the ratings {shown} of 5"


ULTRAFEEDBACK = Format(
    name="ultrafeedback",
    title="UltraFeedback",
    about=(
        "`instruction` and `completions`, each with `overall_score` (1 to 10) and ratings by "
        'aspect (1 to 5, as text; "N/A" is none). The replies share a group. The overall score '
        "becomes the score; ratings can be switched on instead. An overall score that contradicts "
        "the ratings is left out and reported. Also the binarised form: `prompt`, `chosen`, "
        "`rejected`, `score_chosen`, `score_rejected`."
    ),
    example=(
        '{"instruction": "Name a colour.", "completions": [{"model": "a", "response": "Blue.", '
        '"overall_score": 8.5, "annotations": {"helpfulness": {"Rating": "5"}, '
        '"honesty": {"Rating": "N/A"}}}, {"model": "b", "response": "No.", "overall_score": 1.0, '
        '"annotations": {"helpfulness": {"Rating": "1"}}}]}\n'
    ),
    confidence=_confidence,
    parse=each_row(_parse_row),
    scales=(PREFERENCE, _BINARISED, _OVERALL, *_ASPECTS),
)
