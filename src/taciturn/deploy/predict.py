"""One side of a joint prediction of new rows: meets the peer, scores, and keeps nothing.

::

    Alice                                            Bob
      an alignment of the new rows' ids         <->  (its terms name the model)
      Hello (which model, which rows)           <->  Hello
      the introductions of several Alices
      the prediction, from weights or from shares    scores of the common rows

Where both name a list of common rows, the first part is left out. Only Bob learns scores. Coins and
keys are drawn anew each time, no state is kept, and whoever is interrupted runs the command again.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, field, replace
from pathlib import Path

import numpy as np

from taciturn.arrays import FloatArray, IndexArray
from taciturn.crypto.group import library
from taciturn.crypto.signatures import Identity
from taciturn.data.normalisation import AS_THEY_ARE, Normalisation
from taciturn.data.tables import FeatureTable
from taciturn.deploy.agreed import peer_keys, require_begun_in_time
from taciturn.deploy.align import on_threads
from taciturn.deploy.aligned import AlignedRows
from taciturn.deploy.common_ids import Enough, Search
from taciturn.deploy.config import PartyConfig
from taciturn.deploy.consent.budget import Charge
from taciturn.deploy.consent.score_budget import ScoreBudget
from taciturn.deploy.identity import identity_of
from taciturn.deploy.link import LISTED_PREDICTION, PREDICTION
from taciturn.deploy.new_rows import NewRows, new_rows
from taciturn.deploy.session import PeerSession
from taciturn.deploy.used_model import UsedModel, scored_rows
from taciturn.deploy.way import way_to_peer
from taciturn.engine.callbacks import Callbacks
from taciturn.engine.channel import Endpoints
from taciturn.errors import TaciturnError
from taciturn.model.share import ModelShare
from taciturn.numerics.threshold import Threshold, at_probability, one_half
from taciturn.protocol.align import Spread
from taciturn.protocol.circle import NO_MASKS
from taciturn.protocol.events import Event, ScoresDue
from taciturn.protocol.prediction import (
    Scored,
    alignment_terms,
    meet,
    whitened_rows,
)
from taciturn.protocol.steps import ONLY, Program, emit
from taciturn.protocol.terms import Terms
from taciturn.protocol.together import together
from taciturn.results.parties import PredictionResult, ScoredRow
from taciturn.rng import Entropy, KeyedEntropy

FINISH_SECONDS = 10.0


@dataclass(frozen=True, slots=True)
class Question:
    """What is to be predicted, on this side: its share of the model and its columns of the rows."""

    model: ModelShare
    rows: NewRows
    terms: Terms
    normalisation: Normalisation = AS_THEY_ARE
    threshold: Threshold = field(default_factory=one_half)

    @classmethod
    def read(
        cls,
        config: PartyConfig,
        model: Path,
        rows: Path,
        only: tuple[str, ...] = (),
        *,
        normalisation: Normalisation | None = None,
        common: Path | None = None,
        threshold: float | None = None,
    ) -> Question:
        """Reads both files.

        ``only`` scores these ids alone, all where empty; ``common`` is a list of the rows that both
        sides have, None to find them with the peer; None for ``normalisation`` or ``threshold``
        takes that of the settings or the model.
        """
        used = UsedModel.read(config, model)
        share = used.model
        column, chosen = config.data.id, normalisation or config.normalisation
        listed = None if common is None else AlignedRows.read(common, column, "the command")
        table = new_rows(rows, config.data, share, only, chosen, listed)
        question = cls(share, table, used.terms, chosen)
        if threshold is not None:
            return replace(question, threshold=at_probability(threshold, used.shift))
        return replace(question, threshold=used.threshold(model))

    @property
    def used(self) -> UsedModel:
        """The model alone."""
        return UsedModel(self.model, self.terms)

    @property
    def purpose(self) -> int:
        """What the two meet for."""
        return PREDICTION if self.rows.listed is None else LISTED_PREDICTION

    def program(
        self, entropy: Entropy, spread: Spread = map, identity: Identity | None = None
    ) -> Program[Predicted]:
        """This side's program, from the first message to the last."""
        aligned = yield from self._aligned(entropy.fork("alignment"), spread)
        table = self.rows.table.take(aligned.rows)
        if self.used.role == "alice":
            yield from self._alice(table, entropy, identity)
            return aligned
        return replace(aligned, scored=(yield from self._bob(table, entropy)))

    def _aligned(self, coins: Entropy, spread: Spread) -> Program[Predicted]:
        if self.rows.listed is not None:
            return Predicted(self.rows.listed, None)
        ids, terms = self.rows.table.ids, alignment_terms(self.normalisation, self.used.name)
        enough = Enough(ids, self.normalisation, 0.0, self.rows.where)
        search = Search(self.used.role, [*self.used.parties], enough, terms, spread)
        common = yield from search.program(coins)
        return Predicted(common.rows, common.shortest)

    def _alice(
        self, table: FeatureTable, entropy: Entropy, identity: Identity | None
    ) -> Program[None]:
        # Each side loads its own programs only.
        from taciturn.protocol.alice import predict, predict_mutual, predict_sealed
        from taciturn.protocol.alice.circle import join_circle

        used, name, masks = self.used, self.used.name, NO_MASKS
        yield from meet("alice", name, table)
        if used.parties:
            columns = len(table.columns)
            circle = yield from join_circle(
                used.parties, name.canonical(), identity, entropy, columns, 0
            )
            masks = circle.masks.fork("prediction")
        yield from emit(ScoresDue(table.ids))
        if not used.model.sealed:
            yield from predict.predict(
                table, used.model.weights, used.noise_key, self.terms.score_grid, masks
            )
            return
        share = used.alice_share
        if self.terms.mechanism.shares_scores:
            theirs = used.bob_share
            yield from predict_mutual.predict(
                table, share, theirs, used.noise_key, self.terms, entropy
            )
            return
        table = whitened_rows(table, share.whitening)
        yield from predict_sealed.predict(
            table,
            share.values,
            self.terms,
            share.scales,
            used.noise_key,
            entropy,
            share.magnitude_bits,
            masks,
        )

    def _bob(self, table: FeatureTable, entropy: Entropy) -> Program[Scored]:
        # Each side loads its own programs only.
        from taciturn.protocol.bob import predict, predict_mutual, predict_sealed
        from taciturn.protocol.bob.circle import gather_circle
        from taciturn.protocol.bob.partners import Partners

        used, weights = self.used, self.model.weights
        name, names = used.name, tuple(used.parties) or (ONLY,)
        hellos = yield from together({peer: meet("bob", name, table) for peer in names})
        if used.parties:
            yield from gather_circle(used.parties, name.canonical(), hellos, entropy)
        if not self.model.sealed:
            grid = self.terms.score_grid
            return Scored((yield from predict.predict(table, weights, names, grid)))
        share = used.alice_share
        if self.terms.mechanism.shares_scores:
            own, terms = used.bob_share, self.terms
            return (yield from predict_mutual.predict(table, share, own, terms, entropy))
        return (
            yield from predict_sealed.predict(
                table,
                weights,
                share.values,
                self.terms,
                share.scales,
                entropy,
                Partners.of(names, used.widths),
            )
        )


