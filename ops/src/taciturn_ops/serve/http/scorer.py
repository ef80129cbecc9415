"""``Scorer``: scores the rows of a request, independently of HTTP."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any, TypeVar

import numpy as np

from taciturn.arrays import FloatArray
from taciturn.data.csv_files import Dialect
from taciturn.data.ids import AS_THEY_ARE
from taciturn.errors import DataError, FileError, OutputError, PeerAbsent
from taciturn.numerics.threshold import Threshold
from taciturn.party.applied_model import AppliedModel, scored_rows
from taciturn.party.config import PartyConfig
from taciturn.results.serialise import record_of
from taciturn_ops.serve.batcher import BatchResult, RequestBatcher, ScoreRequest
from taciturn_ops.serve.budget import RowCounter, ServiceBudget
from taciturn_ops.serve.declaration import DAILY
from taciturn_ops.serve.http.callers import Caller
from taciturn_ops.serve.http.requests import (
    OF_VERDICTS,
    Refusal,
    RequestedRows,
    refusal_json,
    require_columns,
)
from taciturn_ops.serve.rounds import MOST_ASKED, MOST_ID_LETTERS, Verdict
from taciturn_ops.serve.section import ServeSection
from taciturn_ops.serve.sources import FetchedRows, Preparer, RowSource, ServedRows

R = TypeVar("R")


class Scorer:
    """Scorer of the rows of requests."""

    def __init__(
        self,
        config: PartyConfig,
        used: AppliedModel,
        threshold: Threshold,
        rows: ServedRows,
        source: RowSource,
        batcher: RequestBatcher,
        budget: ServiceBudget,
    ) -> None:
        self._used, self._threshold = used, threshold
        self._normalisation = config.normalisation
        self._rows, self._source, self.batcher, self._budget = rows, source, batcher, budget
        self._preparer = Preparer(used.model, Dialect.from_settings(config.data).missing)
        self.limits, self.columns = config.section(ServeSection), self._preparer.columns
        self.active, self.stopping = 0, False
        # Of their own: lookups that hang must not keep counts or other requests from a thread.
        self._lookups = ThreadPoolExecutor(4, thread_name_prefix="taciturn-rows")
        self._counts = ThreadPoolExecutor(2, thread_name_prefix="taciturn-counts")

    def close(self) -> None:
        """Stop the thread pools; what hangs is not waited for."""
        for pool in (self._lookups, self._counts):
            pool.shutdown(wait=False, cancel_futures=True)

    async def _looked_up(self, ids: Sequence[str]) -> FetchedRows:
        if self._source.at_once:
            return self._source.take(ids)
        loop = asyncio.get_running_loop()
        return await loop.run_in_executor(self._lookups, self._source.take, ids)

    async def _counted(self, act: Callable[[], R]) -> R:
        """Charge a budget in a thread: it waits for the disk."""
        try:
            return await asyncio.get_running_loop().run_in_executor(self._counts, act)
        except (OutputError, FileError):
            raise Refusal("count-failed") from None

    async def answers(self, wanted: RequestedRows, caller: Caller) -> list[dict[str, Any]]:
        """An answer for each row, in their order; raises Refusal where the request has none."""
        if self.stopping:
            raise Refusal("stopping")
        if self.active >= self.limits.max_queued_requests:
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
        self, wanted: RequestedRows, caller: Caller, deadline: float
    ) -> list[dict[str, Any]]:
        require_columns(wanted, self.columns)
        ids = self._common(wanted.ids)
        await self._admit(caller, len(ids))
        fetched = self._rows.checked(await self._fetched(wanted, ids), ids)
        refused = {
            place: refusal_json(code, reason)
            for code, reasons in (("unknown-id", fetched.unknown), ("unfit-row", fetched.unfit))
            for place, reason in reasons.items()
        }
        asked = [place for place in range(len(ids)) if place not in refused]
        asked = await self._within_day(asked, ids, refused)
        names = [ids[place] for place in asked]
        answered = await self._ask(names, fetched.values[asked], deadline)
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

    async def _fetched(self, wanted: RequestedRows, ids: Sequence[str]) -> FetchedRows:
        """The rows that the request brings columns for, and the others from the source."""
        sent = {at: columns for at, columns in enumerate(wanted.columns) if columns is not None}
        rest = [place for place in range(len(ids)) if place not in sent]
        parts = list[tuple[Sequence[int], FetchedRows]]()
        try:
            if sent:
                names = [ids[place] for place in sent]
                prepare, columns = self._preparer.rows, [*sent.values()]
                parts.append(([*sent], await asyncio.to_thread(prepare, names, columns)))
            if rest:
                parts.append((rest, await self._looked_up([ids[place] for place in rest])))
        except DataError as problem:
            raise Refusal("source-away", type(problem).__name__) from None
        return FetchedRows.merged(parts)

    async def _within_day(
        self, asked: list[int], ids: Sequence[str], refused: dict[int, dict[str, Any]]
    ) -> list[int]:
        limit = self.limits.requests_per_row_per_day
        if limit is None or not asked:
            return asked
        names, counter = [ids[place] for place in asked], RowCounter(DAILY, limit=limit, daily=True)
        allowed = await self._counted(lambda: self._budget.spend([counter], names))
        for place, may in zip(asked, allowed, strict=True):
            if not may:
                refused[place] = refusal_json("row-limit", f"{limit} times a day")
        return [place for place, may in zip(asked, allowed, strict=True) if may]

    async def _ask(self, ids: Sequence[str], values: FloatArray, deadline: float) -> BatchResult:
        parts = [slice(start, start + MOST_ASKED) for start in range(0, len(ids), MOST_ASKED)]
        requests = [ScoreRequest(tuple(ids[part]), values[part], deadline) for part in parts]
        for request in requests:
            self.batcher.submit(request)
        waits = [asyncio.wrap_future(request.future) for request in requests]
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
        return BatchResult(
            tuple(verdict for answer in answers for verdict in answer.verdicts),
            np.concatenate([np.empty(0), *(answer.scores for answer in answers)]),
        )

    def _shown(
        self, ids: Sequence[str], scores: FloatArray, refused: dict[int, dict[str, Any]]
    ) -> list[dict[str, Any]]:
        rows = scored_rows(ids, scores, self._used, self._threshold)
        return [
            {"id": row.id, "refused": refused[place]} if place in refused else record_of(row)
            for place, row in enumerate(rows)
        ]
