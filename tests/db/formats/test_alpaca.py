"""Alpaca: an instruction, perhaps with input, system prompt and what was said before."""

import json

from tests.db.formats.reading import clean, said


def test_alpaca_with_input_system_and_history() -> None:
    rows = [
        {"instruction": "Translate.", "input": "Good day", "output": "Bonjour", "system": "s",
         "history": [["Hi", "Hello"]]},
        {"instruction": "Add 1 and 1.", "input": "", "output": "2"},
    ]  # fmt: skip
    first, second = clean(json.dumps(rows).encode())
    assert first.system == "s"
    assert said(first) == [
        ("user", "Hi"), ("assistant", "Hello"),
        ("user", "Translate.\n\nGood day"), ("assistant", "Bonjour"),
    ]  # fmt: skip
    assert said(second) == [("user", "Add 1 and 1."), ("assistant", "2")]
