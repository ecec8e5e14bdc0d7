"""A prompt, a completion, and a thumb up or down."""

from tests.db.formats.reading import COLOUR, clean, found, lines, said


def test_kto_with_text_and_with_messages() -> None:
    data = lines(
        {"prompt": COLOUR, "completion": "Blue.", "label": True},
        {"messages": [{"role": "user", "content": COLOUR}],
         "completion": [{"role": "assistant", "content": "No."}], "label": False},
        {"prompt": COLOUR, "completion": "Red.", "label": None},
    )  # fmt: skip
    assert found(data).format == "kto"
    assert [said(c)[-1] for c in clean(data)] == [
        ("assistant", "Blue.", 1.0), ("assistant", "No.", 0.0), ("assistant", "Red.")
    ]  # fmt: skip
