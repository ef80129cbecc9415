"""``Scorer``: from the rows of a request to its answers; knows nothing of HTTP."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Any, TypeVar

import numpy as np

from taciturn.arrays import FloatArray
from taciturn.data.normalisation import AS_THEY_ARE, Normalisation
from taciturn.errors import DataError, FileError, OutputError, PeerAbsent
from taciturn.numerics.sorted_scores import Threshold
from taciturn.party.consent.service_budget import DAILY, RowCounter, ServiceBudget
from taciturn.party.serving.desk import Answered, Desk, Job
from taciturn.party.serving.sources import Preparer, RowSource, Taken
from taciturn.party.serving.standing import StandingModel
from taciturn.party.used_model import scored_rows
from taciturn.protocol.serving import MOST_ASKED, MOST_ID_LETTERS, Verdict
from taciturn.serve.callers import Caller
from taciturn.serve.refusals import OF_VERDICTS, Refusal, refusal_json
from taciturn.serve.requests import Wanted, require_columns

R = TypeVar("R")


@dataclass(frozen=True, slots=True)
class ServiceLimits:
    """What may be asked for.

    ``rows_per_day`` is for a caller for whom the file of callers has no other number,
    ``row_per_day`` for one row, by all callers; None is any number. ``request_seconds`` is how long
    a request waits for its scores, ``most_waiting`` how many may at a time.
    """

    rows_per_day: int | None
    row_per_day: int | None
    request_rows: int
    request_seconds: float
    most_waiting: int


class Scorer:
    """Scores the rows of requests.

    ``common`` are the rows that both sides have; None where any may be asked for.
    """

    def __init__(
        self,
        model: StandingModel,
        threshold: Threshold,
        normalisation: Normalisation,
        source: RowSource,
        preparer: Preparer,
        desk: Desk,
        budget: ServiceBudget,
        limits: ServiceLimits,
        common: frozenset[str] | None = None,
    ) -> None:
        self._rows_of_both = common
        self._model, self._threshold, self._normalisation = model, threshold, normalisation
        self._source, self._preparer, self.desk, self._budget = source, preparer, desk, budget
        self.limits, self.columns = limits, preparer.columns
        self.active, self.stopping = 0, False
        # Of their own: lookups that hang must not keep counts or other requests from a thread.
        self._lookups = ThreadPoolExecutor(4, thread_name_prefix="taciturn-rows")
        self._counts = ThreadPoolExecutor(2, thread_name_prefix="taciturn-counts")

    def close(self) -> None:
        """Lets go of the threads; what hangs is not waited for."""
        for pool in (self._lookups, self._counts):
            pool.shutdown(wait=False, cancel_futures=True)

    async def _looked_up(self, ids: Sequence[str]) -> Taken:
        if self._source.at_once:
            return self._source.take(ids)
        loop = asyncio.get_running_loop()
        return await loop.run_in_executor(self._lookups, self._source.take, ids)

    async def _counted(self, act: Callable[[], R]) -> R:
        """Counts in a thread: the disk is waited for."""
        try:
            return await asyncio.get_running_loop().run_in_executor(self._counts, act)
        except (OutputError, FileError):
            raise Refusal("count-failed") from None

    async def answers(self, wanted: Wanted, caller: Caller) -> list[dict[str, Any]]:
        """An answer for each row, in their order; raises Refusal where the request has none."""
        if self.stopping:
            raise Refusal("stopping")
        if self.active >= self.limits.most_waiting:
            raise Refusal("busy")
        self.active += 1
        deadline = time.monotonic() + self.limits.request_seconds
        try:
            async with asyncio.timeout(self.limits.request_seconds):
                return await self._answers(wanted, caller, deadline)
        except TimeoutError:
            # Alice's answer has a limit of its own: it is this side that hangs.
            raise Refusal("source-away", "nothing came in time") from None
        finally:
            self.active -= 1

    async def _answers(
        self, wanted: Wanted, caller: Caller, deadline: float
    ) -> list[dict[str, Any]]:
        require_columns(wanted, self.columns)
        ids = self._common(wanted.ids)
        await self._admit(caller, len(ids))
        taken = await self._taken(wanted, ids)
        values = self.desk.coordinates(taken.values)
        refused: dict[int, dict[str, Any]] = {}
        for place in taken.unknown:
            refused[place] = refusal_json("unknown-id", "this side has none")
        for place, name in enumerate(ids if self._rows_of_both is not None else ()):
            if self._rows_of_both is not None and name not in self._rows_of_both:
                refused[place] = refusal_json("unknown-id", "not among the rows that both have")
        for place, reason in taken.unfit.items():
            refused[place] = refusal_json("unfit-row", reason)
        for place in self._model.unfit(values) - refused.keys():
            refused[place] = refusal_json("unfit-row", "a value is far beyond those of training")
        asked = [place for place in range(len(ids)) if place not in refused]
        asked = await self._within_day(asked, ids, refused)
        names = [ids[place] for place in asked]
        answered = await self._ask(names, values[asked], deadline)
        for place, verdict in zip(asked, answered.verdicts, strict=True):
            if verdict is not Verdict.HELD:
                detail = "the partner has none" if verdict is Verdict.UNKNOWN else "at the partner"
                refused[place] = refusal_json(OF_VERDICTS[verdict], detail)
        scores = np.full(len(ids), np.nan)
        scores[asked] = answered.scores
        return self._shown(wanted.ids, scores, refused)

    def _common(self, ids: Sequence[str]) -> list[str]:
        # As ``RowIds`` has them; a series of one would take longer than all the rest.
        if not all(map(str.isprintable, ids)):
            raise Refusal("wrong-request", "an id holds what cannot be printed")
        if self._normalisation == AS_THEY_ARE:
            return [*ids]
        common = [self._normalisation.one(name) for name in ids]
        if len({*common}) != len(common):
            raise Refusal("wrong-request", "two ids are the same once normalised")
        if not all(0 < len(name) <= MOST_ID_LETTERS for name in common):
            raise Refusal("wrong-request", "an id is empty or too long once normalised")
        return common

    async def _admit(self, caller: Caller, rows: int) -> None:
        limit = self.limits.rows_per_day if caller.rows_per_day is None else caller.rows_per_day
        if limit is None:
            return
        budget, name = self._budget, caller.name
        admitted = await self._counted(lambda: budget.admit(name, rows, limit, whole=True))
        if admitted < rows:
            raise Refusal("caller-limit", f"{limit} rows a day")

    async def _taken(self, wanted: Wanted, ids: Sequence[str]) -> Taken:
        given = [place for place, columns in enumerate(wanted.columns) if columns is not None]
        try:
            if not given:
                return await self._looked_up(ids)
            sent = [columns for columns in wanted.columns if columns is not None]
            prepared = await asyncio.to_thread(
                self._preparer.rows, [ids[place] for place in given], sent
            )
            if len(given) == len(ids):
                return prepared
            rest = [place for place in range(len(ids)) if wanted.columns[place] is None]
            looked_up = await self._looked_up([ids[at] for at in rest])
        except DataError as problem:
            raise Refusal("source-away", type(problem).__name__) from None
        return _merged(len(ids), (given, prepared), (rest, looked_up))

    async def _within_day(
        self, asked: list[int], ids: Sequence[str], refused: dict[int, dict[str, Any]]
    ) -> list[int]:
        limit = self.limits.row_per_day
        if limit is None or not asked:
            return asked
        names, counter = [ids[place] for place in asked], RowCounter(DAILY, limit=limit, daily=True)
        allowed = await self._counted(lambda: self._budget.spend([counter], names))
        for place, may in zip(asked, allowed, strict=True):
            if not may:
                refused[place] = refusal_json("row-limit", f"{limit} times a day")
        return [place for place, may in zip(asked, allowed, strict=True) if may]

    async def _ask(self, ids: Sequence[str], values: FloatArray, deadline: float) -> Answered:
        parts = [slice(start, start + MOST_ASKED) for start in range(0, len(ids), MOST_ASKED)]
        jobs = [Job(tuple(ids[part]), values[part], deadline) for part in parts]
        for job in jobs:
            self.desk.submit(job)
        waits = [asyncio.wrap_future(job.future) for job in jobs]
        # A little sooner than the whole request, so that it is said who is waited for.
        left = 0.95 * max(0.0, deadline - time.monotonic())
        try:
            async with asyncio.timeout(left):
                answers = [await wait for wait in waits]
        except (TimeoutError, PeerAbsent):
            raise Refusal("stopping" if self.stopping else "partner-away") from None
        finally:
            for wait in waits:
                wait.cancel()
        return Answered(
            tuple(verdict for answer in answers for verdict in answer.verdicts),
            np.concatenate([np.empty(0), *(answer.scores for answer in answers)]),
        )

    def _shown(
        self, ids: Sequence[str], scores: FloatArray, refused: dict[int, dict[str, Any]]
    ) -> list[dict[str, Any]]:
        rows = scored_rows(ids, scores, self._model.used.shift, self._threshold)
        return [
            {"id": row.id, "refused": refused[place]}
            if place in refused
            else {
                "id": row.id,
                "score": row.score,
                "probability": row.probability,
                "class": row.label,
            }
            for place, row in enumerate(rows)
        ]


def _merged(rows: int, *parts: tuple[Sequence[int], Taken]) -> Taken:
    width = parts[0][1].values.shape[1]
    values = np.zeros((rows, width))
    unknown: set[int] = set()
    unfit: dict[int, str] = {}
    for places, taken in parts:
        values[[*places]] = taken.values
        unknown |= {places[at] for at in taken.unknown}
        unfit |= {places[at]: reason for at, reason in taken.unfit.items()}
    return Taken(values, frozenset(unknown), unfit)
