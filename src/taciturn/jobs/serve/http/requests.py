"""What callers send: one row or several, by id, or with Bob's columns."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Annotated, Any, NoReturn, TypeVar

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from taciturn.jobs.serve.http.refusals import Refusal
from taciturn.jobs.serve.rounds import MOST_ID_LETTERS

RowId = Annotated[str, Field(min_length=1, max_length=MOST_ID_LETTERS)]
MOST_COLUMNS = 10_000
Value = str | bool | int | float | None


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
class Wanted:
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


def one_row(body: bytes) -> Wanted:
    """The row of a request for one."""
    request = _checked(RowRequest, parsed(body))
    return Wanted((request.id,), (request.columns,))


def several_rows(body: bytes, most: int) -> Wanted:
    """The rows of a request for several."""
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
    return Wanted(ids, tuple(row.columns for row in wanted))


def require_columns(wanted: Wanted, known: Sequence[str]) -> None:
    """Insist that the columns of a request are the model's; what is missing is said by null."""
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
