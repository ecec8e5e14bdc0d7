"""EveryTurn's own format: one object a line that loses nothing."""

from collections.abc import Iterator, Sequence
from datetime import UTC, datetime
from typing import cast

from db.enums import Role
from db.formats.draft import Draft
from db.formats.fields import (
    JsonObject,
    as_list,
    as_object,
    as_score,
    as_text,
    describe,
    is_object_with,
    join,
    optional_text,
    remark_others,
    required,
)
from db.formats.format import Format, each_row
from db.formats.messages import MESSAGE_KEYS, lift_system, parse_message, require_messages
from db.formats.result import Notes, RowError, share
from db.formats.tools import parse_tools
from db.records import IMPORTED_RATER, Conversation, Message, Score

_OWN_MESSAGE_KEYS = frozenset(
    {"id", "scores", "adjudicated", "model", "run_id", "token_ids", "logprobs", "sampling"}
)
_OWN_KEYS = frozenset(
    {
        "id",
        "title",
        "system",
        "source",
        "group",
        "tags",
        "outcomes",
        "tools",
        "created_at",
        "updated_at",
        "archived",
    }
)
_SCORE_KEYS = frozenset({"rater", "value", "note", "at"})
_LARGEST_ID = 2**63 - 1


def _confidence(rows: Sequence[object]) -> float:
    """Rows of messages fit; they are native for sure if any of them says more than openai can."""
    fitting = share(rows, lambda row: is_object_with(row, "messages"))
    return fitting if any(_says_more(row) for row in rows) else fitting / 2


def _says_more(row: object) -> bool:
    if not is_object_with(row, "messages"):
        return False
    data = cast(JsonObject, row)
    if any(data.get(key) is not None for key in _OWN_KEYS - {"id", "tools"}):
        return True
    messages = data["messages"]
    return isinstance(messages, list) and any(
        is_object_with(entry, key)
        for entry in cast("list[object]", messages)
        for key in _OWN_MESSAGE_KEYS - {"id", "model"}
    )


def _parse_row(row: object, notes: Notes) -> Iterator[Draft]:
    data = as_object(row, "")
    remark_others(data, _OWN_KEYS | {"messages"}, "", notes)
    messages = [
        _parse_message(as_object(value, f"messages[{index}]"), f"messages[{index}]", notes)
        for index, value in enumerate(as_list(required(data, "messages", ""), "messages"))
    ]
    system, rest = optional_text(data, "system", ""), tuple(messages)
    if data.get("system") is None:
        system, rest = lift_system(messages)
    tags = [] if data.get("tags") is None else as_list(data["tags"], "tags")
    conversation = Conversation(
        id=_optional_id(data, "id", ""),
        title=optional_text(data, "title", ""),
        system=system,
        tools=parse_tools(data),
        source=optional_text(data, "source", ""),
        group=optional_text(data, "group", ""),
        tags=tuple(as_text(tag, f"tags[{index}]") for index, tag in enumerate(tags)),
        messages=require_messages(rest, "messages"),
        outcomes=_parse_scores(data, "outcomes", "", notes),
        created_at=_optional_time(data, "created_at", ""),
        updated_at=_optional_time(data, "updated_at", ""),
        archived=_optional_flag(data, "archived"),
    )
    yield Draft(conversation)


def _parse_message(data: JsonObject, path: str, notes: Notes) -> Message:
    remark_others(data, MESSAGE_KEYS | _OWN_MESSAGE_KEYS, "messages[]", notes)
    said = parse_message(data, path, notes)
    short = _short_score(data, path)
    scores = short + _parse_scores(data, "scores", path, notes)
    adjudicated = _parse_adjudicated(data, path, notes)
    if (scores or adjudicated) and said.role is not Role.ASSISTANT:
        raise RowError(
            f"a {said.role} message carries a score",
            where=join(path, "scores"),
            remedy="Only replies of the assistant are scored.",
        )
    if short and any(score.rater == IMPORTED_RATER for score in scores[1:]):
        raise RowError(
            f"{IMPORTED_RATER!r} scores it twice",
            where=join(path, "score"),
            remedy='Keep either "score" or the score without a rater in "scores".',
        )
    token_ids = _optional_token_ids(data, path)
    logprobs = _optional_logprobs(data, path)
    if token_ids is not None and logprobs is not None and len(token_ids) != len(logprobs):
        raise RowError(
            f"there are {len(logprobs)} log-probabilities for {len(token_ids)} tokens",
            where=join(path, "logprobs"),
            remedy="Give one for each token, or leave both fields out.",
        )
    return Message(
        id=_optional_id(data, "id", path),
        role=said.role,
        content=said.content,
        tool_calls=said.tool_calls,
        tool_call_id=said.tool_call_id,
        scores=scores,
        adjudicated=adjudicated,
        model=optional_text(data, "model", path) or None,
        run_id=_optional_id(data, "run_id", path),
        token_ids=token_ids,
        logprobs=logprobs,
        sampling=_optional_sampling(data, path),
    )


def _short_score(data: JsonObject, path: str) -> tuple[Score, ...]:
    if data.get("score") is None:
        return ()
    return (Score(rater=IMPORTED_RATER, value=as_score(data["score"], join(path, "score"))),)


