"""Label Studio: ratings of a reply, of a marked message, and of the whole, by annotator."""

import json

from db.records import Score
from tests.db.formats.reading import COLOUR, clean, found, said


def rated(rater: object, rating: int, **where: object) -> dict[str, object]:
    value = {"rating": rating, **where}
    return {
        "completed_by": rater,
        "result": [{"from_name": "quality", "type": "rating", "value": value}],
    }


def test_label_studio_tasks_with_a_reply_a_dialogue_and_a_marked_message() -> None:
    dialogue = [{"author": "user", "text": "Hi"}, {"author": "assistant", "text": "Hello"},
                {"author": "user", "text": "Bye"}, {"author": "bot", "text": "Goodbye"}]  # fmt: skip
    tasks = [
        {"id": 1, "data": {"prompt": COLOUR, "response": "Blue."},
         "annotations": [rated(7, 5), rated({"id": 1, "email": "b@c.d"}, 1), {**rated(8, 3), "was_cancelled": True}]},
        {"id": 2, "data": {"dialogue": dialogue}, "annotations": [rated(7, 3), rated(8, 2, start="3", end="3")]},
    ]  # fmt: skip
    first, second = clean(json.dumps(tasks).encode())
    assert first.messages[1].scores == (
        Score(rater="annotator 7", value=1.0), Score(rater="b@c.d", value=0.0)
    )  # fmt: skip
    assert said(second) == [
        ("user", "Hi"), ("assistant", "Hello"), ("user", "Bye"), ("assistant", "Goodbye", 0.25)
    ]  # fmt: skip
    assert second.outcomes == (Score(rater="annotator 7", value=0.5),)


def test_label_studio_flat_export() -> None:
    row = {"id": 4, "prompt": COLOUR, "response": "Blue.", "stars": 4, "annotator": 2,
           "annotation_id": 9, "lead_time": 3.5}  # fmt: skip
    assert found(json.dumps([row]).encode()).format == "label-studio"
    (conversation,) = clean(json.dumps([row]).encode())
    assert conversation.messages[1].scores == (Score(rater="annotator 2", value=0.75),)
