"""Telling the world that a run has ended: one POST to the address in the project's settings."""

import json
import sys
import threading
import urllib.request
from http.client import HTTPException
from urllib.parse import urlsplit

from db import commands, queries
from db.engine import Database
from db.errors import EveryTurnError
from db.records import Run
from trainer.errors import TrainerError

TIMEOUT_S = 5.0
"""How long the hook may be silent."""

PATIENCE_S = 10.0
"""How long a run's process waits for it in all, though it sends something now and then."""


class NoticeError(TrainerError):
    """The notice could not be delivered."""


def tell(database: Database, run_id: int) -> None:
    """Post the end of a run, once, if the settings say where; whatever goes wrong is printed.

    A run is over before this is called, and its process waits for no hook longer than
    `PATIENCE_S`: one that fails or hangs does it no harm.
    """
    telling = tell_in_background(database, run_id)
    telling.join(PATIENCE_S)
    if telling.is_alive():
        _print(run_id, f"it took more than {PATIENCE_S:g} seconds")


def tell_in_background(database: Database, run_id: int) -> threading.Thread:
    """Do the same without keeping a page waiting for the other end."""
    name = f"notice of run {run_id}"
    telling = threading.Thread(target=_tell, args=(database, run_id), name=name, daemon=True)
    telling.start()
    return telling


def _tell(database: Database, run_id: int) -> None:
    try:
        url = queries.project_settings(database).webhook_url
        if url and commands.claim_notice(database, run_id):
            post(url, queries.run(database, run_id))
    except EveryTurnError as error:
        _print(run_id, str(error))


def _print(run_id: int, why: str) -> None:
    print(f"note: nobody was told that run {run_id} has ended: {why}", file=sys.stderr)  # noqa: T201


def post(url: str, run: Run) -> None:
    """Send a run's name and status as JSON; redirects are not followed.

    Raises:
        NoticeError: if the address is not http(s), cannot be reached, or answers with an error.
    """
    host = _host(url)
    request = urllib.request.Request(
        url,
        data=json.dumps(_content(run)).encode(),
        headers={"Content-Type": "application/json", "User-Agent": "EveryTurn"},
        method="POST",
    )
    opener = urllib.request.OpenerDirector()
    for handler in (
        urllib.request.ProxyHandler(),
        urllib.request.HTTPHandler(),
        urllib.request.HTTPSHandler(),
    ):
        opener.add_handler(handler)
    try:
        with opener.open(request, timeout=TIMEOUT_S) as answer:
            if not 200 <= answer.status < 300:
                raise NoticeError(f"it answers {answer.status} {answer.reason}", where=host)
    except (OSError, HTTPException, ValueError) as error:
        raise NoticeError(f"it cannot be reached ({error})", where=host) from error


def _content(run: Run) -> dict[str, object]:
    """Return what is posted; `text` is what chat services show of it."""
    return {
        "text": f"EveryTurn: run {run.id} \N{LEFT DOUBLE QUOTATION MARK}{run.name}"
        f"\N{RIGHT DOUBLE QUOTATION MARK} has ended: {run.status}.",
        "run": run.id,
        "name": run.name,
        "status": run.status.value,
        "error_kind": run.error_kind.value if run.error_kind else None,
        "ended_at": run.ended_at.isoformat() if run.ended_at else None,
    }


def _host(url: str) -> str:
    """Name the hook without what may be secret in its address.

    Raises:
        NoticeError: if it is no address of http or https.
    """
    try:
        parts = urlsplit(url)
    except ValueError:
        parts = urlsplit("")
    if parts.scheme not in ("http", "https"):
        raise NoticeError(
            "a webhook is called by http or https only",
            where=f"webhook {url}",
            remedy="Correct the address in the settings.",
        )
    return f"webhook at {parts.netloc.rpartition('@')[2]}"
