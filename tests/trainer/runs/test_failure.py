"""Whatever ends a run becomes a kind that a person can act on, and words that say how."""

import errno
import os

import pytest

from db.enums import ErrorKind
from db.errors import DataError, StorageError
from trainer.errors import (
    BadDataError,
    ChatTemplateError,
    ConfigError,
    EndpointError,
    FolderGoneError,
    ModelError,
    NotFiniteError,
    pass_too_large,
    token_budget_of,
)
from trainer.runs import reconcile
from trainer.runs.failure import explain
from trainer.runs.worker import FOLDER_GONE

CASES = [
    (pass_too_large("did not fit", 1400), ErrorKind.OUT_OF_MEMORY, "token_budget"),
    (MemoryError(), ErrorKind.OUT_OF_MEMORY, "token_budget"),
    (ModelError("it is gated"), ErrorKind.MODEL, "gated"),
    (ChatTemplateError("no chat template"), ErrorKind.CHAT_TEMPLATE, "template"),
    (BadDataError("no score", where="turn 2"), ErrorKind.BAD_DATA, "turn 2"),
    (DataError("no text", where="row 7"), ErrorKind.BAD_DATA, "row 7"),
    (ConfigError("epochs is 0"), ErrorKind.BAD_CONFIG, "epochs"),
    (NotFiniteError("the loss is not finite"), ErrorKind.NOT_A_NUMBER, "not finite"),
    (OSError(errno.ENOSPC, os.strerror(errno.ENOSPC)), ErrorKind.DISK_FULL, "Free some space"),
    (RuntimeError("io: No space left on device (os error 28)"), ErrorKind.DISK_FULL, "resume"),
    (FolderGoneError("config.json is missing"), ErrorKind.FOLDER_GONE, "config.json"),
    (EndpointError("it refuses the key"), ErrorKind.ENDPOINT, "key"),
    (StorageError("it cannot be written"), ErrorKind.UNEXPECTED, "cannot be written"),
    (FileNotFoundError(errno.ENOENT, "No such file", "a.json"), ErrorKind.UNEXPECTED, "a.json"),
    (ModuleNotFoundError("No module named 'peft'"), ErrorKind.UNEXPECTED, "requirements.txt"),
    (KeyError("lm_head"), ErrorKind.UNEXPECTED, "please report it"),
]


@pytest.mark.parametrize(("error", "kind", "words"), CASES)
def test_an_error_becomes_its_kind_and_says_what_to_do(
    error: Exception, kind: ErrorKind, words: str
) -> None:
    failure = explain(error)
    assert failure.kind is kind
    assert words in failure.text


def test_the_budget_that_an_exhausted_memory_asks_for_can_be_read_back() -> None:
    assert token_budget_of(explain(pass_too_large("did not fit", 1400)).text) == 700


def test_every_kind_of_failure_can_come_about() -> None:
    found = {kind for _, kind, _ in CASES}
    found |= {FOLDER_GONE.kind, reconcile.KILLED.kind, reconcile.RESTARTED.kind}
    assert found == set(ErrorKind)
