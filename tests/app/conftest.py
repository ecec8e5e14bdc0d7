"""A real database in a temporary EVERYTURN_HOME, a few conversations, and the app on top."""

from collections.abc import Callable
from pathlib import Path

import pytest
from streamlit.testing.v1 import AppTest

from app import data
from db import commands, queries
from db.engine import Database, open_database
from db.enums import Role
from db.records import Conversation, Message, Score, User
from db.settings import Settings

MAIN = Path(__file__).parents[2] / "app" / "router.py"

MARKUP = (
    "<script>document.title='owned'</script> **bold** $x^2$ :smile: [link](javascript:alert(1))\n"
    "second line  <img src=x onerror=alert(1)>"
)

OpenPage = Callable[..., AppTest]


@pytest.fixture
def database(settings: Settings) -> Database:
    """An empty database, the same that the app opens."""
    data.refresh()
    return open_database(settings)


@pytest.fixture
def user(database: Database) -> User:
    """The local user."""
    return queries.local_user(database)


def chat(title: str, *pairs: tuple[str, str, float | None], **fields: object) -> Conversation:
    """A conversation of (user text, reply, score by the local user) triples."""
    messages: list[Message] = []
    for asked, answered, value in pairs:
        scores = () if value is None else (Score(rater="local", value=value),)
        messages.append(Message(role=Role.USER, content=asked))
        messages.append(Message(role=Role.ASSISTANT, content=answered, scores=scores))
    return Conversation(messages=tuple(messages), title=title, **{"source": "typed", **fields})


CONVERSATIONS = (
    chat(
        "Parcel lost",
        ("My parcel is not here.", "Could you give me the order number?", 0.8),
        ("It is 48213.", "The courier left it with a neighbour.", 0.0),
        system="You are a support agent.",
        tags=("support",),
    ),
    chat(
        "Used bike",
        ("Would you take 80?", "For 95 it is yours.", None),
        ("85, cash today.", "Deal.", -0.7),
        tags=("negotiation",),
    ),
    chat(
        "Markup is text",
        (MARKUP, f"reply {MARKUP}", None),
        ("And now?", "Still text.", None),
        source="import:markup.jsonl",
    ),
)


@pytest.fixture
def conversation_ids(database: Database) -> list[int]:
    """Ids of `CONVERSATIONS` in the database: one scored, one partly, one not at all."""
    ids, _ = commands.add_conversations(database, CONVERSATIONS)
    data.refresh()
    return ids


@pytest.fixture
def open_page(database: Database) -> OpenPage:
    """Return a function that opens a page of the app: `open_page(routes.LABEL, conversation=1)`."""

    def open_it(page: str, **params: object) -> AppTest:
        app = AppTest.from_file(str(MAIN), default_timeout=30).run()
        app.switch_page(page)
        for name, value in params.items():
            app.query_params[name] = str(value)
        return app.run()

    return open_it
