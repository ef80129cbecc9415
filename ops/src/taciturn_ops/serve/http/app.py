"""The ASGI application: paths, callers, limits of a request, and answers in JSON.

It may be mounted in another one. Every answer has the name of the model's training and a number of
the request, which the log has too. Nothing of a row is in the log.
"""

from __future__ import annotations

import asyncio
import os
import time
import traceback
from collections import Counter
from collections.abc import Awaitable, Callable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from html import escape
from typing import Any

from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.requests import ClientDisconnect, Request
from starlette.responses import HTMLResponse, JSONResponse, PlainTextResponse, Response
from starlette.routing import Route

from taciturn.engine.callbacks import noop
from taciturn.errors import OutputError
from taciturn.rng import SystemEntropy
from taciturn.version import __version__
from taciturn_ops.serve.batcher import BUCKETS, BatcherStats, Histogram
from taciturn_ops.serve.http.callers import Caller, Callers
from taciturn_ops.serve.http.requests import (
    REASONS,
    BatchRequest,
    Refusal,
    RequestedRows,
    RowRequest,
    one_row,
    several_rows,
)
from taciturn_ops.serve.http.scorer import Scorer

CONTENT_TYPE = "text/plain; version=0.0.4; charset=utf-8"
_P = "taciturn_serve_"


@dataclass(slots=True)
class ServiceFigures:
    """Counters since the start.

    ``rows`` are counted by what became of them: scored, or the code of the refusal.
    """

    requests: Counter[int] = field(default_factory=Counter)
    rows: Counter[str] = field(default_factory=Counter)
    seconds: Histogram = field(default_factory=Histogram)


def service_exposition(
    figures: ServiceFigures, batcher: BatcherStats, active: int, session: str
) -> str:
    """The service's metrics in Prometheus' text format."""
    statuses = {f'status="{status}"': count for status, count in sorted(figures.requests.items())}
    results = {f'result="{name}"': count for name, count in sorted(figures.rows.items())}
    up, model = int(batcher.connected), f'model="{session}"'
    lines = [
        *_metric("info", "gauge", "Which model is served; always 1.", {model: 1}),
        *_metric("requests_total", "counter", "Requests, by status.", statuses),
        *_metric(
            "rows_total", "counter", "Rows that were asked for, by what became of them.", results
        ),
        *_histogram("request_seconds", "How long requests for scores took.", figures.seconds),
        *_histogram("round_seconds", "How long rounds with the partner took.", batcher.seconds),
        *_metric("requests_active", "gauge", "Requests under way.", {"": active}),
        *_metric("partner_up", "gauge", "1 while the partner is there.", {"": up}),
        *_metric("meetings_total", "counter", "Meetings with the partner.", {"": batcher.meetings}),
        *_metric("rounds_total", "counter", "Rounds with the partner.", {"": batcher.rounds}),
        *_metric("jobs_retried_total", "counter", "Jobs asked again.", {"": batcher.retried}),
    ]
    return "\n".join(lines) + "\n"


def _metric(name: str, kind: str, meaning: str, samples: Mapping[str, float]) -> Iterator[str]:
    yield f"# HELP {_P}{name} {meaning}"
    yield f"# TYPE {_P}{name} {kind}"
    for labels, value in samples.items():
        yield f"{_P}{name}{{{labels}}} {value}" if labels else f"{_P}{name} {value}"


def _histogram(name: str, meaning: str, of: Histogram) -> Iterator[str]:
    yield from _metric(name, "histogram", meaning, {})
    total = 0
    for end, count in zip((*BUCKETS, "+Inf"), of.counts, strict=True):
        total += count
        yield f'{_P}{name}_bucket{{le="{end}"}} {total}'
    yield f"{_P}{name}_sum {of.total}"
    yield f"{_P}{name}_count {total}"


_REFERENCE = "#/components/schemas/{model}"
_ERROR = {
    "type": "object",
    "required": ["code", "message", "try"],
    "properties": {
        "code": {"enum": [*REASONS], "description": "A name that does not change."},
        "message": {"type": "string"},
        "try": {"type": "string"},
    },
}
_SCORE = {
    "type": "object",
    "required": ["id", "score", "probability", "class"],
    "properties": {
        "id": {"type": "string"},
        "score": {"type": "number", "description": "The log-odds."},
        "probability": {"type": "number"},
        "class": {"enum": [0, 1]},
    },
}
_MEAN = {
    "type": "object",
    "required": ["id", "score", "mean"],
    "properties": {
        "id": {"type": "string"},
        "score": {"type": "number", "description": "The linear predictor."},
        "mean": {"type": "number", "description": "Of one unit of exposure."},
    },
}
_STAMP = {
    "model": {"type": "string", "description": "The name of the model's training."},
    "request": {"type": "string", "description": "The request's number, which the log has too."},
}


