"""Whether somebody talks to the model: a collection waits for that, and for nothing else of it."""

import os

import pytest

from tests.trainer.serving.conftest import TOKEN, Endpoint
from trainer.runs.process import own_machine, own_start_time
from trainer.serving import talking
from trainer.serving.address import Address, announced
from trainer.serving.talking import somebody_talks


def test_somebody_talks_for_a_minute_after_the_last_question(
    endpoint: Endpoint, monkeypatch: pytest.MonkeyPatch
) -> None:
    address = Address(
        url=endpoint.url,
        token=TOKEN,
        base_model=endpoint.model.base_model,
        device="cpu",
        pid=os.getpid(),
        process_started_at=own_start_time(),
        machine=own_machine(),
    )
    assert not somebody_talks(endpoint.settings, "cpu")
    with announced(endpoint.settings, address):
        endpoint.client().chat.completions.create(
            model="base", messages=[{"role": "user", "content": "Hi"}], max_tokens=2
        )
        endpoint.wait_until_quiet()
        assert somebody_talks(endpoint.settings, "cpu")
        assert not somebody_talks(endpoint.settings, "cuda")
        monkeypatch.setattr(talking, "QUIET_S", 0.0)
        assert not somebody_talks(endpoint.settings, "cpu")
