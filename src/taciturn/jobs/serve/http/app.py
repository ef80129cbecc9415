"""The ASGI application: paths, callers, limits of a request, and answers in JSON.

It may be mounted in another one. Every answer has the name of the model's training and a number of
the request, which the log has too. Nothing of a row is in the log.
"""

from __future__ import annotations

import asyncio
import os
import time
import traceback
from collections.abc import Awaitable, Callable
from contextlib import suppress
from typing import Any

from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.requests import ClientDisconnect, Request
from starlette.responses import HTMLResponse, JSONResponse, PlainTextResponse, Response
from starlette.routing import Route

from taciturn.errors import OutputError
from taciturn.jobs.serve.http.callers import Caller, Callers
from taciturn.jobs.serve.http.metrics import CONTENT_TYPE, ServiceFigures, service_exposition
from taciturn.jobs.serve.http.openapi import openapi, reference_page
from taciturn.jobs.serve.http.requests import Refusal, RequestedRows, one_row, several_rows
from taciturn.jobs.serve.http.scorer import Scorer
from taciturn.rng import SystemEntropy

MOST_BODY_BYTES = 8 << 20
SMALL_BYTES = 64 << 10
BODY_SECONDS = 20.0
RETRY_SECONDS = 1
# Nobody gets it: the caller has gone. The number is nginx's.
HUNG_UP = 499
CERTIFICATE_NAMES = "taciturn.caller"
"""Where a server leaves the DNS names in the caller's certificate, in the state of the scope."""

Handler = Callable[[Request], Awaitable[Response]]


