"""What the service takes and gives, as OpenAPI 3.1 and as a page that needs nothing else."""

from __future__ import annotations

from html import escape
from typing import Any

from taciturn.jobs.serve.http.requests import REASONS, BatchRequest, RowRequest
from taciturn.version import __version__

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
_STAMP = {
    "model": {"type": "string", "description": "The name of the model's training."},
    "request": {"type": "string", "description": "The request's number, which the log has too."},
}


def openapi(max_rows_per_request: int) -> dict[str, Any]:
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
                "Score": _SCORE,
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
