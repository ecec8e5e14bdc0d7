"""Pages look for something new while a run goes on, and rest once it has ended."""

import pytest
import streamlit as st

from app import routes
from app.components.run_status import REFRESH_S
from db.enums import RunStatus
from tests.app.rows import make_run


@pytest.fixture
def looks(monkeypatch: pytest.MonkeyPatch) -> set[object]:
    """How often the parts of the pages that are opened look again by themselves."""
    found: set[object] = set()
    whole = st.fragment

    def fragment(func=None, *, run_every=None):
        found.add(run_every)
        return whole(func, run_every=run_every)

    monkeypatch.setattr(st, "fragment", fragment)
    return found


PAGES = [
    (routes.RUN, {"run": 1}),
    (routes.RUN, {"run": 1, "tab": "Log"}),
    (routes.RUNS, {}),
    (routes.COMPARE, {"runs": "1,2"}),
]


@pytest.mark.parametrize(("page", "params"), PAGES)
def test_nothing_is_asked_of_the_database_once_all_runs_have_ended(
    open_page, database, conversation_ids, looks, page, params
):
    for name, status in (("one", RunStatus.FINISHED), ("two", RunStatus.STOPPED)):
        make_run(database, conversation_ids, status, name=name, steps=2)
    assert not open_page(page, **params).exception
    assert looks == {None}


def test_a_live_run_is_looked_at_again_and_again(open_page, database, conversation_ids, looks):
    make_run(database, conversation_ids, RunStatus.RUNNING, steps=2)
    open_page(routes.RUN, run=1)
    assert REFRESH_S in looks
