"""What every page tells of runs: those that go on, and those that have ended meanwhile."""

from app import data, routes
from app.components.run_news import page_title
from db import commands
from db.enums import ErrorKind, RunStatus
from tests.app.rows import make_run


def captions(page) -> str:
    return "\n".join(str(caption.value) for caption in page.sidebar.caption)


def look_again(page):
    data.refresh()
    return page.run()


def test_a_run_that_ends_is_told_once_by_a_message_and_stays_in_the_sidebar(
    open_page, database, conversation_ids
):
    run = make_run(database, conversation_ids, RunStatus.RUNNING, name="Tone")
    page = open_page(routes.LABEL)
    assert not page.toast
    commands.end_run(database, run.id, RunStatus.FINISHED)
    look_again(page)
    assert [toast.value for toast in page.toast] == ["**Tone** finished."]
    assert "finished just now" in captions(page)
    look_again(page)
    assert not page.toast
    assert "finished just now" in captions(page)


def test_news_can_be_put_away(open_page, database, conversation_ids):
    run = make_run(database, conversation_ids, RunStatus.RUNNING)
    page = open_page(routes.LABEL)
    commands.end_run(database, run.id, RunStatus.STOPPED)
    look_again(page)
    page.button(key=f"put_away_{run.id}_1").click().run()
    assert not page.exception
    assert "stopped" not in captions(page)


def test_looking_at_the_run_is_enough(open_page, database, conversation_ids):
    run = make_run(database, conversation_ids, RunStatus.RUNNING)
    page = open_page(routes.RUN, run=run.id)
    commands.end_run(database, run.id, RunStatus.FAILED, error_kind=ErrorKind.KILLED)
    look_again(page)
    look_again(page)
    assert "failed" not in captions(page)


def test_what_ended_before_one_came_is_no_news(open_page, database, conversation_ids):
    make_run(database, conversation_ids, RunStatus.FINISHED)
    page = open_page(routes.LABEL)
    assert not page.toast
    assert "finished" not in captions(page)


def test_a_second_end_of_the_same_run_is_news_again(open_page, database, conversation_ids):
    run = make_run(database, conversation_ids, RunStatus.RUNNING)
    page = open_page(routes.LABEL)
    commands.end_run(database, run.id, RunStatus.STOPPED)
    look_again(page)
    page.button(key=f"put_away_{run.id}_1").click().run()
    commands.requeue_run(database, run.id)
    commands.request_stop(database, run.id)
    look_again(page)
    assert "stopped" in captions(page)


def test_the_browsers_title_tells_progress_then_the_end(database, conversation_ids):
    ended = make_run(database, conversation_ids, RunStatus.FAILED, name="Other")
    run = make_run(database, conversation_ids, RunStatus.RUNNING, name="Tone", progress=0.42)
    assert page_title([], []) == "EveryTurn"
    assert page_title([run], []) == "42% Tone"
    assert page_title([run], [ended]) == "✗ Other failed"
