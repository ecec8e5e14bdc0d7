"""Transcripts and message lists of which one is preferred."""

from tests.db.formats.reading import COLOUR, clean, found, lines, prompt_group, said


def test_hh_transcripts_become_two_conversations_of_one_group() -> None:
    head = "\n\nHuman: Hi\n\nAssistant: Hello\n\nHuman: A colour?"
    data = lines({"chosen": f"{head}\n\nAssistant: Blue.", "rejected": f"{head}\n\nAssistant: No."})
    assert found(data).format == "hh"
    chosen, rejected = clean(data)
    shared = [("user", "Hi"), ("assistant", "Hello"), ("user", "A colour?")]
    assert said(chosen) == [*shared, ("assistant", "Blue.", 1.0)]
    assert said(rejected) == [*shared, ("assistant", "No.", 0.0)]
    assert chosen.group == rejected.group == prompt_group("Hi", "Hello", "A colour?")


def test_hh_message_lists_that_repeat_the_prompt() -> None:
    ask = {"role": "user", "content": COLOUR}
    data = lines(
        {
            "prompt": COLOUR,
            "chosen": [ask, {"role": "assistant", "content": "Blue."}],
            "rejected": [ask, {"role": "assistant", "content": "No."}],
        }
    )
    assert found(data).format == "hh"
    chosen, rejected = clean(data)
    assert said(chosen) == [("user", COLOUR), ("assistant", "Blue.", 1.0)]
    assert said(rejected) == [("user", COLOUR), ("assistant", "No.", 0.0)]
    assert chosen.group == rejected.group == prompt_group(COLOUR)
