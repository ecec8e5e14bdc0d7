"""Argilla's records: fields that were shown, and one response for each user."""

from collections.abc import Iterator, Sequence
from typing import cast

from db.formats.draft import Draft, RawScore, draft
from db.formats.fields import JsonObject, as_list, as_object, is_object_with
from db.formats.format import Format, each_row
from db.formats.result import Notes, share
from db.formats.shown import attach, find_said, system_of

_SUFFIX = ".responses"


def _confidence(rows: Sequence[object]) -> float:
    return max(share(rows, _fits), 0.97 * share(rows, _is_flat))


def _fits(row: object) -> bool:
    return is_object_with(row, "fields", "responses") and isinstance(
        cast(JsonObject, row)["fields"], dict
    )


def _is_flat(row: object) -> bool:
    return isinstance(row, dict) and any(key.endswith(_SUFFIX) for key in cast(JsonObject, row))


def _parse_row(row: object, notes: Notes) -> Iterator[Draft]:
    record = as_object(row, "")
    if "fields" in record:
        shown, path = as_object(record["fields"], "fields"), "fields"
        raws = list(_responses(record.get("responses")))
    else:
        shown, path = {k: v for k, v in record.items() if "." not in k}, ""
        raws = list(_flat_responses(record))
    said = find_said(shown, path, notes)
    pieces, outcome = attach(said, [(raw, None) for raw in raws])
    yield draft(pieces, path=path or "row", outcome=outcome, system=system_of(shown, path))


def _responses(value: object) -> Iterator[RawScore]:
    """Read {"question": [{value, user_id}]}, or a list of {values: {question: {value}}, user_id}."""
    if isinstance(value, dict):
        for question, entries in cast(JsonObject, value).items():
            path = f"responses.{question}"
            for index, entry in enumerate(as_list(entries, path)):
                field = f"{path}[{index}]"
                data = as_object(entry, field)
                if _is_submitted(data):
                    yield from _score(question, data.get("value"), f"{field}.value", data)
        return
    for index, entry in enumerate(as_list(value or [], "responses")):
        field = f"responses[{index}]"
        data = as_object(entry, field)
        if not _is_submitted(data):
            continue
        values = as_object(data.get("values") or {}, f"{field}.values")
        for question, answer in values.items():
            path = f"{field}.values.{question}"
            value = as_object(answer, path).get("value")
            yield from _score(question, value, f"{path}.value", data)


def _flat_responses(record: JsonObject) -> Iterator[RawScore]:
    for key, value in record.items():
        if not key.endswith(_SUFFIX) or value is None:
            continue
        question = key.removesuffix(_SUFFIX)
        users = record.get(f"{key}.users")
        states = record.get(f"{key}.status")
        for index, answer in enumerate(as_list(value, key)):
            state = _at(states, index)
            data: JsonObject = {"user_id": _at(users, index), "status": state}
            if _is_submitted(data):
                yield from _score(question, answer, f"{key}[{index}]", data)


def _at(values: object, index: int) -> object:
    entries = cast("list[object]", values) if isinstance(values, list) else []
    return entries[index] if index < len(entries) else None


def _is_submitted(response: JsonObject) -> bool:
    return response.get("status") in (None, "submitted")


def _score(question: str, value: object, field: str, response: JsonObject) -> Iterator[RawScore]:
    """Yield an answer that can be a score; texts and lists of labels are none."""
    if isinstance(value, dict | list) or (isinstance(value, str) and len(value) > 20):
        return
    user = response.get("user_id")
    rater = user if isinstance(user, str) and user.strip() else "imported"
    yield RawScore(name=question, value=value, field=field, rater=rater)


ARGILLA = Format(
    name="argilla",
    title="Argilla records",
    about=(
        "Records with `fields` and `responses`, by question or by user, or flattened to "
        "`question.responses` columns. The conversation is found in a chat field, or in a prompt "
        "and a response. Each user's rating becomes a score by that user: of the reply if there "
        "is one, of the conversation as a whole if there are several; the rule can change that. "
        "Drafts and discarded responses are left out."
    ),
    example=(
        '{"fields": {"chat": [{"role": "user", "content": "Name a colour."}, {"role": "assistant", '
        '"content": "Blue."}]}, "responses": {"rating": [{"value": 4, "user_id": "ann"}, '
        '{"value": 5, "user_id": "bob"}]}}\n'
    ),
    confidence=_confidence,
    parse=each_row(_parse_row),
)
