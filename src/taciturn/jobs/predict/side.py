"""``PredictionSide``: one side of a joint prediction of new rows, whose files are read."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field, replace

from taciturn.arrays import FloatArray, IndexArray
from taciturn.data.ids import AS_THEY_ARE, Normalisation
from taciturn.data.tables import FeatureTable
from taciturn.jobs.align.intersection import IntersectionTask, MatchRequirement
from taciturn.jobs.align.job import thread_pool
from taciturn.jobs.align.pairwise import Spread
from taciturn.jobs.base import SessionFacts, Side
from taciturn.jobs.predict.result import PredictionResult
from taciturn.model.share import ModelShare
from taciturn.numerics.threshold import even_odds
from taciturn.party.applied_model import AppliedModel, scored_rows
from taciturn.party.config import PartyConfig
from taciturn.party.log import Log
from taciturn.party.new_rows import NewRows
from taciturn.protocol.model_name import alignment_terms
from taciturn.protocol.prediction import Scored
from taciturn.protocol.steps import Program
from taciturn.protocol.terms import Terms
from taciturn.results.parties import MeanRow, ScoredRow
from taciturn.rng import Entropy


@dataclass(frozen=True, slots=True)
class Predicted:
    """Prediction result of one side.

    ``rows`` are the rows of its file that were scored, in the order of their common ids; ``scored``
    has their scores in this order, which are Bob's alone.
    """

    rows: IndexArray = field(repr=False)
    peer_ids: int | None
    scored: Scored | None = None


@dataclass(frozen=True, slots=True)
class Answer:
    """Summary of a prediction; only Bob has scores, in the order of his file."""

    result: PredictionResult
    ids: tuple[str, ...] = field(default=(), repr=False)
    scores: FloatArray | None = field(default=None, repr=False)
    model: AppliedModel | None = field(default=None, repr=False)
    exposure: FloatArray | None = field(default=None, repr=False)

    def rows(self) -> tuple[ScoredRow | MeanRow, ...]:
        """Each row with its log-odds, probability and class; or its linear predictor and mean."""
        if self.scores is None or self.model is None:
            return ()
        threshold = self.result.threshold or even_odds()
        return scored_rows(self.ids, self.scores, self.model, threshold, self.exposure)


@dataclass(slots=True)
class PredictionSide(Side[Predicted, Answer]):
    """This side's share of the model and its columns of the rows."""

    model: ModelShare
    rows: NewRows
    terms: Terms
    normalisation: Normalisation = AS_THEY_ARE
    spread: Spread = map

    @property
    def used(self) -> AppliedModel:
        """The model alone."""
        return AppliedModel(self.model, self.terms)

    @abstractmethod
    def score(self, table: FeatureTable, entropy: Entropy) -> Program[Scored | None]:
        """Score the common rows; only Bob has the scores at the end."""

    @contextmanager
    def at_work(self, config: PartyConfig, log: Log) -> Iterator[None]:
        """Context with a thread pool for the alignment."""
        with thread_pool() as self.spread:
            yield

    def program(self, entropy: Entropy) -> Program[Predicted]:
        """This side's program, from the first message to the last."""
        aligned = yield from self._aligned(entropy.fork("alignment"))
        table = self.rows.table.take(aligned.rows)
        return replace(aligned, scored=(yield from self.score(table, entropy)))

    def _aligned(self, entropy: Entropy) -> Program[Predicted]:
        if self.rows.listed is not None:
            return Predicted(self.rows.listed, None)
        ids, terms = self.rows.table.ids, alignment_terms(self.normalisation, self.used.name)
        requirement = MatchRequirement(ids, self.normalisation, 0.0, self.rows.where)
        parties = [*self.used.parties]
        task = IntersectionTask(self.used.role, parties, requirement, terms, self.spread)
        common = yield from task.program(entropy)
        return Predicted(common.rows, common.shortest)

    def result(self, outcome: Predicted, session: SessionFacts) -> PredictionResult:
        """Result that both sides know at the end."""
        session.log("rows scored", rows=len(outcome.rows))
        model = self.model
        aligned = outcome.peer_ids is not None
        return PredictionResult(
            role=session.role,
            peer=session.peer,
            mechanism=model.agreement["mechanism"],
            shared_weights=model.sealed,
            session=model.session,
            rows=len(outcome.rows),
            ids=len(self.rows.own_ids),
            peer_ids=outcome.peer_ids,
            normalise_ids=str(self.normalisation) if aligned else None,
            columns=len(model.columns),
            seconds=session.seconds,
            bytes_sent=session.traffic.bytes_sent,
            bytes_received=session.traffic.bytes_received,
            peer_confirmed=session.confirmed,
        )
