"""The endpoint's routes: who may ask, what is asked, and what went wrong in words."""

import asyncio
import time
from collections.abc import AsyncIterator
from typing import Any

from fastapi import FastAPI, Request
from fastapi.exceptions import RequestValidationError
from fastapi.responses import JSONResponse, StreamingResponse
from starlette.exceptions import HTTPException
from starlette.middleware.trustedhost import TrustedHostMiddleware

from db.errors import EveryTurnError
from trainer.errors import BadDataError, ChatTemplateError, OutOfMemoryError, shortened
from trainer.serving.adapters import BASE, RefusedAdapterError, UnknownModelError
from trainer.serving.answers import END, Answer, as_event
from trainer.serving.gate import INVALID, Gate
from trainer.serving.jobs import Began, Event, Failed, Finished, Job, Token
from trainer.serving.model import ContextError, ServedModel
from trainer.serving.protocol import ChatRequest, error_body, model_body
from trainer.serving.scheduler import LeavingError

SERVER = "server_error"

KINDS: dict[type[EveryTurnError], tuple[int, str, str]] = {
    UnknownModelError: (404, INVALID, "model_not_found"),
    RefusedAdapterError: (400, INVALID, "adapter_refused"),
    ContextError: (400, INVALID, "context_length_exceeded"),
    ChatTemplateError: (400, INVALID, "template_refuses_messages"),
    BadDataError: (400, INVALID, "invalid_messages"),
    LeavingError: (503, SERVER, "device_given_up"),
    OutOfMemoryError: (503, SERVER, "out_of_memory"),
}
"""For each kind of error the HTTP status, and the type and code that clients see."""


def make_app(model: ServedModel, token: str, health: dict[str, Any]) -> FastAPI:
    """Return the endpoint.

    Args:
        model: What answers.
        token: What a client must present.
        health: What `/health` says beside the state of the work.
    """
    app = FastAPI(title="EveryTurn", docs_url=None, redoc_url=None, openapi_url=None)
    app.add_middleware(Gate, token=token, open_paths=["/health"])
    # A page on another site may not reach this server by a name that it lets point here.
    app.add_middleware(TrustedHostMiddleware, allowed_hosts=["127.0.0.1", "localhost"])
    app.add_exception_handler(EveryTurnError, _explain)
    app.add_exception_handler(RequestValidationError, _explain_request)
    app.add_exception_handler(HTTPException, _explain_status)

    @app.get("/health")
    def show_health() -> dict[str, Any]:
        scheduler = model.scheduler
        return {
            "status": "ok",
            **health,
            "base_model": model.base_model,
            "device": model.device,
            "context_tokens": model.context_tokens,
            "active": scheduler.active,
            "waiting": scheduler.waiting,
            "quiet_s": _seconds_since(scheduler.quiet_since),
        }

    @app.get("/v1/models")
    def list_models() -> dict[str, Any]:
        offers = model.shelf.offers()
        usable = [BASE, *(offer.name for offer in offers if not offer.refusal)]
        refused = [{"id": o.name, "reason": o.refusal} for o in offers if o.refusal]
        data = [model_body(name, model.base_model) for name in usable]
        return {"object": "list", "data": data, "refused": refused}

    @app.get("/v1/models/{name}")
    def show_model(name: str) -> dict[str, Any]:
        model.shelf.check(name)
        return model_body(name, model.base_model)

    @app.post("/v1/chat/completions", response_model=None)
    async def complete(body: ChatRequest, request: Request) -> JSONResponse | StreamingResponse:
        messages = [message.to_template() for message in body.messages]
        prompt = await asyncio.to_thread(model.prompt, messages, body.tools)
        answer = Answer(body, prompt, model.tokenizer)
        events: asyncio.Queue[Event] = asyncio.Queue()
        loop = asyncio.get_running_loop()

        def send(event: Event) -> None:
            loop.call_soon_threadsafe(events.put_nowait, event)

        job = Job(
            name=body.model,
            prompt=prompt,
            params=body.sampling(model.context_tokens - len(prompt)),
            choices=body.n,
            likeliest=body.top_logprobs or 0,
            send=send,
        )
        model.scheduler.submit(job)
        listener = asyncio.create_task(_cancel_when_gone(request, job, events))
        try:
            await _begin(answer, events)
            if not body.stream:
                async for _ in _tell(answer, events):
                    pass
                return JSONResponse(answer.body())
        except BaseException:
            job.cancel()
            raise
        finally:
            listener.cancel()
        return StreamingResponse(_stream(answer, events, job), media_type="text/event-stream")

    return app


