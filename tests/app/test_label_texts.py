"""What the label page makes of texts: markup, hostile signs, a megabyte, five hundred turns."""

import pytest

from app import data, routes
from app.components.transcript import folded
from db import commands
from db.engine import Database
from tests.app.conftest import MARKUP, OpenPage, chat
from tests.app.labelling import press, scores
from tests.app.shown import elements, texts, trees


def test_markup_is_shown_and_never_more_than_shown(
    open_page: OpenPage, conversation_ids: list[int]
) -> None:
    app = open_page(routes.LABEL, conversation=conversation_ids[2])
    plain = open_page(routes.LABEL, conversation=conversation_ids[2], md="false")
    assert MARKUP in texts(plain)
    assert any("<script>document.title='owned'</script> bold $x^2$" in t for t in texts(app))
    for tree in trees(app):
        assert elements(tree) <= {"p", "strong", "span"}
    assert not any("script" in markdown.value for markdown in app.markdown)


@pytest.mark.parametrize(
    "hostile",
    [
        "a\x00b",
        "lone \ud800 surrogate",
        "\N{FAMILY}\u200d\N{WOMAN}\N{EMOJI MODIFIER FITZPATRICK TYPE-3} \U0001f1e9\U0001f1ea",
        "\u202eright to left override",
        "مرحبا (1) — שלום, 中文。",
        "[" * 5000,
        "> " * 60 + "deep",
        "$\\newcommand{x}{\\x}\\x$ :material/delete: :red[x] ![a](http://x/y.png)",
        "\n" * 3000,
    ],
)
def test_hostile_text_never_breaks_the_page(
    open_page: OpenPage, database: Database, hostile: str
) -> None:
    talk = chat(hostile, (hostile, f"reply {hostile}", None), system=hostile)
    conversation_id = commands.add_conversation(database, talk)
    data.refresh()
    app = open_page(routes.LABEL, conversation=conversation_id)
    assert not app.exception
    assert not app.error
    press(app, 0.4)
    assert scores(database, conversation_id) == [0.4]


def test_very_long_messages_and_conversations_are_folded(
    open_page: OpenPage, database: Database
) -> None:
    many = chat("Long", *((f"question {i}", "x" * 1_000_000, None) for i in range(30)))
    conversation_id = commands.add_conversation(database, many)
    data.refresh()
    app = open_page(routes.LABEL, conversation=conversation_id, turn=30)
    assert not app.exception
    assert sum(map(len, texts(app))) < 60_000
    assert "question 29" in texts(app)
    assert len(app.get("chat_message")) <= 40
    next(t for t in app.toggle if t.label.startswith("Show all")).set_value(True).run()
    assert max(map(len, texts(app))) == 1_000_000


def test_a_conversation_of_five_hundred_turns_is_shown_where_the_marked_turn_is(
    open_page: OpenPage, database: Database
) -> None:
    many = chat("Long", *((f"question {i}", f"reply {i}", None) for i in range(500)))
    conversation_id = commands.add_conversation(database, many)
    data.refresh()
    app = open_page(routes.LABEL, conversation=conversation_id, turn=498)
    press(app, 0.3)
    assert app.query_params["turn"] == "499"
    assert "reply 498" in texts(app)
    assert len(texts(app)) <= 41


def test_many_short_lines_are_folded_like_one_long_text() -> None:
    assert folded("a\nb") == "a\nb"
    assert folded("line\n" * 200).count("\n") == 24
    assert len(folded("x" * 5000)) == 1200
