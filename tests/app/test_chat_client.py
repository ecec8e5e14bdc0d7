"""What the chat's server is asked, over real HTTP."""

import asyncio
import json
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

import pytest

from app.chat_client import Growing, stream_reply
from app.chat_tree import BASE, Ending, Sampling
from trainer.serving.address import Address

TOOL = {"parameters": {}, "name": "order"}
"""As ShareGPT files have them, and its keys in an order of their own."""


class Server(ThreadingHTTPServer):
    """Answers every question with one word, and keeps what it was asked."""

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), _Handler)
        self.bodies: list[dict[str, Any]] = []


class _Handler(BaseHTTPRequestHandler):
    server: Server  # pyright: ignore[reportIncompatibleVariableOverride]

    def do_POST(self) -> None:
        self.server.bodies.append(json.loads(self.rfile.read(int(self.headers["Content-Length"]))))
        said = {"choices": [{"delta": {"content": "Yes."}, "finish_reason": "stop"}]}
        self.send_response(200)
        self.end_headers()
        self.wfile.write(f"data: {json.dumps(said)}\n\ndata: [DONE]\n\n".encode())

    def log_message(self, format: str, *args: Any) -> None:
        del format, args


@pytest.fixture
def server() -> Iterator[Server]:
    with Server() as serving:
        thread = threading.Thread(target=serving.serve_forever, kwargs={"poll_interval": 0.01})
        thread.start()
        yield serving
        serving.shutdown()
        thread.join()


def test_the_tools_of_a_chat_go_along_as_they_are_and_without_any_nothing_does(
    server: Server,
) -> None:
    address = Address(
        url=f"http://127.0.0.1:{server.server_port}",
        token="t",
        base_model="m",
        device="cpu",
        pid=0,
        process_started_at=0.0,
        machine="",
    )
    messages = [{"role": "user", "content": "Where is my order?"}]
    for tools in ([TOOL], []):
        growing = Growing(lane=BASE)
        asyncio.run(stream_reply(address, messages, Sampling(), growing, tools=tools))
        assert (growing.text, growing.ending) == ("Yes.", Ending.STOP)
    given, without = server.bodies
    assert list(given["tools"][0].items()) == list(TOOL.items())
    assert "tools" not in without
