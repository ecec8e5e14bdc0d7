"""Formats that are only read: whatever conversations a file of them is made of come out of it."""

import json
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from db.enums import Role
from db.formats import Parsed, Scale, ScoreRule, Source, parse, read
from db.formats.draft import group_key
from db.records import IMPORTED_RATER, Conversation, Message, Score
from tests.db.formats.making import storable
from tests.db.formats.reading import lines

quick = settings(max_examples=30, deadline=None)
words = st.text("abü1=[{'\"\\ \n\u2028", max_size=6).map(lambda text: f"w{text}.")
"""Texts that no mark of a turn can be found in, and that are not empty."""

exchanges = st.lists(st.tuples(words, words), min_size=1, max_size=3)


def ask(text: str) -> Message:
    return Message(role=Role.USER, content=text)


def reply(text: str, value: float | None = None, rater: str = IMPORTED_RATER) -> Message:
    scores = () if value is None else (Score(rater=rater, value=value),)
    return Message(role=Role.ASSISTANT, content=text, scores=scores)


def talked(said: Sequence[tuple[str, str]]) -> list[Message]:
    return [message for asked, answered in said for message in (ask(asked), reply(answered))]


def read_as(format: str, data: bytes) -> list[Conversation]:
    """Return the conversations of a file that is recognised and has nothing skipped."""
    result = parse(data)
    assert (result.format, result.skipped) == (format, ())
    return list(result.conversations)


@quick
@given(
    turns=st.lists(
        st.tuples(storable, storable, st.none() | st.floats(-1, 1)), min_size=1, max_size=3
    ),
    system=storable,
    title=storable,
)
def test_recipe(turns: list[tuple[str, str, float | None]], system: str, title: str) -> None:
    row = {
        "turns": [{"user": u, "assistant": a, "reward": r} for u, a, r in turns],
        "system": system,
        "title": title,
    }
    messages = [message for u, a, r in turns for message in (ask(u), reply(a, r))]
    expected = Conversation(messages=tuple(messages), system=system, title=title)
    assert read_as("recipe", json.dumps([row]).encode()) == [expected]


@quick
@given(said=exchanges, given_text=st.just("") | words, system=storable)
def test_alpaca(said: list[tuple[str, str]], given_text: str, system: str) -> None:
    *history, (instruction, output) = said
    row = {"instruction": instruction, "input": given_text, "output": output, "system": system}
    row_with_history = {**row, "history": history}
    question = f"{instruction}\n\n{given_text}" if given_text else instruction
    expected = Conversation(
        messages=(*talked(history), ask(question), reply(output)), system=system
    )
    assert read_as("alpaca", lines(row_with_history)) == [expected]


@quick
@given(said=exchanges, other=words)
def test_hh_transcripts(said: list[tuple[str, str]], other: str) -> None:
    *shared, (question, chosen) = said
    rejected = f"{other}!"
    head = "".join(f"\n\nHuman: {q}\n\nAssistant: {a}" for q, a in shared)
    head += f"\n\nHuman: {question}\n\nAssistant: "
    before = (*talked(shared), ask(question))
    both = [
        Conversation(messages=(*before, reply(text, value)), group=group_key(before))
        for text, value in ((chosen, 1.0), (rejected, 0.0))
    ]
    assert read_as("hh", lines({"chosen": head + chosen, "rejected": head + rejected})) == both


@quick
@given(
    question=storable,
    replies=st.lists(
        st.tuples(storable, st.sampled_from([(1.0, 0.0), (5.5, 0.5), (10.0, 1.0), (None, None)])),
        min_size=1,
        max_size=4,
    ),
)
def test_ultrafeedback(
    question: str, replies: list[tuple[str, tuple[float | None, float | None]]]
) -> None:
    row = {
        "instruction": question,
        "completions": [{"response": text, "overall_score": raw} for text, (raw, _) in replies],
    }
    group = group_key([ask(question)]) if len(replies) > 1 else ""
    expected = [
        Conversation(messages=(ask(question), reply(text, value)), group=group)
        for text, (_, value) in replies
    ]
    assert read_as("ultrafeedback", lines(row)) == expected


