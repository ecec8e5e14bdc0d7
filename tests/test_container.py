"""What the container does before it becomes the web app; the image itself needs a Docker engine."""

import json
import os
import subprocess
from pathlib import Path

import pytest

from app.sign_in_ways import _is_loopback

ROOT = Path(__file__).parents[1]


@pytest.fixture
def store(tmp_path: Path) -> Path:
    """Return the image's folder with one model in it."""
    model = tmp_path / "store" / "models" / "tiny"
    model.mkdir(parents=True)
    (model / "config.json").write_text("{}")
    return tmp_path / "store"


def start(home: Path, store: Path, *command: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        ["sh", str(ROOT / "docker" / "start.sh"), *command],
        env={**os.environ, "EVERYTURN_HOME": str(home), "MODEL_STORE": str(store)},
        capture_output=True,
        text=True,
        check=False,
    )


def test_the_first_start_brings_the_model_and_becomes_the_command(
    tmp_path: Path, store: Path
) -> None:
    home = tmp_path / "home"
    done = start(home, store, "sh", "-c", 'echo "$0 has $#"; exit 7', "it", "one", "two words")
    assert done.returncode == 7
    assert done.stdout.endswith("it has 2\n")
    assert [path.name for path in (home / "models").iterdir()] == ["tiny"]
    assert (home / "models" / "tiny" / "config.json").read_text() == "{}"


def test_a_model_that_is_there_is_left_alone(tmp_path: Path, store: Path) -> None:
    mine = tmp_path / "home" / "models" / "tiny"
    mine.mkdir(parents=True)
    (mine / "config.json").write_text("mine")
    done = start(tmp_path / "home", store, "true")
    assert done.stdout == ""
    assert (mine / "config.json").read_text() == "mine"


def test_a_copy_that_was_cut_off_is_made_again(tmp_path: Path, store: Path) -> None:
    half = tmp_path / "home" / "models" / ".copy-tiny"
    half.mkdir(parents=True)
    (half / "half.safetensors").write_text("")
    assert start(tmp_path / "home", store, "true").returncode == 0
    model = tmp_path / "home" / "models" / "tiny"
    assert [path.name for path in model.iterdir()] == ["config.json"]
    assert not half.exists()


def test_the_image_runs_without_root_and_keeps_its_data_in_a_volume() -> None:
    lines = (ROOT / "Dockerfile").read_text("utf-8").splitlines()
    assert "USER everyturn" in lines
    assert "ENV EVERYTURN_HOME=/data" in lines
    assert "VOLUME /data" in lines
    assert lines.index("USER everyturn") < lines.index('ENTRYPOINT ["sh", "docker/start.sh"]')


def test_nobody_s_data_gets_into_the_image() -> None:
    left_out = (ROOT / ".dockerignore").read_text("utf-8").splitlines()
    assert {"data", ".git", ".venv"} <= set(left_out)


def test_the_image_listens_where_nobody_is_served_without_sign_in() -> None:
    command = (ROOT / "Dockerfile").read_text("utf-8").splitlines()[-1]
    options = dict(option.split("=") for option in json.loads(command.removeprefix("CMD "))[3:])
    assert not _is_loopback(options["--server.address"])


def test_secrets_get_neither_into_the_image_nor_into_git() -> None:
    for name in (".dockerignore", ".gitignore"):
        lines = (ROOT / name).read_text("utf-8").splitlines()
        assert ".streamlit/secrets.toml" in [line.lstrip("/") for line in lines]
