"""Bob's side of scores on demand: requests wait in a queue, and one thread asks Alice for them.

The chart of messages stands in ``jobs.serve.rounds``.
"""

from __future__ import annotations

import hashlib
import threading
import time
from collections.abc import Callable, Sequence
from contextlib import ExitStack, closing
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path

import numpy as np

from taciturn.arrays import FloatArray, IndexArray
from taciturn.engine.callbacks import noop
from taciturn.errors import RemoteProtocolError
from taciturn.extras import explained
from taciturn.jobs.base import RunContext
from taciturn.party.applied_model import AppliedModel
from taciturn.party.config import PartyConfig
from taciturn.party.consent.store import ConsentStore
from taciturn.party.log import Log
from taciturn.party.session import Meeting
from taciturn.protocol.bob.group import form_group
from taciturn.protocol.bob.scoring import ScoreRequester, score_requester
from taciturn.protocol.handshake import shake_hands
from taciturn.protocol.messages import RowNumbers
from taciturn.protocol.prediction import Scored
from taciturn.protocol.steps import ONLY, Program, gather, receive, require_turn, send
from taciturn.rng import Entropy
from taciturn_ops.serve.batcher import BatchResult, RequestBatcher, ScoreRequest
from taciturn_ops.serve.budget import ServiceBudget
from taciturn_ops.serve.http.callers import Callers
from taciturn_ops.serve.messages import RowsAsked, RowsDue, RowsHeld
from taciturn_ops.serve.rounds import ROUNDS, Verdict, block_of, write_ids
from taciturn_ops.serve.section import ServeSection
from taciturn_ops.serve.side import ServeSide

with explained():
    from taciturn_ops.serve.http.app import ScoringApp
    from taciturn_ops.serve.http.scorer import Scorer
    from taciturn_ops.serve.http.server import listening_socket, run_server, tls_context

# How long the thread that asks Alice has to end its round.
CLOSING_SECONDS = 10.0


@dataclass(frozen=True, slots=True)
class Round:
    """Result of a round.

    ``verdicts`` has the first objection to each row asked for. ``due`` are the places of the rows
    that were scored, in the order of the scores.
    """

    verdicts: tuple[Verdict, ...]
    due: IndexArray = field(repr=False)
    scored: Scored


@dataclass(slots=True)
class RoundRequester:
    """Bob's rounds in a meeting."""

    scores: ScoreRequester
    rounds: int = 0

    def ask(self, ids: Sequence[str], values: FloatArray) -> Program[Round]:
        """One round: the verdicts and scores of at most ``MOST_ASKED`` distinct rows.

        No ids ask whether the Alices are there. ``values`` are his columns of the rows, in the
        coordinates of his weights.
        """
        number, names = self.rounds, self.scores.names
        self.rounds += 1
        text = write_ids(ids)
        # Each has the question before any answer is waited for.
        answers = yield from gather(
            {name: _verdicts(RowsAsked(number, text), len(ids)) for name in names}
        )
        verdicts = tuple(
            next((verdict for verdict in said if verdict != Verdict.HELD), Verdict.HELD)
            for said in zip(*answers.values(), strict=True)
        )
        due = np.flatnonzero(np.array(verdicts, dtype=np.int64) == Verdict.HELD).astype(np.int64)
        if [*names] != [ONLY]:
            message = RowsDue(number, RowNumbers(due))
            yield from gather({name: send(message) for name in names})
        if not len(due):
            return Round(verdicts, due, Scored(np.empty(0)))
        scored = yield from self.scores.ask(number, values[due], block_of(len(ids)))
        return _without_doubtful(Round(verdicts, due, scored))


def _without_doubtful(result: Round) -> Round:
    """Drop scores that may have wrapped; only the caller learns it."""
    doubtful = result.scored.doubtful
    if doubtful is None or not doubtful.any():
        return result
    verdicts = [*result.verdicts]
    for place in result.due[doubtful].tolist():
        verdicts[place] = Verdict.UNFIT
    scores = result.scored.scores[~doubtful]
    return Round(tuple(verdicts), result.due[~doubtful], Scored(scores))


def _verdicts(question: RowsAsked, rows: int) -> Program[tuple[Verdict, ...]]:
    yield from send(question)
    message = yield from receive(RowsHeld)
    require_turn("RowsHeld", message.number, question.number)
    if len(message.verdicts) != rows:
        raise RemoteProtocolError(
            f"the peer judges {len(message.verdicts)} rows where {rows} are asked for"
        )
    try:
        return tuple(Verdict(verdict) for verdict in message.verdicts)
    except ValueError:
        raise RemoteProtocolError("the peer's answer about a row is unknown") from None