@quick
@given(said=exchanges, grade=st.none() | st.integers(0, 4), asks_for_reply=st.booleans())
def test_helpsteer(said: list[tuple[str, str]], grade: int | None, asks_for_reply: bool) -> None:
    *before, (question, response) = said
    texts = [text for pair in before for text in pair] + [question]
    marks = ["", *["\n<extra_id_1>Assistant\n", "\n<extra_id_1>User\n"] * len(before)]
    prompt = "".join(mark + text for mark, text in zip(marks, texts, strict=True))
    prompt += "\n<extra_id_1>Assistant\n" if asks_for_reply else ""
    row = {"prompt": prompt, "response": response, "helpfulness": grade}
    value = None if grade is None else grade / 4
    expected = Conversation(messages=(*talked(before), ask(question), reply(response, value)))
    assert read_as("helpsteer", lines(row)) == [expected]


@dataclass(frozen=True, slots=True)
class Grown:
    """A tree of messages: what each says, and which one it answers (its index, None the root)."""

    texts: list[str]
    parents: list[int | None]

    def depth(self, index: int) -> int:
        parent = self.parents[index]
        return 0 if parent is None else self.depth(parent) + 1

    def children(self, index: int) -> list[int]:
        return [i for i, parent in enumerate(self.parents) if parent == index]

    def ways(self, index: int = 0) -> list[list[int]]:
        """Return each way from a message to a leaf, in the order of the children."""
        below = [way for child in self.children(index) for way in self.ways(child)]
        return [[index, *way] for way in below] or [[index]]

    def message(self, index: int) -> Message:
        is_reply = self.depth(index) % 2 == 1
        return reply(self.texts[index]) if is_reply else ask(self.texts[index])

    def group(self) -> str:
        return group_key([self.message(0)]) if len(self.ways()) > 1 else ""

    def conversation(self, way: list[int], messages: dict[int, Message], title: str = ""):
        said = tuple(messages.get(index) or self.message(index) for index in way)
        return Conversation(messages=said, title=title, group=self.group())


@st.composite
def trees(draw: st.DrawFn) -> Grown:
    count = draw(st.integers(2, 8))
    parents = [None if i == 0 else draw(st.integers(0, i - 1)) for i in range(count)]
    return Grown([f"{index} {draw(words)}" for index in range(count)], parents)


def ranked(tree: Grown) -> dict[int, Message]:
    """Return the replies that have a rank, with the score that it becomes: the first is best."""
    found: dict[int, Message] = {}
    for index in range(len(tree.texts)):
        siblings = tree.children(index)
        if tree.depth(index) % 2 == 0 and len(siblings) > 1:
            for rank, child in enumerate(siblings):
                value = 1 - rank / (len(siblings) - 1)
                found[child] = reply(tree.texts[child], value)
    return found


def oasst_message(tree: Grown, index: int, is_ranked: bool) -> dict[str, Any]:
    parent = tree.parents[index]
    siblings = [] if parent is None else tree.children(parent)
    return {
        "message_id": f"m{index}",
        "parent_id": None if parent is None else f"m{parent}",
        "text": tree.texts[index],
        "role": "assistant" if tree.depth(index) % 2 else "prompter",
        "rank": siblings.index(index) if is_ranked else None,
    }


@quick
@given(tree=trees(), data=st.data())
def test_oasst_lines_in_any_order_and_whole_trees(tree: Grown, data: st.DataObject) -> None:
    scored = ranked(tree)
    rows = [oasst_message(tree, i, i in scored) for i in range(len(tree.texts))]

    def nested(index: int) -> dict[str, Any]:
        return {**rows[index], "replies": [nested(child) for child in tree.children(index)]}

    expected = [tree.conversation(way, scored) for way in tree.ways()]
    assert same(read_as("oasst", lines({"prompt": nested(0)})), expected)
    shuffled = data.draw(st.permutations(rows))
    found = read_as("oasst", lines(*shuffled))
    assert same(sorted(found, key=saying), sorted(expected, key=saying))


def saying(conversation: Conversation) -> list[str]:
    return [message.content for message in conversation.messages]


def same(found: list[Conversation], expected: list[Conversation]) -> bool:
    """Compare conversations; values of scores that were divided need not be equal to the bit."""

    def rounded(conversation: Conversation) -> Conversation:
        messages = tuple(
            replace(m, scores=tuple(replace(s, value=round(s.value, 9)) for s in m.scores))
            for m in conversation.messages
        )
        return replace(conversation, messages=messages)

    return [rounded(one) for one in found] == [rounded(one) for one in expected]


