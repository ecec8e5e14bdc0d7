"""What stands around the chat on the label page: guidelines, progress and pace."""

from datetime import timedelta

import pytest
from sqlalchemy import update

from app import data, routes
from app.components.label_filter import duration
from app.components.label_scale import SCALES
from db import commands, queries
from db.engine import Database
from db.enums import ReviewState, ScoreScale
from db.models import EventTable, now
from db.records import User
from tests.app.conftest import OpenPage, chat
from tests.app.labelling import button
from tests.app.shown import elements, texts, trees

GUIDELINES = (
    "# Be **kind**\n\n* solves it: 1\n* sends away: 0\n\n"
    "<script>document.title='owned'</script> ![p](http://t/r.png) [l](javascript:alert(1))"
)


def test_what_an_admin_writes_stands_beside_the_chat_as_markdown_and_never_more(
    open_page: OpenPage, conversation_ids: list[int]
) -> None:
    settings = open_page(routes.SETTINGS)
    settings.text_area(key="settings.project.guidelines").set_value(GUIDELINES)
    next(b for b in settings.button if b.label == "Save").click().run()
    app = open_page(routes.LABEL, conversation=conversation_ids[0])
    assert not app.exception
    (written,) = [tree for tree in trees(app) if tree[0][0] == "h1"]
    assert written[0][1][:2] == ["Be ", ["strong", ["kind"]]]
    assert elements(written) == {"h1", "strong", "ul", "li", "p", "span"}
    (said,) = [text for text in texts(app) if text.startswith("Be kind")]
    assert "<script>document.title='owned'</script> [image: p] (http://t/r.png)" in said
    assert SCALES[ScoreScale.UNIT].told in [caption.value for caption in app.caption]
    app.toggle(key="guidelines").set_value(False).run()
    assert not any(text.startswith("Be kind") for text in texts(app))


def test_without_guidelines_the_chat_has_the_page_to_itself_and_help_is_at_hand(
    open_page: OpenPage, conversation_ids: list[int]
) -> None:
    app = open_page(routes.LABEL, conversation=conversation_ids[0])
    assert app.toggle(key="guidelines").value is False
    assert not any(text.startswith("Score each reply") for text in texts(app))
    app.toggle(key="guidelines").set_value(True).run()
    assert any(text.startswith("Score each reply") for text in texts(app))


def test_the_keys_stay_in_front_while_the_page_is_redrawn(
    open_page: OpenPage, conversation_ids: list[int]
) -> None:
    app = open_page(routes.LABEL, conversation=conversation_ids[0])
    assert not app.table
    button(app, "Keys").click().run()
    for _ in range(2):
        assert "Show the keys" in app.table[0].value["What it does"].tolist()
        app.run()


def test_progress_is_that_of_the_conversation_and_of_the_queue(
    open_page: OpenPage, database: Database, conversation_ids: list[int], user: User
) -> None:
    first, second, third = conversation_ids
    commands.set_review(database, user_id=user.id, conversation_id=first, state=ReviewState.SKIPPED)
    data.refresh()
    app = open_page(routes.LABEL, conversation=second)
    (bar,) = app.get("progress")
    assert bar.proto.text == "1 of 2 turns scored · conversation 1 of 2"
    assert bar.proto.value == 50
    assert "2 open · 1 skipped" in [caption.value for caption in app.caption]
    app = open_page(routes.LABEL, conversation=third)
    (bar,) = app.get("progress")
    assert bar.proto.text == "0 of 2 turns scored · conversation 2 of 2"


def test_pace_and_time_to_go_follow_from_the_latest_scores(
    open_page: OpenPage, database: Database, user: User, monkeypatch: pytest.MonkeyPatch
) -> None:
    done = chat("Done", *((f"q {n}", f"a {n}", None) for n in range(7)))
    waits = chat("Waits", *((f"ask {n}", f"answer {n}", None) for n in range(30)))
    id, _ = commands.add_conversations(database, [done, waits])[0]
    for number, turn in enumerate(queries.own_turns(database, user_id=user.id, conversation_id=id)):
        event = commands.set_score(database, user_id=user.id, message_id=turn.message_id, value=0.5)
        assert event is not None
        at = now() - timedelta(seconds=60 - 6 * number)
        with database.session() as session:
            session.execute(update(EventTable).where(EventTable.id == event.id).values(at=at))
    data.refresh()
    last_hour = now() - timedelta(hours=1)  # what "today" is must not hang on the time of day
    monkeypatch.setattr(
        data,
        "todays_pace",
        lambda *, user_id: queries.pace(database, user_id=user_id, since=last_hour),
    )
    told = [caption.value for caption in open_page(routes.LABEL, conversation=id).caption]
    assert any("7 turns scored today · about 6 s a turn · 3 min to go" in text for text in told)


@pytest.mark.parametrize(
    ("seconds", "told"),
    [(0, "1 min"), (89, "1 min"), (3599, "60 min"), (3600, "1 h"), (12_600, "3.5 h")],
)
def test_the_time_to_go_is_told_roughly(seconds: float, told: str) -> None:
    assert duration(seconds) == told
