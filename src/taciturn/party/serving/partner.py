"""Alice's side of a service: she stands by, looks rows up, counts them, and gives scores to Bob."""

from __future__ import annotations

import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass

import numpy as np

from taciturn.arrays import FloatArray
from taciturn.engine.callbacks import Callbacks
from taciturn.engine.channel import Endpoints
from taciturn.errors import BudgetExceeded, DataError
from taciturn.party.config import PartyConfig
from taciturn.party.consent.service_budget import PartnerBudget
from taciturn.party.serving.sources import RowSource
from taciturn.party.serving.standing import StandingModel, StandingSession
from taciturn.party.session import Meeting
from taciturn.protocol.alice.serve import Asked, Responder
from taciturn.protocol.serving import ROUNDS, Verdict
from taciturn.rng import KeyedEntropy


@dataclass(slots=True)
class Served:
    """How many rounds Alice has answered, and how many scores she gave."""

    rounds: int = 0
    rows: int = 0


class ScorePartner:
    """Alice, standing by.

    ``common`` are the rows that both sides have; None where any may be asked for.
    """

    def __init__(
        self,
        config: PartyConfig,
        model: StandingModel,
        source: RowSource,
        budget: PartnerBudget,
        endpoint: Endpoints,
        callbacks: Callbacks,
        common: frozenset[str] | None = None,
    ) -> None:
        self._model, self._source, self._budget = model, source, budget
        self._common = common
        self._stop, self.served = threading.Event(), Served()
        self._session = StandingSession(config, endpoint, callbacks, self._stop)
        self._coordinates = model.coordinates()
        # While nothing is under way that a signal would cut short.
        self._waiting = True

    def run(self) -> None:
        """Serves until ``end`` or ``interrupt``."""
        self._session.say("standing by")
        try:
            self._session.run(self._stay)
        except KeyboardInterrupt:
            # Of ``interrupt``: the peer has been told.
            if not self._stop.is_set():
                raise
        self._session.say("stopped", rows=self.served.rows, rounds=self.served.rounds)

    def end(self) -> None:
        """Ends after the round under way; a wait for the next one is not cut short."""
        self._stop.set()

    def interrupt(self) -> None:
        """Ends after the round under way, or at once by KeyboardInterrupt where there is none.

        It is called in the thread that runs, as by a signal.
        """
        self._stop.set()
        if self._waiting:
            raise KeyboardInterrupt

    def _stay(self, meeting: Meeting) -> None:
        responder = meeting.run(self._model.open_alice(KeyedEntropy.from_system()))
        self._session.met()
        self._session.say("serving")
        while responder.rounds < ROUNDS and not self._stop.is_set():
            asked = meeting.run(responder.asked())
            with self._busy():
                self._answer(meeting, responder, asked)

    @contextmanager
    def _busy(self) -> Iterator[None]:
        self._waiting = False
        try:
            yield
        finally:
            self._waiting = True

    def _answer(self, meeting: Meeting, responder: Responder, asked: Asked) -> None:
        """One round; the scores are counted before they leave."""
        self._session.require_in_time()
        self.served.rounds += 1
        if not asked.ids:
            meeting.run(responder.held(asked, ()))
            return
        values, verdicts = self._looked_up(asked.ids)
        several = bool(responder.masks)
        # Of several Alices it is not known yet which rows are due: looked at now, counted then.
        verdicts = self._limited(asked.ids, verdicts, write=not several)
        due = meeting.run(responder.held(asked, verdicts))
        if several and not all(self._budget.spend([asked.ids[at] for at in due.tolist()])):
            raise BudgetExceeded(
                "another program has used up the scores of a row meanwhile",
                setting="scores_per_row",
                hint="nothing was sent; the next round says which rows are left",
            )
        if len(due):
            meeting.run(responder.give(asked, due, values[due]))
            self.served.rows += len(due)

    def _looked_up(self, ids: Sequence[str]) -> tuple[FloatArray, list[Verdict]]:
        """Her rows, as far as the day allows to look."""
        admitted = self._budget.admit(len(ids))
        try:
            taken = self._source.take(ids[:admitted])
        except DataError as problem:
            self._session.say("rows cannot be read", reason=problem.message)
            width = len(self._model.used.model.columns)
            return np.zeros((len(ids), width)), [Verdict.SOURCE_AWAY] * len(ids)
        values = self._coordinates(taken.values)
        unfit = self._model.unfit(values) | taken.unfit.keys()
        verdicts = [Verdict.HELD] * admitted + [Verdict.DAY_SPENT] * (len(ids) - admitted)
        for place in unfit:
            verdicts[place] = Verdict.UNFIT
        for place, name in enumerate(ids[:admitted]):
            if place in taken.unknown or not (self._common is None or name in self._common):
                verdicts[place] = Verdict.UNKNOWN
        return values, verdicts

    def _limited(
        self, ids: Sequence[str], verdicts: list[Verdict], *, write: bool
    ) -> list[Verdict]:
        held = [place for place, verdict in enumerate(verdicts) if verdict is Verdict.HELD]
        allowed = self._budget.spend([ids[place] for place in held], write=write)
        for place, may in zip(held, allowed, strict=True):
            if not may:
                verdicts[place] = Verdict.ROW_SPENT
        return verdicts