@quick
@given(tree=trees(), title=storable, data=st.data())
def test_chatgpt_shows_the_current_branch_first(
    tree: Grown, title: str, data: st.DataObject
) -> None:
    nodes: dict[str, Any] = {"root": {"id": "root", "parent": None, "message": None}}
    for index, text in enumerate(tree.texts):
        parent = tree.parents[index]
        nodes[f"m{index}"] = {
            "id": f"m{index}",
            "parent": "root" if parent is None else f"m{parent}",
            "message": {
                "author": {"role": tree.message(index).role.value},
                "content": {"content_type": "text", "parts": [text]},
            },
        }
    ways = tree.ways()
    shown = data.draw(st.sampled_from(ways))
    export = [{"title": title, "mapping": nodes, "current_node": f"m{shown[-1]}"}]
    ordered = [shown, *(way for way in ways if way is not shown)]
    expected = [tree.conversation(way, {}, title) for way in ordered]
    assert read_as("chatgpt", json.dumps(export).encode()) == expected


stars = st.lists(
    st.tuples(st.sampled_from(["ann", "bob", "eve"]), st.integers(1, 5)),
    max_size=3,
    unique_by=lambda given: given[0],
)


def by_stars(name: str) -> ScoreRule:
    return ScoreRule((Scale(name=name, low=1.0, high=5.0, to_low=0.0),))


def read_by(rule: ScoreRule, format: str, data: bytes) -> list[Conversation]:
    items = list(read(Source.of_bytes(data), format=format, rule=rule))
    # that all are the same may be doubted, as of a whole file; nothing may be said of its rows
    assert all(isinstance(item, Parsed) or item.row == 0 for item in items)
    return [item.conversation for item in items if isinstance(item, Parsed)]


def rated(given_stars: list[tuple[str, int]]) -> tuple[Score, ...]:
    return tuple(Score(rater=rater, value=(value - 1) / 4) for rater, value in given_stars)


@quick
@given(said=exchanges, given_stars=stars, data=st.data())
def test_label_studio_ratings_of_a_marked_reply_and_of_the_whole(
    said: list[tuple[str, str]], given_stars: list[tuple[str, int]], data: st.DataObject
) -> None:
    messages = talked(said)
    marked = data.draw(st.none() | st.sampled_from(range(1, len(messages), 2)))
    where = {} if marked is None else {"start": str(marked), "end": str(marked)}
    task = {
        "id": 1,
        "data": {"dialogue": [{"author": m.role.value, "text": m.content} for m in messages]},
        "annotations": [
            {
                "completed_by": {"id": 3, "email": rater},
                "result": [{"from_name": "quality", "value": {"rating": value, **where}}],
            }
            for rater, value in given_stars
        ],
    }
    expected = about(messages, marked, rated(given_stars))
    assert read_by(by_stars("quality"), "label-studio", json.dumps([task]).encode()) == [expected]


@quick
@given(said=exchanges, given_stars=stars)
def test_argilla_ratings_by_question_and_by_user(
    said: list[tuple[str, str]], given_stars: list[tuple[str, int]]
) -> None:
    messages = talked(said)
    fields = {"chat": [{"role": m.role.value, "content": m.content} for m in messages]}
    by_question = {"rating": [{"user_id": r, "value": value} for r, value in given_stars]}
    by_user = [{"user_id": r, "values": {"rating": {"value": v}}} for r, v in given_stars]
    rows = [{"fields": fields, "responses": given_by} for given_by in (by_question, by_user)]
    expected = about(messages, None, rated(given_stars))
    assert read_by(by_stars("rating"), "argilla", lines(*rows)) == [expected] * 2


def about(messages: list[Message], marked: int | None, scores: tuple[Score, ...]) -> Conversation:
    """Return the conversation with these scores of a reply: the marked one, or the only one."""
    place = 1 if marked is None and len(messages) == 2 else marked
    if place is None:
        return Conversation(messages=tuple(messages), outcomes=scores)
    scored = replace(messages[place], scores=scores)
    return Conversation(messages=(*messages[:place], scored, *messages[place + 1 :]))