class LabelSide(ServeSide[RoundRequester]):
    """Bob, who serves scores to callers; ``path`` is the file of the model, for its version.

    ``host`` is that of ``ServeJob``.
    """

    def __init__(
        self,
        config: PartyConfig,
        used: AppliedModel,
        opened: ExitStack,
        path: Path,
        host: Callable[[ScoringApp], None] | None = None,
    ) -> None:
        self._host, share = host, used.model
        self._tls = tls_context(config) if host is None else None
        if host is None:
            self._socket = opened.enter_context(listening_socket(config))
        callers = Callers.from_config(config)
        super().__init__(config, used, used.shares[1], opened)
        store = opened.enter_context(closing(ConsentStore.from_config(config).open()))
        self.batcher, threshold = RequestBatcher(self.stop), used.threshold(path)
        self._scorer = Scorer(
            config, used, threshold, self.rows, self.source, self.batcher, ServiceBudget(store)
        )
        about = {
            "model": share.session,
            "version": hashlib.sha256(path.read_bytes()).hexdigest()[:16],
            "mechanism": share.agreement["mechanism"],
            "meaning": used.meaning,
            **(
                {"threshold": threshold.probability}
                if used.has_classes
                else {"family": share.family.name}
            ),
            "columns": [*self._scorer.columns],
        }
        # Lines of requests are many: to the file alone.
        self._app = ScoringApp(self._scorer, callers, about, Log.from_config(config, noop))

    def reloaded(self, config: PartyConfig) -> Callable[[], None]:
        """Callers, their limits, and the certificate of new connections."""
        callers, tls, serve = Callers.from_config(config), self._tls, config.section(ServeSection)
        if tls is not None:
            tls_context(config)  # raises where the files are no pair

        def take_over() -> None:
            self._app.callers, self._scorer.limits = callers, serve
            if tls is not None and serve.tls_certificate is not None:
                tls.load_cert_chain(
                    config.path(serve.tls_certificate), config.path(serve.tls_key or "")
                )

        return take_over

    def serve(self, context: RunContext) -> None:
        """Serve callers until the process is asked to end; a thread stays with Alice."""
        host, announce = self._host, context.callbacks.announce
        thread = threading.Thread(target=self._work, name="taciturn-rounds", daemon=True)
        thread.start()
        try:
            if host is None:
                protocol = "http" if self._tls is None else "https"
                address, port = self._socket.getsockname()[:2]
                announce(f"callers reach the service at {protocol}://{address}:{port}")
                host = partial(run_server, listener=self._socket, context=self._tls)
            host(self._app)
            announce("stopping")
        finally:
            self._scorer.close()
            # The thread stops after the round under way.
            self.stop.set()
            self.batcher.wake()
            thread.join(CLOSING_SECONDS)
            self.batcher.close()

    def _work(self) -> None:
        try:
            self.stay_connected()
        except BaseException as problem:
            # A bug, or an interrupt: the operator sees it, and the service ends.
            self.batcher.failure = problem
            self.away(type(problem).__name__)

    def away(self, reason: str) -> None:
        """Publish that Alice is away, and refuse requests whose time is over."""
        self.batcher.away(reason)

    def open(self, entropy: Entropy) -> Program[RoundRequester]:
        """Greet the Alices, and agree on keys."""
        used, names = self.used, tuple(self.used.parties) or (ONLY,)
        hellos = yield from gather({name: shake_hands(self.hello) for name in names})
        if used.parties:
            yield from form_group(used.parties, self.terms, hellos, entropy)
        weights, widths = used.model.weights, used.widths
        scores = score_requester(weights, *used.shares, used.terms, entropy, names, widths)
        yield from scores.open(hellos, self.rows.size)
        return RoundRequester(scores)

    def stay(self, meeting: Meeting, conversation: RoundRequester) -> None:
        """Ask round by round for the rows that wait."""
        self.batcher.stats.connected, self.batcher.stats.reason = True, ""
        self.batcher.stats.meetings += 1
        while conversation.rounds < ROUNDS and not self.stop.is_set():
            requests = self.batcher.next_batch()
            try:
                self.require_in_time()
                self._run_round(meeting, conversation, requests)
            except BaseException:
                self.batcher.put_back(requests)
                raise

    def _run_round(
        self, meeting: Meeting, requester: RoundRequester, requests: Sequence[ScoreRequest]
    ) -> None:
        start, stats = time.perf_counter(), self.batcher.stats
        ids = [name for request in requests for name in request.ids]
        width = len(self.used.model.columns)
        values = np.concatenate([np.empty((0, width)), *(request.values for request in requests)])
        result = meeting.run(requester.ask(ids, values))
        stats.rounds += 1
        stats.rows += len(result.due)
        if ids:
            stats.seconds.add(time.perf_counter() - start)
        scores = np.full(len(ids), np.nan)
        scores[result.due] = result.scored.scores
        place = 0
        for request in requests:
            part = slice(place, place + len(request.ids))
            request.resolve(BatchResult(result.verdicts[part], scores[part]))
            place = part.stop
