"""Writing and reading again gives back all that a format can carry."""

import csv
import io
import zipfile
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from db.enums import Role
from db.formats import WRITABLE, parse, write, write_to
from db.formats.dataset_folder import PARQUET_NAME, write_folder
from db.formats.draft import group_key
from db.records import IMPORTED_RATER, Conversation, Message, Score
from tests.db.formats.making import conversations, scores, storable, tool_calls, tools
from tests.db.formats.reading import said

quick = settings(max_examples=50, deadline=None)


def written(original: list[Conversation], format: str) -> bytes:
    stream = io.BytesIO()
    write_to(original, format, stream)
    return stream.getvalue()


def read_back(data: bytes, format: str) -> list[Conversation]:
    result = parse(data)
    assert result.format == format
    assert result.skipped == ()
    return list(result.conversations)


@st.composite
def spoken(draw: st.DrawFn, *, scored: st.SearchStrategy[Any] = st.just(())) -> Message:  # noqa: B008
    """A message with nothing but what was said, and scores of replies."""
    role = draw(st.sampled_from(Role))
    extra: dict[str, Any] = {}
    if role is Role.ASSISTANT:
        extra = {"tool_calls": draw(tool_calls), "scores": draw(scored)}
    if role is Role.TOOL:
        extra = {"tool_call_id": draw(st.none() | storable.filter(bool))}
    return Message(role=role, content=draw(storable), **extra)


def talks(messages: st.SearchStrategy[Message], **facts: Any) -> st.SearchStrategy[Conversation]:
    """Conversations that no reader takes apart: a first system message is the system prompt."""
    return st.builds(
        Conversation,
        messages=st.lists(messages, min_size=1, max_size=4).map(tuple),
        system=storable,
        **facts,
    ).filter(lambda c: bool(c.system) or c.messages[0].role is not Role.SYSTEM)


@quick
@given(original=st.lists(talks(spoken(), tools=tools), min_size=1, max_size=3))
def test_openai_carries_all_that_was_said(original: list[Conversation]) -> None:
    assert read_back(written(original, "openai"), "openai") == original


def plain_calls(message: Message) -> Message:
    """A message as ShareGPT knows it: without ids, and calls that stand alone."""
    functions = [{"type": "function", "function": call["function"]} for call in message.tool_calls]
    content = "" if functions else message.content
    return replace(message, tool_calls=tuple(functions), tool_call_id=None, content=content)


@quick
@given(original=st.lists(talks(spoken().map(plain_calls), tools=tools), min_size=1, max_size=3))
def test_sharegpt_carries_what_was_said_without_ids(original: list[Conversation]) -> None:
    assert read_back(written(original, "sharegpt"), "sharegpt") == original


single = scores.map(lambda given: tuple(replace(score, at=None) for score in given[:1]))


@quick
@given(
    original=st.lists(
        talks(spoken(scored=single), title=storable, group=storable), min_size=1, max_size=3
    )
)
def test_csv_carries_one_score_a_turn_titles_and_groups(original: list[Conversation]) -> None:
    assert read_back(written(original, "csv"), "csv") == original


@quick
@given(original=st.lists(conversations, min_size=1, max_size=3))
def test_the_data_set_folder_loses_nothing(original: list[Conversation]) -> None:
    with zipfile.ZipFile(io.BytesIO(written(original, "datasets"))) as archive:
        table = archive.read(f"dataset/{PARQUET_NAME}")
    assert read_back(table, "native") == original


@st.composite
def replies(draw: st.DrawFn, values: st.SearchStrategy[float]) -> Conversation:
    """A conversation that ends with a reply by one rater, the only scored one."""
    before = draw(st.lists(spoken(), min_size=1, max_size=3))
    score = Score(rater=IMPORTED_RATER, value=draw(values))
    reply = Message(role=Role.ASSISTANT, content=draw(storable), scores=(score,))
    conversation = Conversation(messages=(*before, reply), system=draw(storable), tools=draw(tools))
    if not conversation.system and before[0].role is Role.SYSTEM:
        return replace(conversation, system="s")
    return conversation


@quick
@given(original=replies(st.sampled_from([0.0, 1.0])))
def test_kto_carries_prompt_reply_and_thumb(original: Conversation) -> None:
    assert read_back(written([original], "kto"), "kto") == [original]


@quick
@given(original=replies(st.floats(-1, 1)))
def test_scored_completions_carry_prompt_reply_and_score(original: Conversation) -> None:
    assert read_back(written([original], "completions"), "completions") == [original]


