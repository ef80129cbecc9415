"""Requests of callers, and the reasons why a request or a row has no score.

A request is for one row or several, by id, or with Bob's columns.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Annotated, Any, NoReturn, TypeVar

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from taciturn_ops.serve.rounds import MOST_ID_LETTERS, Verdict

RowId = Annotated[str, Field(min_length=1, max_length=MOST_ID_LETTERS)]
MOST_COLUMNS = 10_000
Value = str | bool | int | float | None


@dataclass(frozen=True, slots=True)
class Reason:
    """A reason that callers may rely on."""

    status: int
    meaning: str
    hint: str


REASONS: Mapping[str, Reason] = {
    "not-authenticated": Reason(
        401, "the request shows no token that is known", "send Authorization: Bearer TOKEN"
    ),
    "not-allowed": Reason(
        403, "this certificate's name is not a caller's", "ask the service's owner"
    ),
    "not-found": Reason(404, "there is nothing at this path", "GET /openapi.json lists the paths"),
    "wrong-method": Reason(405, "the path does not take this method", "see /openapi.json"),
    "slow-request": Reason(408, "the request did not come to its end in time", "send it again"),
    "too-large": Reason(413, "the request is too large", "send fewer rows at a time"),
    "wrong-type": Reason(
        415, "the body is not JSON by its header", "send Content-Type: application/json"
    ),
    "not-json": Reason(
        400,
        "the body is not JSON",
        "NaN and Infinity are none either: send null for what is missing",
    ),
    "not-http": Reason(400, "this is not HTTP/1.1", "check the client and the port"),
    "large-head": Reason(431, "the headers are too large", "send fewer, or shorter ones"),
    "wrong-request": Reason(
        422, "the request is not one that this path takes", "see /openapi.json"
    ),
    "unknown-column": Reason(
        422, "a column is not one of the model's", "GET /v1/model lists the columns"
    ),
    "unknown-id": Reason(404, "a side has no row of this id", "check the id"),
    "unfit-row": Reason(
        422, "a value of the row is missing, or not what the model takes", "complete the row"
    ),
    "row-limit": Reason(429, "this row has been scored as often as is allowed", "ask its owner"),
    "caller-limit": Reason(
        429, "this caller has asked for as many rows today as it may", "wait for tomorrow, UTC"
    ),
    "partner-limit": Reason(
        429, "the partner has given as many scores today as it will", "wait for tomorrow, UTC"
    ),
    "busy": Reason(503, "too many requests wait", "ask again in a moment"),
    "partner-away": Reason(503, "the partner is not connected, or did not answer", "ask again"),
    "stopping": Reason(503, "the service is being stopped", "ask again later"),
    "partner-source": Reason(503, "the partner's rows cannot be read now", "ask again later"),
    "source-away": Reason(503, "the rows of this side cannot be read now", "ask again later"),
    "count-failed": Reason(503, "the request cannot be counted now", "ask again later"),
    "bug": Reason(500, "an error of the service itself", "report it, with the request's number"),
}
"""Every reason, by the name that an answer has under ``code``."""

OF_VERDICTS: Mapping[Verdict, str] = {
    Verdict.UNKNOWN: "unknown-id",
    Verdict.ROW_SPENT: "row-limit",
    Verdict.DAY_SPENT: "partner-limit",
    Verdict.UNFIT: "unfit-row",
    Verdict.SOURCE_AWAY: "partner-source",
}


class Refusal(Exception):
    """A request that gets no score.

    ``detail`` says what it is about here: a column's name, a number; never a value.
    """

    def __init__(self, code: str, detail: str = "") -> None:
        super().__init__(code)
        self.code, self.detail = code, detail

    @property
    def status(self) -> int:
        """The HTTP status."""
        return REASONS[self.code].status

    def to_json(self) -> dict[str, Any]:
        """Body of the answer."""
        return refusal_json(self.code, self.detail)


def refusal_json(code: str, detail: str = "") -> dict[str, Any]:
    """A reason as an answer holds it."""
    reason = REASONS[code]
    message = f"{reason.meaning}: {detail}" if detail else reason.meaning
    return {"code": code, "message": message, "try": reason.hint}


class _Strict(BaseModel):
    model_config = ConfigDict(extra="forbid", strict=True, frozen=True)


class RowRequest(_Strict):
    """One row to score."""

    id: RowId
    columns: Annotated[
        dict[str, Value] | None,
        Field(
            max_length=MOST_COLUMNS,
            description="This side's columns of the row; without them it is looked up.",
        ),
    ] = None


class BatchRequest(_Strict):
    """Several rows to score: ``ids``, or ``rows`` with columns; each id once."""

    ids: list[RowId] | None = None
    rows: list[RowRequest] | None = None


R = TypeVar("R", bound=_Strict)


@dataclass(frozen=True, slots=True)
class RequestedRows:
    """The rows of a request; ``columns`` are None where they are looked up."""

    ids: tuple[str, ...]
    columns: tuple[dict[str, Any] | None, ...]

    def __len__(self) -> int:
        return len(self.ids)


def parsed(body: bytes) -> Any:  # noqa: ANN401 - JSON
    """The JSON of a body, in UTF-8; NaN and Infinity are none.

    A key that is there twice is refused: another reader may take the other.
    """

    def refuse(word: str) -> NoReturn:
        raise ValueError(word)

    def unique(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
        keys = dict(pairs)
        if len(keys) < len(pairs):
            raise Refusal("wrong-request", "a key is there twice")
        return keys

    try:
        text = body.decode("utf-8")
    except UnicodeDecodeError:
        raise Refusal("not-json", "it is not UTF-8") from None
    try:
        return json.loads(text, parse_constant=refuse, object_pairs_hook=unique)
    except (ValueError, RecursionError):
        raise Refusal("not-json") from None


def one_row(body: bytes) -> RequestedRows:
    """The row of a request for one."""
    request = _checked(RowRequest, parsed(body))
    return RequestedRows((request.id,), (request.columns,))


def several_rows(body: bytes, most: int) -> RequestedRows:
    """Rows of a request for several rows."""
    values = parsed(body)
    # Before they are looked at one by one, which takes longer the more there are.
    for name in ("ids", "rows") if isinstance(values, dict) else ():
        rows = values.get(name)
        if isinstance(rows, list) and len(rows) > most:
            raise Refusal("too-large", f"{len(rows)} rows, and {most} are the most")
    request = _checked(BatchRequest, values)
    if (request.ids is None) == (request.rows is None):
        raise Refusal("wrong-request", "give either ids or rows")
    wanted = request.rows or [RowRequest(id=name) for name in request.ids or ()]
    if not wanted:
        raise Refusal("wrong-request", "it has no row")
    ids = tuple(row.id for row in wanted)
    if len({*ids}) != len(ids):
        raise Refusal("wrong-request", "an id is there twice")
    return RequestedRows(ids, tuple(row.columns for row in wanted))


def require_columns(wanted: RequestedRows, known: Sequence[str]) -> None:
    """Require exactly the model's columns in a request (else Refusal); null is a missing value."""
    names = {*known}
    for columns in wanted.columns:
        if columns is None:
            continue
        if extra := columns.keys() - names:
            raise Refusal("unknown-column", repr(min(extra)))
        if lacking := names - columns.keys():
            raise Refusal("wrong-request", f"column {min(lacking)!r} is absent; null is missing")


def _checked(kind: type[R], values: object) -> R:
    try:
        return kind.model_validate(values)
    except ValidationError as problem:
        error = problem.errors(include_input=False, include_url=False)[0]
        place = ".".join(str(part) for part in error["loc"][:3])
        raise Refusal("wrong-request", f"{place}: {error['msg']}" if place else "") from None