def _seconds_since(moment: float | None) -> float:
    """Return how long ago a moment of `time.monotonic` was; 0 while it has not come."""
    return 0.0 if moment is None else time.monotonic() - moment


class _HangUpError(EveryTurnError):
    """The client has gone; nobody reads this."""


async def _cancel_when_gone(request: Request, job: Job, events: "asyncio.Queue[Event]") -> None:
    """End the job if the client hangs up before the answer begins."""
    while (await request.receive())["type"] != "http.disconnect":
        pass
    job.cancel()
    events.put_nowait(Failed(_HangUpError("the client hung up")))


async def _begin(answer: Answer, events: "asyncio.Queue[Event]") -> None:
    """Wait until the prompt is taken on, so that a refusal comes as a status and not in a stream."""
    event = await events.get()
    if isinstance(event, Failed):
        raise event.error
    assert isinstance(event, Began)  # it comes first
    answer.begin(event)


async def _tell(answer: Answer, events: "asyncio.Queue[Event]") -> AsyncIterator[dict[str, Any]]:
    while not answer.is_complete:
        event = await events.get()
        if isinstance(event, Failed):
            raise event.error
        if isinstance(event, Token | Finished):
            yield answer.add(event)


async def _stream(answer: Answer, events: "asyncio.Queue[Event]", job: Job) -> AsyncIterator[str]:
    """Yield server-sent events; the job ends when nobody reads them any more."""
    try:
        async for chunk in _tell(answer, events):
            yield as_event(chunk)
        for chunk in answer.usage_chunk():
            yield as_event(chunk)
        yield END
    except EveryTurnError as error:
        yield as_event(_body(error)[1])
    finally:
        job.cancel()


def _body(error: EveryTurnError) -> tuple[int, dict[str, Any]]:
    found = (KINDS[kind] for kind in type(error).__mro__ if kind in KINDS)
    status, kind, code = next(found, (500, SERVER, "internal_error"))
    return status, error_body(str(error), kind=kind, code=code)


async def _explain(_: Request, error: Exception) -> JSONResponse:
    assert isinstance(error, EveryTurnError)  # registered for these
    status, body = _body(error)
    return JSONResponse(body, status_code=status)


async def _explain_request(_: Request, error: Exception) -> JSONResponse:
    assert isinstance(error, RequestValidationError)  # registered for these
    first = error.errors()[0]
    place = [str(part) for part in first["loc"] if part != "body"]
    path = shortened(".".join(place))
    message = f"{path or 'body'}: {first['msg'].removeprefix('Value error, ')}."
    if first["type"] == "extra_forbidden" and "content" not in place:
        message = f"{path}: this server does not offer it. Leave it out."
    elif first["type"] == "json_invalid":
        why = first.get("ctx", {}).get("error", first["msg"])
        path, message = "", f"body: it is not JSON ({why}, at byte {path}). Send a JSON object."
    elif place[:1] == ["messages"] and place[2:3] == ["content"]:
        path = ".".join(place[:3])
        message = f"{path}: it must be text, or a list of parts of the type text. No model here sees more."
    body = error_body(message, kind=INVALID, code="invalid_value", param=path or None)
    return JSONResponse(body, status_code=400)


async def _explain_status(_: Request, error: Exception) -> JSONResponse:
    """Give what the framework itself refuses the form that clients read."""
    assert isinstance(error, HTTPException)  # registered for these
    message = {
        400: "body: it cannot be read as JSON. Send a JSON object, not nested too deeply.",
        404: "path: there is no such path. Ask for /health, /v1/models or /v1/chat/completions.",
        405: "method: this path takes another one. /v1/chat/completions takes POST, the others GET.",
    }.get(error.status_code, str(error.detail))
    body = error_body(message, kind=INVALID, code=f"http_{error.status_code}")
    return JSONResponse(body, status_code=error.status_code, headers=error.headers)
