"""The import page: files are checked by a process of their own before anything is stored."""

import json
from dataclasses import replace

import pytest
from sqlalchemy import text
from streamlit.testing.v1 import AppTest

from app import import_jobs, permissions, routes
from app.components.format import plain
from app.permissions import RefusedError
from db import commands, queries
from db.engine import Database
from db.enums import ImportState, UserRole
from db.import_job import import_folder, run_import_job
from db.records import ConversationFilter, ConversationRow, ImportFile, User
from tests.app.conftest import OpenPage
from trainer.runs.process import Mark, own_machine

GRADES = "".join(
    json.dumps({"prompt": question, "response": answer, "helpfulness": grade}) + "\n"
    for question, answer, grade in (
        ("Where is my parcel?", "May I have the order number?", 4),
        ("Hello", "Hi!", 10),
        ("Hello again", None, 3),
    )
)


class Upload:
    """A file as the browser hands it over."""

    def __init__(self, name: str, content: bytes) -> None:
        self.name = name
        self._content = content

    def getbuffer(self) -> memoryview:
        return memoryview(self._content)


@pytest.fixture(autouse=True)
def in_this_process(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let checks and imports run at once: that they have a process is tested where it matters."""
    monkeypatch.setattr(import_jobs, "_spawn", run_import_job)


def receive(database: Database, user: User, *texts: str) -> int:
    uploads = [Upload(f"part-{n}.jsonl", text.encode()) for n, text in enumerate(texts)]
    return import_jobs.receive(database, uploads, user_id=user.id)


def texts(app: AppTest) -> str:
    shown = [*app.markdown, *app.caption, *app.error, *app.info, *app.success, *app.warning]
    return "\n".join(element.value for element in shown)


def press(app: AppTest, label: str) -> AppTest:
    return next(b for b in app.button if b.label == label).click().run()


def test_a_dropped_file_is_checked_and_nothing_is_stored_before_it_is_asked_for(
    open_page: OpenPage, database: Database
) -> None:
    app = open_page(routes.IMPORTS)
    app.file_uploader[0].set_value([("grades.jsonl", GRADES.encode(), "application/jsonl")]).run()
    assert not app.exception
    assert app.query_params["import"] == "1"
    assert [metric.value for metric in app.metric] == ["2", "4", "1", "0", "1"]
    assert "HelpSteer" in texts(app)
    assert list(app.table[0].value["Where"]) == [
        plain("row 3 · response"),
        plain("row 2 · helpfulness"),
    ]
    assert queries.overview(database).conversations == 0
    press(app, "Import 2 conversations")
    assert not app.exception
    assert "Imported 2 conversations with 1 score" in texts(app)
    assert queries.all_sources(database) == ["import:grades.jsonl"]
    assert not import_folder(database.settings, 1).exists()


def test_what_was_dropped_twice_by_the_browser_is_one_import(
    open_page: OpenPage, database: Database
) -> None:
    app = open_page(routes.IMPORTS)
    upload = [("grades.jsonl", GRADES.encode(), "application/jsonl")]
    app.file_uploader[0].set_value(upload).run()
    app.run()
    assert len(queries.imports(database)) == 1


def test_a_corrected_scale_is_checked_before_it_is_used(
    open_page: OpenPage, database: Database, user: User
) -> None:
    import_id = receive(database, user, GRADES)
    app = open_page(routes.IMPORTS, **{"import": import_id})
    best = next(n for n in app.number_input if n.label == "helpfulness: best value")
    best.set_value(10.0)
    press(app, "Check with these scales")
    assert not app.exception
    assert "0 to 10 becomes 0 to 1" in texts(app)
    assert [metric.value for metric in app.metric] == ["2", "4", "2", "0", "1"]
    press(app, "Import 2 conversations")
    first, second = queries.conversations(database, [row.id for row in stored(database)])
    values = sorted(c.assistant_messages[0].scores[0].value for c in (first, second))
    assert values == [0.4, 1.0]


def stored(database: Database) -> list[ConversationRow]:
    return queries.conversation_rows(database, ConversationFilter(), user_id=1)


def test_another_format_can_be_chosen(open_page: OpenPage, database: Database, user: User) -> None:
    row = {"messages": [{"role": "user", "content": "a"}, {"role": "assistant", "content": "b"}]}
    import_id = receive(database, user, json.dumps(row))
    app = open_page(routes.IMPORTS, **{"import": import_id})
    assert "Recognised: **OpenAI" in texts(app)
    app.selectbox(key=f"format.{import_id}.0").set_value("native").run()
    assert not app.exception
    assert "Chosen: **EveryTurn" in texts(app)
    (file,) = queries.import_(database, import_id).files
    assert (file.format, file.rule) == ("native", None)


def test_the_first_conversations_stand_beside_their_rows(
    open_page: OpenPage, database: Database, user: User
) -> None:
    app = open_page(routes.IMPORTS, **{"import": receive(database, user, GRADES)})
    assert [message.name for message in app.chat_message] == ["user", "assistant"]
    assert json.loads(app.code[0].value)["prompt"] == "Where is my parcel?"
    assert "Row 1 of the file" in texts(app)


def test_several_files_are_one_import_that_names_them(
    open_page: OpenPage, database: Database, user: User
) -> None:
    app = open_page(routes.IMPORTS, **{"import": receive(database, user, GRADES, GRADES)})
    assert not app.exception
    assert app.selectbox(key="file.1").options == ["part-0.jsonl", "part-1.jsonl"]
    files = {place.split(" · ")[0] for place in app.table[0].value["Where"]}
    assert files == {plain("part-0.jsonl"), plain("part-1.jsonl")}
    assert [metric.value for metric in app.metric] == ["2", "4", "1", "2", "2"]


def test_of_several_files_the_chosen_one_is_shown_also_after_it_was_checked_again(
    open_page: OpenPage, database: Database, user: User, monkeypatch: pytest.MonkeyPatch
) -> None:
    talks = [GRADES.replace("parcel", f"parcel {number}") for number in range(7)]
    import_id = receive(database, user, *talks)
    app = open_page(routes.IMPORTS, **{"import": import_id})
    assert len(app.code) == 1
    assert "parcel 0" in app.code[0].value
    app.selectbox(key=f"file.{import_id}").set_value(6).run()
    assert not app.exception
    assert "parcel 6" in app.code[0].value
    assert app.query_params["file"] == "7"
    monkeypatch.setattr(import_jobs, "_spawn", lambda *_: None)
    app.selectbox(key=f"format.{import_id}.6").set_value("helpsteer").run()
    assert not app.code  # it is being checked: the choice of files is gone meanwhile
    run_import_job(database, import_id)
    app.run()
    assert not app.exception
    assert "parcel 6" in app.code[0].value
    assert app.selectbox(key=f"format.{import_id}.6").value == "helpsteer"
    press(app, "All imports")
    assert "file" not in app.query_params


def test_a_file_of_no_known_format_is_explained_and_can_be_discarded(
    open_page: OpenPage, database: Database, user: User
) -> None:
    import_id = receive(database, user, '{"alien": 1}')
    app = open_page(routes.IMPORTS, **{"import": import_id})
    assert not app.exception
    assert "none of the known formats" in texts(app)
    press(app, "Discard")
    assert not app.exception
    assert queries.imports(database) == []
    assert not import_folder(database.settings, import_id).exists()


def test_undoing_names_what_people_have_scored_since(
    open_page: OpenPage, database: Database, user: User
) -> None:
    import_id = receive(database, user, GRADES)
    import_jobs.begin_import(database, import_id)
    scored, _ = queries.conversations(database, [row.id for row in stored(database)])
    message_id = scored.assistant_messages[0].id
    assert message_id is not None
    commands.set_score(database, user_id=user.id, message_id=message_id, value=0.3)
    app = open_page(routes.IMPORTS, **{"import": import_id})
    press(app, "Undo this import")
    assert "People have scored them since: 1 score by local" in texts(app)
    press(app, "Undo the import")
    assert not app.exception
    assert queries.overview(database).conversations == 0
    assert queries.import_(database, import_id).state is ImportState.UNDONE


def test_an_import_whose_process_died_says_so(
    open_page: OpenPage, database: Database, user: User
) -> None:
    import_id = commands.create_import(database, [ImportFile(name="a.jsonl")], user_id=user.id)

    gone = Mark(machine=own_machine(), pid=2**22 + 1, started_at=1.0)
    commands.record_import_process(database, import_id, str(gone))
    app = open_page(routes.IMPORTS, **{"import": import_id})
    assert "ended without a word" in texts(app)


def test_an_annotator_cannot_import(open_page: OpenPage, database: Database, user: User) -> None:
    with database.session() as session:
        session.execute(text("UPDATE users SET role = 'annotator'"))
    app = open_page(routes.IMPORTS)
    assert "Only admins use this page" in texts(app)
    with pytest.raises(RefusedError):
        permissions.check(
            database,
            replace(user, role=UserRole.ANNOTATOR),
            import_jobs.receive,
            {"user_id": user.id},
        )