@quick
@given(better=replies(st.floats(0.5, 1)), text=storable, value=st.floats(-1, 0))
def test_preference_pairs_carry_both_replies_and_scores(
    better: Conversation, text: str, value: float
) -> None:
    reply = replace(
        better.messages[-1],
        content=f"{better.messages[-1].content} or {text}",
        scores=(Score(rater=IMPORTED_RATER, value=value),),
    )
    worse = replace(better, messages=(*better.messages[:-1], reply))
    system = [Message(role=Role.SYSTEM, content=better.system)] if better.system else []
    key = group_key([*system, *better.messages[:-1]], better.tools)
    expected = [replace(better, group=key), replace(worse, group=key)]
    assert read_back(written([worse, better], "preference"), "preference") == expected


def reply(text: str, *values: float) -> Message:
    given = tuple(Score(rater=f"r{i}", value=value) for i, value in enumerate(values))
    return Message(role=Role.ASSISTANT, content=text, scores=given)


ASK = Message(role=Role.USER, content="q")


def test_each_scored_turn_is_written_with_all_that_was_said_before() -> None:
    talk = Conversation(
        system="s", messages=(ASK, reply("a", 0.25, 0.5), ASK, reply("b"), ASK, reply("c", -1.0))
    )
    rows = parse(written([talk, talk], "completions")).conversations
    assert [said(c) for c in rows] == [
        [("user", "q"), ("assistant", "a", 0.375)],
        [("user", "q"), ("assistant", "a"), ("user", "q"), ("assistant", "b"), ("user", "q"),
         ("assistant", "c", -1.0)],
    ]  # fmt: skip
    assert {c.system for c in rows} == {"s"}


def test_a_reply_is_a_thumb_up_from_one_half() -> None:
    talks = [Conversation(messages=(ASK, reply(str(v), v))) for v in (-1.0, 0.0, 0.49, 0.5, 1.0)]
    assert [c.messages[1].scores[0].value for c in parse(written(talks, "kto")).conversations] == [
        0.0, 0.0, 0.0, 1.0, 1.0
    ]  # fmt: skip


def test_pairs_are_made_of_all_replies_to_a_prompt_that_differ_in_score() -> None:
    talks = [
        Conversation(messages=(ASK, reply("best", 1.0), ASK)),
        Conversation(messages=(ASK, reply("good", 0.5))),
        Conversation(messages=(ASK, reply("as good", 0.5))),
        Conversation(messages=(ASK, reply("unscored"))),
        Conversation(messages=(ASK, ASK, reply("elsewhere", 0.0))),
    ]
    rows = parse(written(talks, "preference")).conversations
    pairs = [
        (a.messages[1].content, b.messages[1].content)
        for a, b in zip(rows[::2], rows[1::2], strict=True)
    ]
    assert pairs == [("best", "good"), ("best", "as good")]


FORMULAS = ["=1+1", "+1", "-1", "@SUM(A1)", "\t=1", "\r=1", "\uff1d1", "'=1", "''=1"]


@pytest.mark.parametrize("text", FORMULAS)
def test_no_cell_of_the_csv_export_is_a_formula(text: str) -> None:
    score = Score(rater=text, value=-0.5, note=text)
    said = (
        Message(role=Role.ASSISTANT, content=text, scores=(score,)),
        Message(role=Role.TOOL, content=text, tool_call_id=text),
    )
    original = Conversation(title=text, group=text, system=text, messages=said)
    data = written([original], "csv")
    for record in csv.reader(io.StringIO(data.decode("utf-8-sig"), newline="")):
        for cell in record:
            assert cell == "-0.5" or not cell.startswith(("=", "+", "-", "@", "\t", "\r", "\uff1d"))
    assert read_back(data, "csv") == [original]


@pytest.mark.parametrize("format", WRITABLE)
def test_every_format_writes_nothing_of_nothing(format: str) -> None:
    written([], format)


def test_text_is_not_what_an_archive_is() -> None:
    assert write([], "native") == ""


def test_the_data_set_folder_can_be_written_as_a_folder(tmp_path: Any) -> None:
    original = [Conversation(messages=(ASK, reply("a", 1.0)))]
    write_folder(original, tmp_path / "set")
    card = (tmp_path / "set" / "README.md").read_text("utf-8")
    assert card.startswith("---\nconfigs:\n")
    assert read_back((tmp_path / "set" / PARQUET_NAME).read_bytes(), "native") == original
