"""Where a run is computed: asked once there is an endpoint, and what stands in its way is said."""

from app import routes
from db import commands


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
