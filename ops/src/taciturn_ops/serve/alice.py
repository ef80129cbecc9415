"""Alice's side of scores on demand: she looks rows up, counts them, and gives scores to Bob.

The chart of messages stands in ``jobs.serve.rounds``.
"""

from __future__ import annotations

import signal
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, closing, contextmanager
from dataclasses import dataclass, field

import numpy as np

from taciturn.arrays import FloatArray, IndexArray
from taciturn.errors import BudgetExceeded, DataError, RemoteProtocolError
from taciturn.jobs.base import RunContext
from taciturn.party.applied_model import AppliedModel
from taciturn.party.config import PartyConfig
from taciturn.party.consent.score_budget import ScoreBudget
from taciturn.party.consent.store import ConsentStore
from taciturn.party.credentials import identity_of
from taciturn.party.session import Meeting
from taciturn.protocol.alice.group import join_group
from taciturn.protocol.alice.scoring import DueRows, ScoreResponder, score_responder
from taciturn.protocol.handshake import shake_hands
from taciturn.protocol.masks import NO_MASKS, ZeroSum
from taciturn.protocol.messages import PublicBytes
from taciturn.protocol.steps import Program, receive, require_turn, send
from taciturn.rng import Entropy, KeyedEntropy
from taciturn_ops.serve.budget import PartnerBudget, ServiceBudget
from taciturn_ops.serve.messages import RowsAsked, RowsDue, RowsHeld
from taciturn_ops.serve.rounds import (
    MOST_ASKED,
    ROUNDS,
    ROW_ANSWERS,
    Verdict,
    block_of,
    list_name,
    read_ids,
)
from taciturn_ops.serve.section import ServeSection
from taciturn_ops.serve.side import ServeSide


@dataclass(frozen=True, slots=True)
class RowsRequest:
    """Bob's request for the rows of a round."""

    number: int
    ids: tuple[str, ...] = field(repr=False)


@dataclass(slots=True)
class RoundResponder:
    """Alice's rounds in a meeting; ``masks`` are those of one of several Alices.

    A round is three programs, so that rows are looked up and counted in between: ``asked`` gives
    the ids, ``held`` says what she has, ``give`` sends the scores.
    """

    scores: ScoreResponder
    masks: ZeroSum = NO_MASKS
    rounds: int = 0

    def asked(self) -> Program[RowsRequest]:
        """Wait for the next round."""
        message = yield from receive(RowsAsked)
        require_turn("RowsAsked", message.number, self.rounds)
        self.rounds += 1
        return RowsRequest(message.number, read_ids(message.ids))

    def held(self, asked: RowsRequest, verdicts: Sequence[Verdict]) -> Program[IndexArray]:
        """Tell Bob which rows she has, and return the places of the rows that are due."""
        yield from send(RowsHeld(asked.number, PublicBytes(bytes(verdicts))))
        held_rows = np.flatnonzero(np.array(verdicts) == Verdict.HELD).astype(np.int64)
        if not self.masks:
            return held_rows
        message = yield from receive(RowsDue)
        require_turn("RowsDue", message.number, asked.number)
        if not np.isin(message.places, held_rows).all():
            raise RemoteProtocolError("the peer requests rows that this side does not have")
        return message.places

    def give(self, asked: RowsRequest, due: IndexArray, values: FloatArray) -> Program[None]:
        """Send the scores of the rows that are due, of which there is one at least."""
        ids = [asked.ids[place] for place in due.tolist()]
        masks = self.masks.fork(list_name(asked.number, ids)) if self.masks else NO_MASKS
        block = block_of(len(asked.ids))
        yield from self.scores.answer(DueRows(asked.number, ids, values, masks, block))


