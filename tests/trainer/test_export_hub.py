"""A push uses the token once, keeps it nowhere, and says in words why it cannot."""

import io
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import httpx2
import pytest
from huggingface_hub.errors import HfHubHTTPError, HFValidationError, OfflineModeIsEnabled

from trainer.commands import exporting
from trainer.export import hub
from trainer.export.hub import PushError, push

TOKEN = "hf_only_for_this_test"


class Hub:
    """Stands for the hub's client, and remembers what it was asked."""

    asked: list[Any] = []  # noqa: RUF012 - emptied by the fixture
    failure: Exception | None = None

    def __init__(self, *, token: str) -> None:
        self.asked.append(("token", token))

    def create_repo(self, repository: str, *, private: bool, exist_ok: bool) -> Any:
        if self.failure is not None:
            raise self.failure
        self.asked.append(("repository", repository, private, exist_ok))
        return SimpleNamespace(repo_id=repository)

    def upload_folder(self, *, repo_id: str, folder_path: Path, commit_message: str) -> None:
        self.asked.append(("files", repo_id, sorted(p.name for p in folder_path.iterdir())))


@pytest.fixture(autouse=True)
def hub_client(monkeypatch: pytest.MonkeyPatch) -> type[Hub]:
    monkeypatch.setattr(Hub, "asked", [])
    monkeypatch.setattr(Hub, "failure", None)
    monkeypatch.setattr(hub, "HfApi", Hub)
    return Hub


def refused(status: int) -> HfHubHTTPError:
    request = httpx2.Request("POST", "https://hub.invalid/api")
    return HfHubHTTPError("no", response=httpx2.Response(status, request=request))


def test_the_files_arrive_in_a_private_repository(tmp_path: Path) -> None:
    (tmp_path / "README.md").write_text("A card.")
    push(tmp_path, "owner/name", f" {TOKEN}\n")
    assert Hub.asked == [
        ("token", TOKEN),
        ("repository", "owner/name", True, True),
        ("files", "owner/name", ["README.md"]),
    ]
    assert all(TOKEN not in path.read_text() for path in tmp_path.rglob("*"))


@pytest.mark.parametrize(
    ("failure", "said"),
    [
        (refused(401), "does not let this token write"),
        (refused(403), "does not let this token write"),
        (refused(500), "refused"),
        (HFValidationError("bad"), "no name for a repository"),
        (OfflineModeIsEnabled("offline"), "cannot be reached"),
        (httpx2.ConnectError("no route"), "cannot be reached"),
        (OSError("no network"), "cannot be reached"),
    ],
)
def test_each_reason_is_said_and_the_token_is_not(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, failure: Exception, said: str
) -> None:
    monkeypatch.setattr(Hub, "failure", failure)
    with pytest.raises(PushError, match=said) as error:
        push(tmp_path, "owner/name", TOKEN)
    assert TOKEN not in str(error.value)


def test_without_a_token_nothing_is_asked(tmp_path: Path) -> None:
    with pytest.raises(PushError, match="no token"):
        push(tmp_path, "owner/name", "  ")
    assert Hub.asked == []


def test_a_token_is_read_from_a_pipe(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sys.stdin", io.StringIO(f"{TOKEN}\nmore\n"))
    assert exporting._ask_for_token() == TOKEN
