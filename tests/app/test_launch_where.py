"""Where a run is computed: asked once there is an endpoint, and what stands in its way is said."""

from app import routes
from app.components import launch_where
from db import commands
from tests.app.launching import button, done, given, texts
from tests.app.test_token_counts import DOCUMENT
from trainer.remote.capabilities import Offer


def test_an_endpoint_that_does_not_answer_is_told_and_what_it_cannot_take_forbids_the_start(
    open_page, database, conversation_ids
) -> None:
    commands.set_endpoint(database, "cluster", base_url="http://127.0.0.1:9", key_variable="")
    page = open_page(routes.LAUNCH)
    assert not page.exception
    page.selectbox(key="where").set_value("cluster").run()
    assert not page.exception
    assert any("does not answer" in error.value for error in page.error)
    assert page.text_input(key="endpoint_key").label.startswith("Its key")
    page.number_input(key="launch_standard_lora_alpha").set_value(16.0).run()
    assert any("alpha 32" in error.value for error in page.error)
    start = next(button for button in page.button if button.label == "Start the run")
    assert start.disabled


def test_what_it_offers_and_how_many_tokens_will_be_sent_are_shown_before_the_start(
    open_page, database, conversation_ids, monkeypatch
) -> None:
    commands.set_endpoint(database, "cluster", base_url="http://127.0.0.1:9", key_variable="")
    offers = [Offer(name="smollm2-135m", context_tokens=4096)]
    monkeypatch.setattr(launch_where, "ask", lambda _access, *, timeout_s: offers)
    sent = {"training": 4600, "scoring": 46, "sampled": 96}
    counted = done({**DOCUMENT, "warnings": [], "sent": sent})
    given(monkeypatch, counted, counted)
    page = open_page(routes.LAUNCH, where="cluster")
    assert not page.exception
    shown = texts(page.markdown)
    assert "answers" in shown and "sees 4,096 tokens" in shown
    assert "sends **4,646 tokens**: 4,600 in passes" in shown
    assert "at most 96 more" in shown
    assert not button(page, "Start the run").disabled
