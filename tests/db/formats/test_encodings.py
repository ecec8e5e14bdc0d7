"""Which encoding a file is in: told apart by its bytes, chosen by hand, mended line by line."""

import json

import pytest

from db.errors import DataError
from db.formats import ENCODINGS, Parsed, Source, detect, encoding_name, read
from db.records import ImportIssue, IssueOutcome
from tests.db.formats.reading import clean, found, lines, said, taken

ROW = {"messages": [{"role": "user", "content": "q"}, {"role": "assistant", "content": "a"}]}
SAID = [("user", "q"), ("assistant", "a")]


def talk(text: str) -> dict[str, object]:
    return {"messages": [{"role": "assistant", "content": text}]}


@pytest.mark.parametrize(
    "data",
    [lines(ROW), lines(ROW, ROW), b"conversation_id,role,content\n1,user,q\n1,assistant,a\n"],
)
def test_a_byte_order_mark_is_no_content(data: bytes) -> None:
    assert said(clean(b"\xef\xbb\xbf" + data)[0]) == SAID


def test_cp1252_is_told_apart_and_reported() -> None:
    text = "caf\u00e9 \u20ac \u201cquoted\u201d"
    row = json.dumps(talk(text), ensure_ascii=False)
    for data in (f"{row}\n{row}\n".encode("cp1252"), f"[{row}]".encode("cp1252")):
        conversations, issues = taken(data)
        assert {said(c)[0][1] for c in conversations} == {text}
        (issue,) = issues
        assert issue.row == 0 and "(line 1) and was read as Windows-1252" in issue.reason
    (conversation,), issues = taken(
        f"conversation_id,role,content\n1,assistant,{text}\n".encode("cp1252")
    )
    assert said(conversation) == [("assistant", text)]
    assert "(line 2)" in issues[0].reason


@pytest.mark.parametrize(
    ("encoding", "name"),
    [("utf-16", "utf-16"), ("utf-16-le", "utf-16-le"), ("utf-32", "utf-32"), ("cp1251", "cp1251")],
)
def test_other_encodings_are_told_apart_and_reported(encoding: str, name: str) -> None:
    text = "\u041f\u0440\u0438\u0432\u0435\u0442, \u043a\u0430\u043a \u0434\u0435\u043b\u0430? \u042f \u0445\u043e\u0442\u0435\u043b \u0431\u044b \u0443\u0437\u043d\u0430\u0442\u044c, \u0433\u0434\u0435 \u043c\u043e\u044f \u043f\u043e\u0441\u044b\u043b\u043a\u0430."
    row = json.dumps(talk(text), ensure_ascii=False)
    data = f"{row}\n{row}\n".encode(encoding)
    assert found(data).encoding == name
    conversations, issues = taken(data)
    assert [said(c)[0][1] for c in conversations] == [text] * 2
    assert [i.row for i in issues] == [0]


def test_an_encoding_chosen_by_hand_wins_and_its_misfits_are_reported() -> None:
    text = "\u043f\u0440\u0438\u0432\u0435\u0442, \u0447\u0442\u043e \u0435\u0449\u0451?"
    row = json.dumps(talk(text), ensure_ascii=False)
    data = f"{row}\n{row}\n".encode("koi8-r")
    wrong = found(data).facts.encoding
    assert wrong.name != "koi8-r"
    assert "was read as" in wrong.remark
    right = detect(Source.of_bytes(data), encoding="KOI8_R")
    assert (right.encoding, right.facts.encoding.confidence, right.issues) == ("koi8-r", 1.0, ())
    items = list(read(Source.of_bytes(data), detection=right))
    assert [said(i.conversation)[0][1] for i in items if isinstance(i, Parsed)] == [text] * 2
    assert len(items) == 2

    misread = detect(Source.of_bytes(data), encoding="cp874")
    assert misread.facts.encoding.confidence < 1
    (*_, last) = read(Source.of_bytes(data), detection=misread)
    assert isinstance(last, ImportIssue)
    assert "are no Windows-874" in last.reason
    with pytest.raises(DataError, match=r"no encoding named 'rot13'.*utf-8, utf-16"):
        detect(Source.of_bytes(data), encoding="rot13")


@pytest.mark.parametrize("name", ENCODINGS)
def test_every_encoding_that_can_be_chosen_reads_what_it_writes(name: str) -> None:
    data = lines(ROW, ROW).decode().encode(name)
    assert detect(Source.of_bytes(data), encoding=name).format == "openai"
    assert encoding_name(name) == name


def test_a_line_in_another_encoding_is_mended_and_named() -> None:
    good = json.dumps(talk("gr\u00fcn"), ensure_ascii=False)
    filler = [good.encode()] * 20_000  # past what is looked at to judge the encoding
    conversations, issues = taken(b"\n".join([*filler, good.encode("cp1252"), good.encode()]))
    assert {said(c)[0][1] for c in conversations} == {"gr\u00fcn"}
    (issue,) = issues
    assert (issue.row, issue.outcome) == (20_001, IssueOutcome.REPAIRED)