class ScoringApp:
    """The application.

    ``about`` is what ``GET /v1/model`` says; each request adds a line to ``log``.
    """

    def __init__(
        self, scorer: Scorer, callers: Callers, about: dict[str, Any], log: Callable[..., None]
    ) -> None:
        self._scorer, self._callers, self._about, self._log = scorer, callers, about, log
        self.figures = ServiceFigures()
        self._reading: set[asyncio.Timeout] = set()
        self._session = str(about["model"])
        paths: dict[str, tuple[str, Handler]] = {
            "/v1/score": ("POST", self._one),
            "/v1/scores": ("POST", self._several),
            "/v1/model": ("GET", self._model),
            "/metrics": ("GET", self._metrics),
        }
        self._open: dict[str, Handler] = {
            "/healthz": self._health,
            "/readyz": self._ready,
            "/openapi.json": self._openapi,
            "/": self._page,
        }
        routes = [
            Route(path, self._logged(self._authenticated(handler)), methods=[method])
            for path, (method, handler) in paths.items()
        ]
        routes += [Route(path, self._logged(handler)) for path, handler in self._open.items()]
        self.asgi = Starlette(routes=routes, exception_handlers={HTTPException: self._not_found})
        # A request to another path is refused, and not sent elsewhere.
        self.asgi.router.redirect_slashes = False

    @property
    def failure(self) -> BaseException | None:
        """What has ended the thread that asks the partner; None while it runs."""
        return self._scorer.batcher.failure

    def stop(self) -> None:
        """No request is taken any more; what is incomplete, or nobody can answer, is refused."""
        self._scorer.stopping = True
        now = asyncio.get_running_loop().time() if self._reading else 0.0
        for limit in self._reading:
            if not limit.expired():
                limit.reschedule(now)
        self._scorer.batcher.refuse_all()

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:  # noqa: ANN401 - ASGI
        """The ASGI interface."""
        await self.asgi(scope, receive, send)

    def _logged(self, handler: Handler) -> Handler:
        """A handler whose requests are counted and logged, and whose refusals become answers."""

        async def handle(request: Request) -> Response:
            start, number = time.perf_counter(), _number()
            request.state.number = number
            try:
                response = await handler(request)
            except Refusal as refusal:
                response = refused(refusal, number)
            except ClientDisconnect:
                response = Response(status_code=HUNG_UP)
            except asyncio.CancelledError:
                # The server ends, and has waited for as long as it will.
                if not self._scorer.stopping:
                    raise
                response = refused(Refusal("stopping"), number)
            except Exception as problem:
                response = refused(Refusal("bug"), number)
                with suppress(OutputError):
                    self._log("a bug", number=number, kind=type(problem).__name__)
                if os.environ.get("TACITURN_DEBUG"):
                    traceback.print_exception(problem)
            # A score that was counted is given, also where the log cannot be written.
            with suppress(OutputError):
                self._note(request, response.status_code, time.perf_counter() - start)
            return response

        return handle

    def _note(self, request: Request, status: int, seconds: float) -> None:
        self.figures.requests[status] += 1
        if request.url.path in self._open:
            return
        caller: Caller | None = getattr(request.state, "caller", None)
        self._log(
            "request",
            number=request.state.number,
            path=request.url.path,
            caller=caller.name if caller else None,
            status=status,
            rows=getattr(request.state, "rows", 0),
            seconds=round(seconds, 6),
        )

    def _authenticated(self, handler: Handler) -> Handler:
        async def handle(request: Request) -> Response:
            request.state.caller = self._caller(request)
            return await handler(request)

        return handle

    def _caller(self, request: Request) -> Caller:
        names = request.scope.get("state", {}).get(CERTIFICATE_NAMES)
        if names is not None:
            caller = self._callers.by_certificate(names)
            if caller is None:
                raise Refusal("not-allowed")
            return caller
        kind, _, token = request.headers.get("authorization", "").partition(" ")
        shown = self._callers.by_token(token.strip()) if kind.lower() == "bearer" else None
        if shown is None:
            raise Refusal("not-authenticated")
        return shown

    async def _one(self, request: Request) -> Response:
        wanted = await _read(one_row, await self._body(request))
        (answer,) = await self._scored(request, wanted)
        if "refused" in answer:
            code = answer["refused"]["code"]
            refusal = Refusal(code)
            content = {"error": answer["refused"], "id": answer["id"], **self._stamp(request)}
            return JSONResponse(content, refusal.status)
        return JSONResponse({**answer, **self._stamp(request)})

    async def _several(self, request: Request) -> Response:
        most = self._scorer.limits.max_rows_per_request
        wanted = await _read(lambda body: several_rows(body, most), await self._body(request))
        answers = await self._scored(request, wanted)
        return JSONResponse({"rows": answers, **self._stamp(request)})

    async def _body(self, request: Request) -> bytes:
        """The body of a request, of which no more is read than is allowed."""
        kind = request.headers.get("content-type", "").partition(";")[0].strip().lower()
        if kind != "application/json":
            raise Refusal("wrong-type")
        announced = request.headers.get("content-length", "0")
        if not announced.isdecimal() or len(announced) > 12 or int(announced) > MOST_BODY_BYTES:
            raise Refusal("too-large", f"{MOST_BODY_BYTES >> 20} MiB are the most")
        if self._scorer.stopping:
            raise Refusal("stopping")
        parts, size, limit = [], 0, asyncio.timeout(BODY_SECONDS)
        self._reading.add(limit)
        try:
            async with limit:
                async for part in request.stream():
                    size += len(part)
                    if size > MOST_BODY_BYTES:
                        raise Refusal("too-large", f"{MOST_BODY_BYTES >> 20} MiB are the most")
                    parts.append(part)
        except TimeoutError:
            raise Refusal("stopping" if self._scorer.stopping else "slow-request") from None
        finally:
            self._reading.discard(limit)
        return b"".join(parts)

    async def _scored(self, request: Request, wanted: RequestedRows) -> list[dict[str, Any]]:
        start = time.perf_counter()
        request.state.rows = len(wanted)
        answers = await self._scorer.answers(wanted, request.state.caller)
        for answer in answers:
            self.figures.rows[answer["refused"]["code"] if "refused" in answer else "scored"] += 1
        self.figures.seconds.add(time.perf_counter() - start)
        return answers

    def _stamp(self, request: Request) -> dict[str, Any]:
        return {"model": self._session, "request": request.state.number}

    async def _model(self, request: Request) -> Response:
        return JSONResponse({**self._about, "request": request.state.number})

    async def _metrics(self, request: Request) -> Response:
        text = service_exposition(
            self.figures, self._scorer.batcher.stats, self._scorer.active, self._session
        )
        return PlainTextResponse(text, media_type=CONTENT_TYPE)

    async def _health(self, request: Request) -> Response:
        alive = self._scorer.batcher.failure is None
        return JSONResponse({"alive": alive}, 200 if alive else 503)

    async def _ready(self, request: Request) -> Response:
        stats = self._scorer.batcher.stats
        ready = stats.connected and not self._scorer.stopping
        content = {"ready": ready, "partner": "connected" if stats.connected else "away"}
        return JSONResponse(content, 200 if ready else 503)

    async def _openapi(self, request: Request) -> Response:
        return JSONResponse(openapi(self._scorer.limits.max_rows_per_request))

    async def _page(self, request: Request) -> Response:
        page = reference_page(openapi(self._scorer.limits.max_rows_per_request))
        policy = "default-src 'none'; style-src 'unsafe-inline'"
        return HTMLResponse(page, headers={"Content-Security-Policy": policy})

    async def _not_found(self, request: Request, problem: Exception) -> Response:
        status = getattr(problem, "status_code", 404)
        code = "wrong-method" if status == 405 else "not-found"
        self.figures.requests[status] += 1
        return refused(Refusal(code))


def refused(refusal: Refusal, number: str | None = None) -> Response:
    """The answer to a request that is refused."""
    number, headers = number or _number(), {}
    if refusal.status == 401:
        headers["WWW-Authenticate"] = "Bearer"
    if refusal.status == 503:
        headers["Retry-After"] = str(RETRY_SECONDS)
    return JSONResponse(
        {"error": refusal.to_json(), "request": number}, refusal.status, headers=headers
    )


def _number() -> str:
    return SystemEntropy().token(8).hex()


async def _read(parse: Callable[[bytes], RequestedRows], body: bytes) -> RequestedRows:
    """The rows of a body; a large one is read in a thread, where it holds nobody up."""
    return parse(body) if len(body) < SMALL_BYTES else await asyncio.to_thread(parse, body)
