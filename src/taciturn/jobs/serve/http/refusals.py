"""``Refusal``: why a request, or a row of it, has no score; each reason has one name."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from taciturn.jobs.serve.rounds import Verdict


@dataclass(frozen=True, slots=True)
class Reason:
    """A reason that callers may rely on."""

    status: int
    meaning: str
    way_out: str


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
        """What the caller is told."""
        return refusal_json(self.code, self.detail)


def refusal_json(code: str, detail: str = "") -> dict[str, Any]:
    """A reason as an answer holds it."""
    reason = REASONS[code]
    message = f"{reason.meaning}: {detail}" if detail else reason.meaning
    return {"code": code, "message": message, "try": reason.way_out}
