"""What tests of the label page do and look at."""

from streamlit.testing.v1 import AppTest
from streamlit.testing.v1.element_tree import Button, NumberInput

from db import queries
from db.engine import Database


def button(app: AppTest, label: str) -> Button:
    """Return the first button whose label begins so: its key is printed behind it."""
    return next(button for button in app.button if button.label.startswith(label))


def exact_score(app: AppTest) -> NumberInput:
    """Return the field of the marked turn."""
    return next(number for number in app.number_input if number.label == "Exact score")


def press(app: AppTest, value: float, *, among: str = "turn.") -> AppTest:
    """Click the button that gives this score: to the marked turn, or by another row of buttons."""
    given = ((b, b.key or "") for b in app.button)
    return (
        next(b for b, key in given if key.startswith(among) and key.endswith(f".{value}"))
        .click()
        .run()
    )


def scores(database: Database, conversation_id: int) -> list[float | None]:
    """Return the first score of each turn."""
    turns = queries.conversation(database, conversation_id).assistant_messages
    return [turn.scores[0].value if turn.scores else None for turn in turns]
