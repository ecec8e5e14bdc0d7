"""Label Studio's tasks: what was shown under `data`, and what annotators said of it."""

from collections.abc import Iterator, Sequence
from typing import cast

from db.formats.draft import Draft, RawScore, draft
from db.formats.fields import (
    JsonObject,
    as_list,
    as_object,
    is_object_with,
    join,
    optional_text,
)
from db.formats.format import Format, each_row
from db.formats.result import Notes, share
from db.formats.shown import attach, find_said, system_of

_FLAT = frozenset({"annotation_id", "annotator", "lead_time"})
_FLAT_OTHERS = frozenset({"id", "created_at", "updated_at", "agreement", *_FLAT})


def _confidence(rows: Sequence[object]) -> float:
    return max(share(rows, _fits), 0.9 * share(rows, _is_flat))


def _fits(row: object) -> bool:
    if not is_object_with(row, "data"):
        return False
    data = cast(JsonObject, row)
    return isinstance(data["data"], dict) and any(
        isinstance(data.get(key), list) for key in ("annotations", "completions", "result")
    )


def _is_flat(row: object) -> bool:
    return isinstance(row, dict) and len(cast(JsonObject, row).keys() & _FLAT) >= 2


def _parse_row(row: object, notes: Notes) -> Iterator[Draft]:
    task = as_object(row, "")
    if "data" in task:
        shown, path = as_object(task["data"], "data"), "data"
        raws = list(_annotations(task))
    else:
        shown, path = {k: v for k, v in task.items() if k not in _FLAT_OTHERS}, ""
        rater = _rater(task.get("annotator"))
        raws = [
            (RawScore(name=k, value=v, field=k, rater=rater), None)
            for k, v in shown.items()
            if isinstance(v, int | float) and not isinstance(v, bool)
        ]
    said = find_said(shown, path, notes)
    pieces, outcome = attach(said, raws)
    yield draft(
        pieces,
        path=path or "row",
        outcome=outcome,
        title=optional_text(shown, "title", path),
        system=system_of(shown, path),
    )


def _annotations(task: JsonObject) -> Iterator[tuple[RawScore, int | None]]:
    """Yield each rating, and the message that it is about if the annotator marked one."""
    key = "annotations" if isinstance(task.get("annotations"), list) else "completions"
    for index, value in enumerate(as_list(task.get(key) or [], key)):
        path = f"{key}[{index}]"
        annotation = as_object(value, path)
        if annotation.get("was_cancelled") is True or annotation.get("skipped") is True:
            continue
        rater = _rater(annotation.get("completed_by"))
        results = as_list(annotation.get("result") or [], f"{path}.result")
        note = _note(results)
        for place, item in enumerate(results):
            field = f"{path}.result[{place}]"
            result = as_object(item, field)
            found = _rating(result)
            if found is not None:
                name = result.get("from_name")
                yield (
                    RawScore(
                        name=name if isinstance(name, str) and name else "rating",
                        value=found,
                        field=join(field, "value"),
                        rater=rater,
                        note=note,
                    ),
                    _marked(result),
                )


def _rating(result: JsonObject) -> object:
    value = result.get("value")
    if not isinstance(value, dict):
        return None
    data = cast(JsonObject, value)
    for key in ("rating", "number"):
        if key in data:
            return data[key]
    choices = data.get("choices")
    if isinstance(choices, list) and len(cast("list[object]", choices)) == 1:
        return cast("list[object]", choices)[0]
    return None


def _note(results: Sequence[object]) -> str:
    """Return what an annotator wrote in a text area."""
    texts: list[str] = []
    for item in results:
        value = cast(JsonObject, item).get("value") if isinstance(item, dict) else None
        text = cast(JsonObject, value).get("text") if isinstance(value, dict) else None
        entries = cast("list[object]", text) if isinstance(text, list) else []
        texts += [entry for entry in entries if isinstance(entry, str)]
    return "; ".join(texts)


def _marked(result: JsonObject) -> int | None:
    """Return the paragraph that a rating is about."""
    value = result.get("value")
    start = cast(JsonObject, value).get("start") if isinstance(value, dict) else None
    if isinstance(start, str) and start.isdecimal() and len(start) < 9:
        return int(start)
    return start if isinstance(start, int) and not isinstance(start, bool) else None


def _rater(who: object) -> str:
    """Name the annotator: a number, an address, or an object that has one of them."""
    if isinstance(who, dict):
        data = cast(JsonObject, who)
        who = data.get("email") or data.get("username") or data.get("id")
    if isinstance(who, str) and who.strip():
        return who
    if isinstance(who, int) and not isinstance(who, bool) and abs(who) < 10**18:
        return f"annotator {who}"
    return "imported"


LABEL_STUDIO = Format(
    name="label-studio",
    title="Label Studio tasks",
    about=(
        "Tasks with `data` and `annotations`, also the flat JSON_MIN export. The conversation is "
        "found in `data` (`messages`, `dialogue`, `conversation`, `chat`, or `prompt` and "
        "`response`). Ratings, numbers and single choices become scores, named by the control "
        "that they were given in, by rater. A rating that marks a message scores it; any other "
        "scores the reply if there is one, and the conversation as a whole if there are several. "
        "The rule can change that. Skipped annotations are left out."
    ),
    example=(
        '[{"id": 1, "data": {"prompt": "Name a colour.", "response": "Blue."}, "annotations": '
        '[{"completed_by": 7, "result": [{"from_name": "quality", "to_name": "response", "type": '
        '"rating", "value": {"rating": 4}}]}]}]\n'
    ),
    confidence=_confidence,
    parse=each_row(_parse_row),
)