class FeatureSide(ServeSide[RoundResponder]):
    """Alice, who answers Bob's rounds; ``served`` counts the scores that she gave."""

    def __init__(self, config: PartyConfig, used: AppliedModel, opened: ExitStack) -> None:
        super().__init__(config, used, used.shares[0], opened)
        responder = self._responder(KeyedEntropy.from_system())
        responder.require_hidden(self.rows.size, MOST_ASKED, ROW_ANSWERS)
        store = opened.enter_context(closing(ConsentStore.from_config(config).open()))
        self._answers = ROW_ANSWERS if responder.answers_add_up else None
        self._service_budget = ServiceBudget(store)
        self._budget = self._partner_budget(config)
        self._identity = identity_of(config)
        self.rounds = self.served = 0
        # While nothing is under way that a signal would cut short.
        self._waiting = True

    def _partner_budget(self, config: PartyConfig) -> PartnerBudget:
        used, limit = self.used, config.section(ServeSection).rows_per_day
        scores = ScoreBudget.from_terms(config, used.terms, len(used.model.columns))
        name = used.name.session
        return PartnerBudget(self._service_budget, scores, name, limit, self._answers)

    def reloaded(self, config: PartyConfig) -> Callable[[], None]:
        """Her limits."""
        budget = self._partner_budget(config)

        def take_over() -> None:
            self._budget = budget

        return take_over

    def serve(self, context: RunContext) -> None:
        """Answer until ``stop`` is set, or a signal comes."""
        with _on_signals(self._interrupt):
            self.log("standing by")
            try:
                self.stay_connected()
            except KeyboardInterrupt:
                # Of ``_interrupt``: the peer has been told.
                if not self.stop.is_set():
                    raise
        self.log("stopped", rows=self.served, rounds=self.rounds)

    def _interrupt(self) -> None:
        """End after the round under way, or at once where there is none."""
        self.stop.set()
        if self._waiting:
            raise KeyboardInterrupt

    def _responder(self, entropy: Entropy) -> ScoreResponder:
        used = self.used
        weights, key = used.model.weights, used.noise_key
        offset = used.model.offset
        return score_responder(weights, *used.shares, key, used.terms, entropy, offset)

    def open(self, entropy: Entropy) -> Program[RoundResponder]:
        """Greet Bob, and the other Alices, and agree on keys."""
        used, own_hello, masks = self.used, self.hello, NO_MASKS
        hello = yield from shake_hands(own_hello)
        if used.parties:
            size = own_hello.columns, own_hello.magnitude_bits
            pairwise_masks = yield from join_group(
                used.parties, self.terms, self._identity, entropy, *size
            )
            masks = pairwise_masks.masks.fork("serving")
        scores = self._responder(entropy)
        yield from scores.open(hello, self.rows.size)
        return RoundResponder(scores, masks)

    def stay(self, meeting: Meeting, conversation: RoundResponder) -> None:
        """Answer round by round."""
        while conversation.rounds < ROUNDS and not self.stop.is_set():
            asked = meeting.run(conversation.asked())
            self._waiting = False
            try:
                self._respond(meeting, conversation, asked)
            finally:
                self._waiting = True

    def _respond(self, meeting: Meeting, responder: RoundResponder, asked: RowsRequest) -> None:
        """Answer one round; the scores are charged before they are sent."""
        self.require_in_time()
        self.rounds += 1
        if not asked.ids:
            meeting.run(responder.held(asked, ()))
            return
        budget = self._budget
        values, verdicts = self._looked_up(asked.ids, budget)
        several = bool(responder.masks)
        held = [place for place, verdict in enumerate(verdicts) if verdict is Verdict.HELD]
        # Of several Alices it is not known yet which rows are due: looked at now, counted then.
        allowed = budget.spend([asked.ids[place] for place in held], write=not several)
        for place, may in zip(held, allowed, strict=True):
            if not may:
                verdicts[place] = Verdict.ROW_SPENT
        due = meeting.run(responder.held(asked, verdicts))
        if several and not all(budget.spend([asked.ids[at] for at in due.tolist()])):
            raise BudgetExceeded(
                "another program has used up the scores of a row meanwhile",
                setting="scores_per_row",
                hint="nothing was sent; the next round says which rows are left",
            )
        if len(due):
            meeting.run(responder.give(asked, due, values[due]))
            self.served += len(due)

    def _looked_up(
        self, ids: Sequence[str], budget: PartnerBudget
    ) -> tuple[FloatArray, list[Verdict]]:
        """Alice's rows, as far as the daily limit allows, and a verdict on each requested row."""
        admitted = budget.admit(len(ids))
        try:
            fetched = self.rows.checked(self.source.take(ids[:admitted]), ids[:admitted])
        except DataError as problem:
            self.log("rows cannot be read", reason=problem.message)
            width = len(self.used.model.columns)
            return np.zeros((len(ids), width)), [Verdict.SOURCE_AWAY] * len(ids)
        verdicts = [Verdict.HELD] * admitted + [Verdict.DAY_SPENT] * (len(ids) - admitted)
        for places, verdict in ((fetched.unfit, Verdict.UNFIT), (fetched.unknown, Verdict.UNKNOWN)):
            for place in places:
                verdicts[place] = verdict
        return fetched.values, verdicts


@contextmanager
def _on_signals(act: Callable[[], None]) -> Iterator[None]:
    """Call ``act`` when the process is asked to end."""
    if threading.current_thread() is not threading.main_thread():
        # Signals are the main thread's.
        yield
        return
    before = {
        number: signal.signal(number, lambda number, frame: act())
        for number in (signal.SIGTERM, signal.SIGINT)
    }
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
