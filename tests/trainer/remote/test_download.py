"""The adapter that an endpoint hands over: taken whole or not at all, and the key stays at home."""

import json
import tarfile
from collections.abc import Callable, Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from io import BytesIO
from pathlib import Path
from threading import Thread
from typing import cast

import pytest
import torch
from safetensors.torch import save

from db.records import Endpoint
from trainer.errors import CheckpointError, EndpointLostError, NotFiniteError
from trainer.remote import download
from trainer.remote.access import Access
from trainer.remote.download import fetch_adapter

KEY = "tml-of-this-test"
CONFIG, WEIGHTS = "adapter_config.json", "adapter_model.safetensors"
ONE_LAYER = {"base_model.model.layer.lora_A.weight": torch.ones(2, 2)}

Serve = Callable[[bytes], str]


def archive(**files: bytes) -> bytes:
    """Return a tar of files; `__` in a name stands for a slash."""
    packed = BytesIO()
    with tarfile.open(fileobj=packed, mode="w:gz") as tar:
        for name, content in files.items():
            member = tarfile.TarInfo(name.replace("__", "/"))
            member.size = len(content)
            tar.addfile(member, BytesIO(content))
    return packed.getvalue()


WHOLE = {CONFIG: b"{}", WEIGHTS: save(ONE_LAYER)}


class Storage(ThreadingHTTPServer):
    """Hands out one file, or points to it, and remembers the keys that it was sent."""

    content = b""
    status = 200
    packing = 0
    elsewhere = ""

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), Shelf)
        self.keys: list[str | None] = []

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.server_port}"


class Shelf(BaseHTTPRequestHandler):
    def do_GET(self) -> None:
        storage = cast(Storage, self.server)
        storage.keys.append(self.headers.get("x-api-key"))
        if storage.packing:
            storage.packing -= 1
            self.send_response(503)
            self.end_headers()
            return
        self.send_response(302 if storage.elsewhere else storage.status)
        if storage.elsewhere:
            self.send_header("Location", storage.elsewhere)
        self.end_headers()
        self.wfile.write(storage.content)

    def log_message(self, format: str, *args: object) -> None:
        """Print nothing."""


@pytest.fixture
def storage() -> Iterator[Storage]:
    server = Storage()
    Thread(target=server.serve_forever, daemon=True).start()
    yield server
    server.shutdown()
    server.server_close()


def access_to(base_url: str) -> Access:
    return Access(Endpoint(name="cluster", base_url=base_url, key_variable=""), KEY)


def test_the_key_goes_to_the_endpoint_and_to_no_storage_that_it_points_to(
    storage: Storage, tmp_path: Path
) -> None:
    storage.content = archive(**WHOLE)
    for base_url in (storage.url, "http://somewhere.else"):
        fetch_adapter(access_to(base_url), f"{storage.url}/file", tmp_path, base_name="owner/base")
    assert storage.keys == [KEY, None]


def test_a_redirect_is_followed_without_the_key_once_the_archive_is_packed(
    storage: Storage, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(download, "PACKING_WAIT_S", 0.0)
    endpoint = Storage()
    Thread(target=endpoint.serve_forever, daemon=True).start()
    storage.content = archive(**WHOLE)
    endpoint.packing, endpoint.elsewhere = 2, f"{storage.url}/file"
    fetch_adapter(access_to(endpoint.url), endpoint.url, tmp_path, base_name="owner/base")
    endpoint.elsewhere = endpoint.url
    with pytest.raises(EndpointLostError, match="cannot be downloaded"):
        fetch_adapter(access_to(endpoint.url), endpoint.url, tmp_path, base_name="owner/base")
    endpoint.shutdown()
    endpoint.server_close()
    assert endpoint.keys == [KEY] * (3 + 1 + download.MOST_REDIRECTS)
    assert storage.keys == [None]
    assert (tmp_path / WEIGHTS).exists()


def test_members_land_under_their_own_names_alone(storage: Storage, tmp_path: Path) -> None:
    folder = tmp_path / "in" / "adapter"
    folder.mkdir(parents=True)
    files = {"..__..__" + CONFIG: b"{}", "deep__" + WEIGHTS: WHOLE[WEIGHTS], "..__evil.sh": b"rm"}
    storage.content = archive(**files)
    fetch_adapter(access_to(storage.url), storage.url, folder, base_name="owner/base")
    found = {path.relative_to(tmp_path) for path in tmp_path.rglob("*") if path.is_file()}
    assert found == {Path("in/adapter") / CONFIG, Path("in/adapter") / WEIGHTS}


@pytest.mark.parametrize(("said", "kept"), [(None, ["layer"]), (["other"], ["other"])])
def test_layers_that_nobody_named_are_named_and_the_base_model_as_others_know_it(
    storage: Storage, tmp_path: Path, said: list[str] | None, kept: list[str]
) -> None:
    config = {"base_model_name_or_path": "/srv/models/base", "target_modules": said, "r": 2}
    storage.content = archive(**{**WHOLE, CONFIG: json.dumps(config).encode()})
    fetch_adapter(access_to(storage.url), storage.url, tmp_path, base_name="owner/base")
    found = json.loads((tmp_path / CONFIG).read_text())
    assert found == {"base_model_name_or_path": "owner/base", "target_modules": kept, "r": 2}


@pytest.mark.parametrize(
    ("content", "error", "said"),
    [
        (archive(**WHOLE)[:-40], CheckpointError, "no whole archive"),
        (b"<html>", CheckpointError, "no whole archive"),
        (archive(**{CONFIG: b"{}"}), CheckpointError, f"lacks {WEIGHTS}"),
        (archive(**{**WHOLE, WEIGHTS: b"cut off"}), CheckpointError, "cannot be read"),
        (archive(**{**WHOLE, CONFIG: b"[1"}), CheckpointError, "config.json .*cannot be read"),
        (
            archive(**{**WHOLE, WEIGHTS: save({k: v * torch.nan for k, v in ONE_LAYER.items()})}),
            NotFiniteError,
            "NaN",
        ),
    ],
    ids=["cut off", "no archive", "a file is missing", "weights cut off", "config cut off", "NaN"],
)
def test_what_is_no_whole_adapter_is_refused_in_words(
    storage: Storage, tmp_path: Path, content: bytes, error: type[Exception], said: str
) -> None:
    storage.content = content
    with pytest.raises(error, match=said):
        fetch_adapter(access_to(storage.url), storage.url, tmp_path, base_name="owner/base")


def test_a_storage_that_refuses_is_told_without_the_key(storage: Storage, tmp_path: Path) -> None:
    storage.status = 403
    with pytest.raises(EndpointLostError, match="cannot be downloaded") as caught:
        fetch_adapter(access_to(storage.url), storage.url, tmp_path, base_name="owner/base")
    assert KEY not in str(caught.value)
