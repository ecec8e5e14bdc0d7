"""Made-up hostile texts everywhere a conversation has text: the pages show them and never break."""

import random
import time

import pytest
from streamlit.testing.v1 import AppTest

from app import data, routes
from db import commands, queries
from db.engine import open_database
from db.enums import Role
from db.records import Conversation, Message, Score
from db.settings import Settings
from tests.app.conftest import MAIN
from tests.app.shown import elements, trees

pytestmark = [pytest.mark.slow, pytest.mark.timeout(900)]

FRAGMENTS = (
    "<script>alert(1)</script>", "<img src=x onerror=alert(1)>", "</p></div><style>*{display:none}",
    "[a](javascript:alert(1))", "![p](http://x/y.png)", "<!--", "]]>", "&lt;&#0;", "{{7*7}}", "${x}",
    "```", "`", "~~~py", "> ", "* ", "1. ", "# ", "| a | b |\n|---|---|\n", "---\n", "\\", "**", "__",
    "$x^2$", "$$\\def\\x{\\x}\\x$$", ":red[", ":material/delete:", ":green-badge[", "]", "[", "(",
    "\x00", "\x07", "\x1b[31m", "\x7f", "\ud800", "\udfff", "\ufeff", "\u202e", "\u2066", "\u200d",
    "\U0001f469\u200d\U0001f680", "\U0001f1e9\U0001f1ea", "e\u0301\u0301\u0301", "\u1160", "\uffff",
    "مرحبا", "שלום", "中文。", "ไทย", "\r", "\r\n", "\n", "\t", "\x85", "\u2028", " ", "word", "0.85",
    "' OR 1=1 --", "%s%n", "../../etc/passwd", "NaN", "null",
)  # fmt: skip

DRAWN = {
    *("p", "h1", "h2", "h3", "h4", "h5", "h6", "ul", "ol", "li", "blockquote", "pre", "code", "hr"),
    *("table", "thead", "tbody", "tr", "th", "td", "strong", "em", "s", "span"),
}
"""All that a message may become."""


def hostile(chance: random.Random) -> str:
    """Return a text of fragments; now and then a megabyte of them."""
    text = "".join(chance.choices(FRAGMENTS, k=chance.randint(1, 40)))
    return text * (1 + 1_000_000 // len(text)) if chance.random() < 0.03 else text


def talk(chance: random.Random) -> Conversation:
    """Return a conversation in which every text is hostile."""
    scores = (Score(rater=f"r {hostile(chance)[:40]}", value=0.5, note=hostile(chance)),)
    messages = [
        Message(role=role, content=hostile(chance), scores=scores if role is Role.ASSISTANT else ())
        for _ in range(3)
        for role in (Role.USER, Role.ASSISTANT)
    ]
    return Conversation(
        title=hostile(chance)[:2000],
        system=hostile(chance),
        tags=(hostile(chance)[:60],),
        messages=tuple(messages),
    )


@pytest.mark.parametrize("settings", ["sqlite"], indirect=True)
def test_no_text_breaks_a_page_or_becomes_more_than_text(settings: Settings, more_s: float) -> None:
    database, seed = open_database(settings), 0
    user = queries.local_user(database)
    until = time.monotonic() + more_s
    while seed == 0 or time.monotonic() < until:
        id = commands.add_conversation(database, talk(random.Random(seed)))
        data.refresh()
        label = opened(routes.LABEL, id)
        drawn = [label, opened(routes.CONVERSATIONS, id)]
        for page in drawn:
            assert not page.exception, f"seed {seed}"
            assert not page.error, f"seed {seed}"
            assert set().union(*map(elements, trees(page))) <= DRAWN, f"seed {seed}"
        given = next(b for b in label.button if (b.key or "").startswith("turn."))
        given.click().run()
        (turn, *_) = queries.own_turns(database, user_id=user.id, conversation_id=id)
        assert turn.value is not None, f"seed {seed}"
        seed += 1
    database.close()
    print(f"\n{seed} conversations of hostile text shown")  # noqa: T201 - what `make soak` shows


def opened(page: str, conversation_id: int) -> AppTest:
    """Open a page at a conversation."""
    app = AppTest.from_file(str(MAIN), default_timeout=60).run()
    app.switch_page(page)
    app.query_params[routes.CONVERSATION_PARAM] = str(conversation_id)
    return app.run()