@dataclass(frozen=True, slots=True)
class Predicted:
    """What one side has at the end.

    ``rows`` are the rows of its file that were scored, in the order of their common ids; ``scored``
    has their scores in this order, which are Bob's alone.
    """

    rows: IndexArray = field(repr=False)
    peer_ids: int | None
    scored: Scored | None = None


@dataclass(frozen=True, slots=True)
class Answer:
    """How a prediction went; scores are Bob's alone, in the order of his file."""

    result: PredictionResult
    ids: tuple[str, ...] = field(default=(), repr=False)
    scores: FloatArray | None = field(default=None, repr=False)
    shift: float = 0.0

    def rows(self) -> tuple[ScoredRow, ...]:
        """Each row with its log-odds, its probability, and its class."""
        if self.scores is None:
            return ()
        threshold = self.result.threshold or one_half()
        return scored_rows(self.ids, self.scores, self.shift, threshold)


class Predictor:
    """One side of a prediction, ready to meet the other."""

    def __init__(self, config: PartyConfig, endpoint: Endpoints, callbacks: Callbacks) -> None:
        self._config = config
        self._session = PeerSession(config, endpoint, callbacks)
        self._budget = ScoreBudget.from_config(config)
        self._observe = callbacks.observe

    def _counting(self, event: Event) -> None:
        """Counts Alice's scores before they leave, and passes events on."""
        if self._budget is not None and isinstance(event, ScoresDue):
            # Those alone that are scored: of the others the peer learns no number.
            self._budget.charge(Charge(((event.ids, 1),)))
        self._observe(event)

    def run(self, question: Question) -> Answer:
        """Scores the rows with the peer."""
        if question.rows.listed is None:
            library()  # now, rather than when the peer waits
        start = time.perf_counter()
        with self._session.meet(question.purpose) as meeting, on_threads() as spread:
            meeting.connect()
            identity = identity_of(self._config)
            program = question.program(KeyedEntropy.from_system(), spread, identity)
            predicted = meeting.run(program, observe=self._counting)
            confirmed = meeting.finish(FINISH_SECONDS)
        self._session.log("rows scored", rows=len(predicted.rows))
        model, scored = question.model, predicted.scored
        aligned = predicted.peer_ids is not None
        result = PredictionResult(
            role=self._config.role,
            peer=self._config.peer,
            mechanism=model.agreement["mechanism"],
            shared_weights=model.sealed,
            session=model.session,
            rows=len(predicted.rows),
            ids=len(question.rows.own),
            peer_ids=predicted.peer_ids,
            normalise=str(question.normalisation) if aligned else None,
            columns=len(model.columns),
            seconds=time.perf_counter() - start,
            bytes_sent=meeting.traffic.bytes_sent,
            bytes_received=meeting.traffic.bytes_received,
            peer_confirmed=confirmed,
            learnt=LEARNT if scored is None else None,
            suspected_wraps=None if scored is None else scored.suspected_wraps,
            meaning=None if scored is None else question.used.meaning,
            threshold=None if scored is None else question.threshold,
        )
        if scored is None:
            return Answer(result)
        # Back into the order of the file.
        order = np.argsort(predicted.rows)
        ids = tuple(question.rows.own.take(predicted.rows[order]).series.to_list())
        return Answer(result, ids, scored.scores[order], question.used.shift)

    def refuse(self, problem: TaciturnError) -> None:
        """Tells the peer, where it is there, that this side cannot begin."""
        self._session.refuse(PREDICTION, problem)


LEARNT = (
    "no score, no label and nothing of the peer's columns; only which of these rows it asked for, "
    "how many it has in all, and when"
)


def predict(
    config: PartyConfig,
    question_of: Callable[[], Question],
    callbacks: Callbacks,
) -> Answer:
    """Reads this side's files, meets the peer and scores.

    What ``question_of`` raises is sent to the peer, where the peer is there already.
    """
    keys = peer_keys(config)
    require_begun_in_time(config)
    try:
        question = question_of()
    except TaciturnError as problem:
        # What keeps us from telling is of less interest than what is told.
        with suppress(TaciturnError), way_to_peer(config, callbacks.announce, keys) as endpoint:
            callbacks.announce(f"aborting, and notifying {config.peer} if it is connected")
            Predictor(config, endpoint, callbacks).refuse(problem)
        raise
    with way_to_peer(config, callbacks.announce, keys) as endpoint:
        return Predictor(config, endpoint, callbacks).run(question)