def openapi(max_rows_per_request: int, means: bool = False) -> dict[str, Any]:
    """The description of the service, which is open to all: no column's name is in it."""
    row = {"oneOf": [_to("Score"), _to("RefusedRow")]}
    return {
        "openapi": "3.1.0",
        "info": {
            "title": "Scores of a model that two parties have trained",
            "version": __version__,
            "description": "Each row is scored with the partner; neither side has the other's "
            "columns. GET /v1/model lists the columns that a request may bring.",
        },
        "components": {
            "schemas": {
                **_schemas(RowRequest),
                **_schemas(BatchRequest),
                "BatchRequest": _batch_schema(max_rows_per_request),
                "Score": _MEAN if means else _SCORE,
                "Error": _ERROR,
                "RefusedRow": {
                    "type": "object",
                    "required": ["id", "refused"],
                    "properties": {"id": {"type": "string"}, "refused": _to("Error")},
                },
            },
            "securitySchemes": {
                "token": {"type": "http", "scheme": "bearer"},
                "certificate": {"type": "mutualTLS"},
            },
        },
        "security": [{"token": []}, {"certificate": []}],
        "paths": {
            "/v1/score": {
                "post": _post(
                    "Score one row", "RowRequest", {"allOf": [_to("Score"), _object(_STAMP)]}
                )
            },
            "/v1/scores": {
                "post": _post(
                    f"Score up to {max_rows_per_request} rows, in the order of the request",
                    "BatchRequest",
                    _object({"rows": {"type": "array", "items": row}, **_STAMP}),
                )
            },
            "/v1/model": {"get": _get("What is served, and with which columns")},
            "/metrics": {"get": _get("Figures for Prometheus")},
            "/healthz": {"get": _get("Whether the service is alive", open_to_all=True)},
            "/readyz": {"get": _get("Whether it can score now; 503 where not", open_to_all=True)},
        },
    }


def reference_page(description: dict[str, Any]) -> str:
    """The description for people: one page without script or anything from elsewhere."""
    info = description["info"]
    paths = "".join(
        f"<tr><td><code>{method.upper()} {escape(path)}</code></td>"
        f"<td>{escape(facts['summary'])}</td></tr>"
        for path, methods in description["paths"].items()
        for method, facts in methods.items()
    )
    reasons = "".join(
        f"<tr><td><code>{code}</code></td><td>{reason.status}</td><td>{escape(reason.meaning)}</td>"
        f"<td>{escape(reason.hint)}</td></tr>"
        for code, reason in REASONS.items()
    )
    return f"""<!doctype html>
<html lang="en"><head><meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>{escape(info["title"])}</title><style>
:root {{ color-scheme: light dark; }}
body {{ font: 1rem/1.5 system-ui, sans-serif; margin: 2rem auto; max-width: 60rem;
  padding: 0 1rem; }}
table {{ border-collapse: collapse; width: 100%; }} div {{ overflow-x: auto; }}
td, th {{ border-bottom: 1px solid #8884; padding: .4rem .6rem .4rem 0; text-align: left;
  vertical-align: top; }}
pre {{ background: #8881; overflow-x: auto; padding: .8rem; }}
</style></head><body>
<h1>{escape(info["title"])}</h1>
<p>{escape(info["description"])}</p>
<p>The whole description: <a href="openapi.json">openapi.json</a> (OpenAPI 3.1).</p>
<h2>Paths</h2><div><table>{paths}</table></div>
<h2>One row</h2>
<pre>curl -H "Authorization: Bearer $TOKEN" -H "Content-Type: application/json" \\
  -d '{{"id": "c0042"}}' http://127.0.0.1:8080/v1/score</pre>
<h2>Several rows</h2>
<pre>{{"ids": ["c0042", "c0043"]}}
{{"rows": [{{"id": "c0042", "columns": {{"age": 31, "city": null}}}}]}}</pre>
<h2>Reasons of refusals</h2>
<div><table><tr><th>code</th><th>status</th><th>meaning</th><th>way out</th></tr>
{reasons}</table></div>
</body></html>
"""


