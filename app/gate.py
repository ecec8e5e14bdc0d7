"""What stands before the pages: who may connect at all, and where a password is handed in.

The pages themselves ask who is signed in on every run (`app.auth`); this is for what Streamlit
answers without running a page.
"""

import html
import logging
import re
from collections.abc import Mapping
from datetime import timedelta
from urllib.parse import parse_qs, urlencode, urlsplit

import anyio.to_thread
import streamlit as st
from anyio import CapacityLimiter
from starlette.datastructures import Headers
from starlette.requests import Request
from starlette.responses import HTMLResponse, PlainTextResponse, RedirectResponse, Response
from starlette.types import ASGIApp, Receive, Scope, Send

from app import browsers
from app.connection import database
from app.sign_in_ways import is_local, ways
from db import commands, queries
from db.errors import EveryTurnError

_log = logging.getLogger(__name__)

SIGN_IN_PATH = "/sign-in"
OUTCOME_PARAM = "sign_in"
WRONG, WAIT = "wrong", "wait"

_HEALTH = "/_stcore/health"
_UPLOAD = re.compile(r"/_stcore/upload_file/([^/]*)/")
_FOR_THE_MACHINE = ("/_stcore/metrics", "/_stcore/script-health-check", "/_stcore/agent/")
_MAX_FORM_BYTES = 8_000
_AT_ONCE = CapacityLimiter(2)
"""Each check of a password takes 64 MB and a core for a moment, on purpose."""

_PATH_HERE = re.compile(r"/(?![/\\])[!-\[\]-~]*")
"""A path of this site and nothing else: no scheme, no host, no backslash, no spaces."""


class Gate:
    """ASGI middleware: refuses connections that neither come from this machine nor can sign in."""

    def __init__(self, app: ASGIApp) -> None:
        """Stand before `app`."""
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass a connection on, or refuse it in words."""
        if scope["type"] not in ("http", "websocket"):
            await self._app(scope, receive, send)
            return
        path = str(scope["path"]).removeprefix(base_path())
        refusal = None if path == _HEALTH else _refusal(scope, path)
        if refusal is None:
            await self._app(scope, receive, send)
        elif scope["type"] == "websocket":
            await receive()
            await send({"type": "websocket.close", "code": 1008})
        else:
            await refusal(scope, receive, send)


async def take_password(request: Request) -> Response:
    """Check a name and a password that a form of this site sent, and hand out the cookie."""
    if not _from_this_site(request):
        return PlainTextResponse("This form was not sent by this site.", 403)
    form = await _form(request)
    if form is None:
        return PlainTextResponse("This is more than a name and a password.", 413)
    back = form.get("back", "")
    back = back if _PATH_HERE.fullmatch(back) else f"{base_path()}/"
    address = request.client.host if request.client else "unknown"
    name = form.get("name", "")
    try:
        token, lasts = await anyio.to_thread.run_sync(
            _sign_in, name, form.get("password", ""), address, limiter=_AT_ONCE
        )
    except commands.TooManyAttemptsError:
        _log.warning("refused: too many attempts to sign in as %r from %s", name[:100], address)
        return _back_to(back, WAIT)
    except EveryTurnError as error:
        _log.exception("nobody can sign in")
        return PlainTextResponse(str(error), 503)
    if token is None:
        _log.warning("refused: wrong name or password for %r from %s", name[:100], address)
        return _back_to(back, WRONG)
    response = _back_to(back, None)
    response.set_cookie(
        browsers.COOKIE,
        token,
        max_age=int(lasts.total_seconds()),
        path=f"{base_path()}/",
        secure=request.url.scheme == "https",
        httponly=True,
        samesite="lax",
    )
    return response


def base_path() -> str:
    """Return the path under which the app is served: "" or "/name"."""
    base = (st.get_option("server.baseUrlPath") or "").strip("/")
    return f"/{base}" if base else ""


def _refusal(scope: Scope, path: str) -> Response | None:
    """Return what to answer instead of passing a connection on; None to pass it on."""
    headers = Headers(scope=scope)
    client, server = scope.get("client"), scope.get("server")
    local = is_local(
        client[0] if client else None,
        server[0] if server else None,
        headers,
        host=headers.get("host"),
    )
    try:
        people_sign_in = ways().any
    except EveryTurnError as error:
        return _page("Nobody can sign in", error.what, error.remedy)
    if not people_sign_in:
        return None if local else _page(*_NO_SIGN_IN)
    upload = _UPLOAD.match(path)
    if upload and not browsers.has_come_in(upload[1]):
        return PlainTextResponse("Sign in first.", 403)
    if path.startswith(_FOR_THE_MACHINE) and not local:
        return PlainTextResponse("This is for the machine itself.", 403)
    return None


_NO_SIGN_IN = (
    "This app cannot be used from here yet",
    "It can be reached from beyond its own machine, but nobody can sign in. So it serves nothing.",
    "On its machine, let yourself in, then load this page again: "
    "python -m db user add NAME --admin (docs/team.md says more).",
)


def _page(title: str, what: str, remedy: str) -> Response:
    title, what, remedy = html.escape(title), html.escape(what), html.escape(remedy)
    return HTMLResponse(
        '<!doctype html><html lang="en"><meta charset="utf-8">'
        '<meta name="viewport" content="width=device-width">'
        f"<title>EveryTurn</title><style>:root{{color-scheme:light dark}}"
        "body{font:1rem/1.6 system-ui,sans-serif;max-width:38rem;margin:20vh auto;padding:0 1rem}"
        f"</style><h1>{title}</h1><p>{what}</p><p>{remedy}</p></html>",
        503,
        {"Cache-Control": "no-store"},
    )


def _sign_in(name: str, password: str, address: str) -> tuple[str | None, timedelta]:
    db = database()
    lasts = timedelta(hours=queries.project_settings(db).session_hours)
    token = commands.sign_in(db, name=name, password=password, address=address, lasts=lasts)
    if token is None:
        reason = f"wrong name or password, from {address}"
        commands.log_refusal(db, user=None, name=name, action="sign in", reason=reason)
    return token, lasts


async def _form(request: Request) -> Mapping[str, str] | None:
    """Return the fields of a form, None if it is too large."""
    body = b""
    async for chunk in request.stream():
        body += chunk
        if len(body) > _MAX_FORM_BYTES:
            return None
    try:
        fields = parse_qs(body.decode("ascii", "replace"), max_num_fields=10)
    except ValueError:
        return {}
    return {name: values[0] for name, values in fields.items()}


def _from_this_site(request: Request) -> bool:
    """Return whether the browser says that a page of this site sent the request."""
    origin = request.headers.get("origin")
    return origin is not None and urlsplit(origin).netloc == request.headers.get("host")


def _back_to(path: str, outcome: str | None) -> Response:
    """Lead the browser to a page, with the outcome in its address if there is one to tell."""
    parts = urlsplit(path)
    params = parse_qs(parts.query)
    params.pop(OUTCOME_PARAM, None)
    if outcome is not None:
        params[OUTCOME_PARAM] = [outcome]
    query = urlencode(params, doseq=True)
    return RedirectResponse(f"{parts.path}?{query}" if query else parts.path, 303)