def _parse_scores(data: JsonObject, key: str, path: str, notes: Notes) -> tuple[Score, ...]:
    if data.get(key) is None:
        return ()
    scores: list[Score] = []
    for index, value in enumerate(as_list(data[key], join(path, key))):
        field = f"{join(path, key)}[{index}]"
        entry = as_object(value, field)
        remark_others(entry, _SCORE_KEYS, f"{key}[]", notes)
        score = _parse_score(entry, field)
        if any(other.rater == score.rater for other in scores):
            raise RowError(
                f"{score.rater[:40]!r} scores it twice",
                where=join(field, "rater"),
                remedy="Keep one score for each rater.",
            )
        scores.append(score)
    return tuple(scores)


def _parse_adjudicated(data: JsonObject, path: str, notes: Notes) -> Score | None:
    if data.get("adjudicated") is None:
        return None
    field = join(path, "adjudicated")
    entry = as_object(data["adjudicated"], field)
    remark_others(entry, _SCORE_KEYS, "adjudicated", notes)
    return _parse_score(entry, field)


def _parse_score(entry: JsonObject, field: str) -> Score:
    name = optional_text(entry, "rater", field)
    return Score(
        rater=name if name.strip() else IMPORTED_RATER,
        value=as_score(required(entry, "value", field), join(field, "value")),
        note=optional_text(entry, "note", field),
        at=_optional_time(entry, "at", field),
    )


def _optional_id(data: JsonObject, key: str, path: str) -> int | None:
    """Read a row's number; ids of other programs (texts) mean nothing here and are dropped."""
    value = data.get(key)
    if value is None or isinstance(value, str):
        return None
    return _whole_number(value, join(path, key))


def _whole_number(value: object, path: str) -> int:
    if isinstance(value, bool) or not isinstance(value, int) or not 0 <= value <= _LARGEST_ID:
        raise RowError(
            f"{describe(value)} stands where a whole number from 0 is expected",
            where=path,
            remedy="Correct it, or leave the field out.",
        )
    return value


def _optional_token_ids(data: JsonObject, path: str) -> tuple[int, ...] | None:
    if data.get("token_ids") is None:
        return None
    field = join(path, "token_ids")
    values = as_list(data["token_ids"], field)
    return tuple(_whole_number(value, f"{field}[{i}]") for i, value in enumerate(values))


def _optional_logprobs(data: JsonObject, path: str) -> tuple[float, ...] | None:
    if data.get("logprobs") is None:
        return None
    field = join(path, "logprobs")
    numbers: list[float] = []
    for index, value in enumerate(as_list(data["logprobs"], field)):
        if isinstance(value, bool) or not isinstance(value, int | float):
            raise RowError(
                f"{describe(value)} stands where a log-probability is expected",
                where=f"{field}[{index}]",
                remedy="Write a number, or leave token_ids and logprobs out.",
            )
        numbers.append(float(value))
    return tuple(numbers)


def _optional_sampling(data: JsonObject, path: str) -> JsonObject | None:
    if data.get("sampling") is None:
        return None
    return as_object(data["sampling"], join(path, "sampling"))


def _optional_time(data: JsonObject, key: str, path: str) -> datetime | None:
    text = optional_text(data, key, path)
    if not text:
        return None
    try:
        time = datetime.fromisoformat(text)
        return time.replace(tzinfo=UTC) if time.tzinfo is None else time.astimezone(UTC)
    except (ValueError, OverflowError):
        raise RowError(
            f"{text[:40]!r} is not a time",
            where=join(path, key),
            remedy="Write it like 2026-01-31T12:00:00Z, or leave it out.",
        ) from None


def _optional_flag(data: JsonObject, key: str) -> bool:
    value = data.get(key)
    if value is None:
        return False
    if not isinstance(value, bool):
        raise RowError(
            f"{describe(value)} stands where true or false is expected",
            where=key,
            remedy="Correct it, or leave the field out.",
        )
    return value


NATIVE = Format(
    name="native",
    title="EveryTurn (nothing is lost)",
    about=(
        "EveryTurn's own form, and the only one that loses nothing. Just `messages` is needed. A "
        'score without `rater` belongs to the rater "imported", and `"score": 0.5` in a reply is '
        "short for one of those. `tools` are the functions that the assistant may call. `group` is "
        "shared by conversations that answer the same prompt. "
        "Replies that a model sampled carry `model`, `token_ids`, `logprobs` and, as far as it is known, "
        "`sampling` (temperature and the like). Scores are read as they are, from -1 to 1; a row with any other value is skipped."
    ),
    example=(
        '{"title": "Parcel", "system": "You work at a support desk.", "tags": ["support"], '
        '"messages": [{"role": "user", "content": "Where is my parcel?"}, {"role": "assistant", '
        '"content": "May I have the order number?", "scores": [{"rater": "kim", "value": 0.8, '
        '"note": "asks first"}]}], "outcomes": [{"rater": "kim", "value": 0.5}]}\n'
    ),
    confidence=_confidence,
    parse=each_row(_parse_row),
)