def _schemas(kind: Any) -> dict[str, Any]:  # noqa: ANN401 - a pydantic model
    schema = kind.model_json_schema(ref_template=_REFERENCE)
    return {**schema.pop("$defs", {}), kind.__name__: schema}


def _batch_schema(most: int) -> dict[str, Any]:
    """``BatchRequest`` with what its types do not say: one of two lists, and how long it is."""
    schema: dict[str, Any] = _schemas(BatchRequest)["BatchRequest"]
    for field_schema in schema["properties"].values():
        rows, _ = field_schema["anyOf"]
        rows.update(minItems=1, maxItems=most, uniqueItems=True)
    given, absent = {"type": "array"}, {"type": "null"}
    alternatives = [
        {"required": [one], "properties": {one: given, other: absent}}
        for one, other in (("ids", "rows"), ("rows", "ids"))
    ]
    return {**schema, "oneOf": alternatives}


def _to(name: str) -> dict[str, str]:
    return {"$ref": _REFERENCE.format(model=name)}


def _object(properties: dict[str, Any]) -> dict[str, Any]:
    return {"type": "object", "required": [*properties], "properties": properties}


def _json(schema: dict[str, Any]) -> dict[str, Any]:
    return {"application/json": {"schema": schema}}


def _post(summary: str, body: str, answer: dict[str, Any]) -> dict[str, Any]:
    refused = _object({"error": _to("Error"), "request": _STAMP["request"]})
    return {
        "summary": summary,
        "requestBody": {"required": True, "content": _json(_to(body))},
        "responses": {
            "200": {"description": "Scores.", "content": _json(answer)},
            "default": {"description": "Refused, by name.", "content": _json(refused)},
        },
    }


def _get(summary: str, *, open_to_all: bool = False) -> dict[str, Any]:
    facts: dict[str, Any] = {"summary": summary, "responses": {"200": {"description": "It."}}}
    return {**facts, "security": []} if open_to_all else facts


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
        self._scorer, self.callers, self._about, self._log = scorer, callers, about, log
        self.figures = ServiceFigures()
        # Told the host and port of each request that shows who asks; a server sets it.
        self.authenticated: Callable[[tuple[str, int]], None] = noop
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
        """Exception that ended the partner thread; None while it runs."""
        return self._scorer.batcher.failure

    def stop(self) -> None:
        """Take no more requests; refuse those that are incomplete or cannot be answered."""
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
            if client := request.scope.get("client"):
                self.authenticated(client)
            return await handler(request)

        return handle

    def _caller(self, request: Request) -> Caller:
        names = request.scope.get("state", {}).get(CERTIFICATE_NAMES)
        if names is not None:
            caller = self.callers.by_certificate(names)
            if caller is None:
                raise Refusal("not-allowed")
            return caller
        kind, _, token = request.headers.get("authorization", "").partition(" ")
        shown = self.callers.by_token(token.strip()) if kind.lower() == "bearer" else None
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
        most = self._scorer.limits.max_rows_per_request
        about = {**self._about, "max_rows_per_request": most}
        return JSONResponse({**about, "request": request.state.number})

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

    def _description(self) -> dict[str, Any]:
        return openapi(self._scorer.limits.max_rows_per_request, "family" in self._about)

    async def _openapi(self, request: Request) -> Response:
        return JSONResponse(self._description())

    async def _page(self, request: Request) -> Response:
        page = reference_page(self._description())
        policy = "default-src 'none'; style-src 'unsafe-inline'"
        return HTMLResponse(page, headers={"Content-Security-Policy": policy})

    async def _not_found(self, request: Request, problem: Exception) -> Response:
        status = getattr(problem, "status_code", 404)
        code = "wrong-method" if status == 405 else "not-found"
        self.figures.requests[status] += 1
        response = refused(Refusal(code))
        # The methods of the path, which RFC 9110 requires of a 405.
        response.headers.update(getattr(problem, "headers", None) or {})
        return response


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
    """The rows of a body; a large one is parsed in a thread, to keep the event loop free."""
    return parse(body) if len(body) < SMALL_BYTES else await asyncio.to_thread(parse, body)
