"""Requests that get no score, each with the name of the refusal that they get.

A test sends every one of them. ``python -m ops.tests.serve.wrong_requests`` writes the table of
refusals into ``ops/docs/serve.md``; another test compares the two.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path

from taciturn_ops.serve.http.requests import REASONS

PAGE = Path(__file__).resolve().parents[2] / "docs" / "serve.md"
HEAD = "| code | status | meaning |\n|---|---|---|\n"
COLUMNS = ("mean_concavity", "mean_concave_points", "mean_symmetry")
ROW = dict.fromkeys(COLUMNS, 0.1)


@dataclass(frozen=True)
class Wrong:
    """A request.

    Args:
        code: The name of its refusal.
        body: What is sent; what is no text is sent as JSON.
        names: What the answer names, beside the meaning.
        path: Where to.
        method: How.
        headers: In place of the usual ones; empty ones are left out.
        token: In place of the caller's.
        inside: Whether the refusal is a row's, in an answer of status 200.
    """

    code: str
    body: object = None
    names: tuple[object, ...] = ()
    path: str = "/v1/score"
    method: str = "POST"
    headers: Mapping[str, str] = field(default_factory=dict)
    token: str | None = None
    inside: bool = False


def large() -> bytes:
    """A hundred megabytes that begin like a request."""
    return b'{"ids": ["' + b"x" * (100 << 20)


def columns_text(value: str) -> str:
    """A row with this text as one of its values."""
    values = ", ".join(f'"{name}": {value if name == COLUMNS[0] else 0.1}' for name in COLUMNS)
    return f'{{"id": "p0121", "columns": {{{values}}}}}'


WRONG: dict[str, Wrong | Callable[[], Wrong]] = {
    "no token": Wrong("not-authenticated", {"id": "p0121"}, headers={"Authorization": ""}),
    "a token that nobody has": Wrong("not-authenticated", {"id": "p0121"}, token="0" * 64),
    "a token in another scheme": Wrong(
        "not-authenticated", {"id": "p0121"}, headers={"Authorization": "Basic Y3JtOng="}
    ),
    "the metrics without a token": Wrong(
        "not-authenticated", path="/metrics", method="GET", headers={"Authorization": ""}
    ),
    "a path that is none": Wrong("not-found", {"id": "p0121"}, path="/v2/score"),
    "`GET` where `POST` is due": Wrong("wrong-method", method="GET"),
    "a form": Wrong(
        "wrong-type", "id=p0121", headers={"Content-Type": "application/x-www-form-urlencoded"}
    ),
    "half of a JSON text": Wrong("not-json", '{"id": "p0'),
    "a NaN among the columns": Wrong("not-json", '{"id": "p0121", "columns": {"a": NaN}}'),
    "Infinity": Wrong("not-json", '{"id": "p0121", "columns": {"a": Infinity}}'),
    "a thousand brackets": Wrong("not-json", "[" * 100_000),
    "a body in UTF-16": Wrong("not-json", '{"id": "p0121"}'.encode("utf-16"), ("UTF-8",)),
    "a body in Latin-1": Wrong("not-json", '{"id": "é0121"}'.encode("latin-1"), ("UTF-8",)),
    "a key twice": Wrong("wrong-request", '{"id": "p0121", "id": "p0122"}'),
    "a column twice": Wrong(
        "wrong-request",
        f'{{"id": "p0121", "columns": {{"{COLUMNS[0]}": 1, "{COLUMNS[0]}": 2}}}}',
    ),
    "headers of 70 kB": Wrong("large-head", {"id": "p0121"}, headers={"X-A": "a" * 70_000}),
    "a list": Wrong("wrong-request", [1, 2]),
    "an unknown key": Wrong("wrong-request", {"id": "p0121", "label": 1}, ("label",)),
    "an id that is a number": Wrong("wrong-request", {"id": 121}, ("id",)),
    "an empty id": Wrong("wrong-request", {"id": ""}, ("id", 1)),
    "an id of 300 letters": Wrong("wrong-request", {"id": "x" * 300}, ("id", 256)),
    "an id with a line break": Wrong("wrong-request", {"id": "p0\n121"}),
    "an id twice": Wrong("wrong-request", {"ids": ["p0121", "p0121"]}, path="/v1/scores"),
    "`ids` and `rows`": Wrong(
        "wrong-request", {"ids": ["a"], "rows": []}, ("ids", "rows"), path="/v1/scores"
    ),
    "no row": Wrong("wrong-request", {"ids": []}, path="/v1/scores"),
    "more rows than a request may have": Wrong(
        "too-large",
        {"ids": [f"p{number}" for number in range(101)]},
        (101, 100),
        path="/v1/scores",
    ),
    "a body of 100 MB": lambda: Wrong("too-large", large(), (8,)),
    "a column that the model does not have": Wrong(
        "unknown-column", {"id": "p0121", "columns": {**ROW, "shoe_size": 42}}, ("'shoe_size'",)
    ),
    "a column that is left out": Wrong(
        "wrong-request",
        {"id": "p0121", "columns": {COLUMNS[0]: 1.0}},
        ("mean_concave_points",),
    ),
    "a word in a column of numbers": Wrong(
        "unfit-row", {"id": "p0121", "columns": {**ROW, COLUMNS[1]: "much"}}
    ),
    "a number that is infinite once read": Wrong("unfit-row", columns_text("1e999")),
    "a whole number of 4,000 digits": Wrong("unfit-row", columns_text("9" * 4000)),
    "half of a character in a column": Wrong("unfit-row", columns_text('"\\ud800"')),
    "an id that Bob does not have": Wrong("unknown-id", {"id": "nobody"}),
    "an id that Alice does not have": Wrong("unknown-id", {"id": "nobody", "columns": ROW}),
    "the same among others": Wrong(
        "unknown-id",
        {"rows": [{"id": "p0121"}, {"id": "nobody", "columns": ROW}]},
        path="/v1/scores",
        inside=True,
    ),
}


def case(name: str) -> Wrong:
    """A request by its name."""
    wrong = WRONG[name]
    return wrong if isinstance(wrong, Wrong) else wrong()


def table() -> str:
    """The table of the documentation."""
    return HEAD + "".join(
        f"| `{code}` | {reason.status} | {reason.meaning}; {reason.hint} |\n"
        for code, reason in REASONS.items()
    )


def render(text: str) -> str:
    """The page with its table, at its end, written again."""
    before, _, _ = text.partition(HEAD)
    return before + table()


if __name__ == "__main__":
    PAGE.write_text(render(PAGE.read_text(encoding="utf-8")), encoding="utf-8")
