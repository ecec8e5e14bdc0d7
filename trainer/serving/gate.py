"""Who may come in, and with how much: looked at before a byte of a request's body is kept."""

import hmac
from collections.abc import Sequence

from starlette.datastructures import Headers
from starlette.exceptions import HTTPException
from starlette.responses import JSONResponse
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from trainer.serving.protocol import error_body

INVALID = "invalid_request_error"

MOST_BODY_BYTES = 8 * 2**20
"""Many times what fills a context; what is longer is refused unread."""

_NO_TOKEN = (
    "Authorization: the token is missing or wrong. Send 'Authorization: Bearer TOKEN' with the "
    "token that the server printed."
)
_TOO_LARGE = f"body: it is longer than {MOST_BODY_BYTES // 2**20} MiB. Shorten the messages."


class Gate:
    """Lets a request pass if it shows the token and is not too large (ASGI middleware)."""

    def __init__(self, app: ASGIApp, *, token: str, open_paths: Sequence[str]) -> None:
        """Guard an app; the paths in `open_paths` need no token."""
        self._app = app
        self._token = token.encode()
        self._open = frozenset(open_paths)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Refuse the request, or hand it on."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        headers = Headers(scope=scope)
        if scope["path"] not in self._open and not self._shows_token(headers):
            await _refuse(401, _NO_TOKEN, "invalid_api_key")(scope, receive, send)
            return
        announced = headers.get("content-length", "")
        if announced.isdecimal() and int(announced[:20]) > MOST_BODY_BYTES:
            await _refuse(413, _TOO_LARGE, "body_too_large")(scope, receive, send)
            return
        left = MOST_BODY_BYTES

        async def counted() -> Message:
            """Receive, as long as a body of no announced length stays below the limit."""
            nonlocal left
            message = await receive()
            left -= len(message.get("body", b""))
            if left < 0:
                raise HTTPException(413, _TOO_LARGE)
            return message

        await self._app(scope, counted, send)

    def _shows_token(self, headers: Headers) -> bool:
        scheme, _, given = headers.get("authorization", "").partition(" ")
        return scheme.lower() == "bearer" and hmac.compare_digest(given.encode(), self._token)


def _refuse(status: int, message: str, code: str) -> JSONResponse:
    return JSONResponse(error_body(message, kind=INVALID, code=code), status_code=status)
