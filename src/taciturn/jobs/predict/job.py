"""``PredictJob``: one side of a joint prediction of new rows.

::

    Alice                                            Bob
      an alignment of the new rows' ids         <->  (its terms name the model)
      Hello (which model, which rows)           <->  Hello
      the introductions of several Alices
      the prediction, from weights or from shares    scores of the common rows

Where both name a list of common rows, the first part is left out. Only Bob learns scores. Entropy
and keys are drawn anew each time and no state is kept: after an interruption both sides run the
command again. Alice's budget is charged before her scores are sent.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path

import numpy as np

from taciturn.arrays import FloatArray, IndexArray
from taciturn.crypto.group import library
from taciturn.crypto.signatures import Identity
from taciturn.data.normalisation import AS_THEY_ARE, Normalisation
from taciturn.jobs.align import IntersectionTask, MatchRequirement, Spread, thread_pool
from taciturn.jobs.base import Consent, Job, SessionFacts, Side
from taciturn.jobs.predict.result import PredictionResult
from taciturn.model.share import ModelShare
from taciturn.numerics.sorted_scores import Threshold, even_odds, threshold_at
from taciturn.party.agreed import require_begun_in_time
from taciturn.party.aligned import AlignedRows
from taciturn.party.config import PartyConfig
from taciturn.party.consent.budget import Charge
from taciturn.party.consent.score_budget import ScoreBudget
from taciturn.party.identity import identity_of
from taciturn.party.link import LISTED_PREDICTION, PREDICTION
from taciturn.party.log import Log
from taciturn.party.new_rows import NewRows, new_rows
from taciturn.party.used_model import UsedModel, scored_rows
from taciturn.protocol.events import ScoresDue
from taciturn.protocol.prediction import Scored, alignment_terms
from taciturn.protocol.steps import Program
from taciturn.protocol.terms import Terms
from taciturn.results.parties import ScoredRow
from taciturn.rng import Entropy

LEARNT = (
    "no score, no label and nothing of the peer's columns; only which of these rows it asked for, "
    "how many it has in all, and when"
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
        threshold = self.result.threshold or even_odds()
        return scored_rows(self.ids, self.scores, self.shift, threshold)


@dataclass(frozen=True, slots=True)
class PredictJob(Job[Answer]):
    """Score new rows.

    ``model`` and ``rows`` are this side's files. ``only`` scores these ids alone, all where empty;
    ``common`` is a list of the rows that both sides have, None to find them with the peer; None for
    ``normalisation`` or ``threshold`` takes that of the settings or the model.
    """

    model: Path
    rows: Path
    only: tuple[str, ...] = ()
    normalisation: Normalisation | None = None
    common: Path | None = None
    threshold: float | None = None

    @property
    def purpose(self) -> int:
        """A prediction that aligns first, or one of listed rows."""
        return PREDICTION if self.common is None else LISTED_PREDICTION

    def prepare(self, config: PartyConfig) -> PredictionSide:
        """Read the model and the rows."""
        require_begun_in_time(config)
        used = UsedModel.read(config, self.model)
        column, chosen = config.data.id, self.normalisation or config.normalisation
        listed = None
        if self.common is None:
            library()  # now, rather than when the peer waits
        else:
            listed = AlignedRows.read(self.common, column, "the command")
        rows = new_rows(config.table(self.rows), column, used.model, self.only, chosen, listed)
        if self.threshold is not None:
            threshold = threshold_at(self.threshold, used.shift)
        else:
            threshold = used.threshold(self.model)
        return PredictionSide(
            used.model,
            rows,
            used.terms,
            chosen,
            threshold,
            identity_of(config),
            ScoreBudget.from_config(config),
        )


@dataclass(slots=True)
class PredictionSide(Side[Predicted, Answer]):
    """This side's share of the model and its columns of the rows.

    ``identity`` is what one of several Alices signs with; ``budget`` is Alice's.
    """

    model: ModelShare
    rows: NewRows
    terms: Terms
    normalisation: Normalisation = AS_THEY_ARE
    threshold: Threshold = field(default_factory=even_odds)
    identity: Identity | None = None
    budget: ScoreBudget | None = None
    spread: Spread = map

    @property
    def used(self) -> UsedModel:
        """The model alone."""
        return UsedModel(self.model, self.terms)

    @property
    def consent(self) -> Consent[ScoresDue]:
        """The scored rows, before Alice's scores leave."""
        return Consent(ScoresDue, self._charge)

    def _charge(self, event: ScoresDue) -> None:
        if self.budget is not None:
            # Those alone that are scored: of the others the peer learns no number.
            self.budget.charge(Charge(((event.ids, 1),)))

    @contextmanager
    def at_work(self, config: PartyConfig, log: Log) -> Iterator[None]:
        """With a pool of threads for the alignment."""
        with thread_pool() as self.spread:
            yield

    def program(self, entropy: Entropy) -> Program[Predicted]:
        """This side's program, from the first message to the last."""
        aligned = yield from self._aligned(entropy.fork("alignment"))
        table = self.rows.table.take(aligned.rows)
        # Each side loads its own programs only.
        if self.used.role == "alice":
            from taciturn.jobs.predict.alice import answer

            yield from answer(self.used, table, entropy, self.identity)
            return aligned
        from taciturn.jobs.predict.bob import ask

        return replace(aligned, scored=(yield from ask(self.used, table, entropy)))

    def _aligned(self, entropy: Entropy) -> Program[Predicted]:
        if self.rows.listed is not None:
            return Predicted(self.rows.listed, None)
        ids, terms = self.rows.table.ids, alignment_terms(self.normalisation, self.used.name)
        requirement = MatchRequirement(ids, self.normalisation, 0.0, self.rows.where)
        parties = [*self.used.parties]
        task = IntersectionTask(self.used.role, parties, requirement, terms, self.spread)
        common = yield from task.program(entropy)
        return Predicted(common.rows, common.shortest)

    def conclude(self, outcome: Predicted, session: SessionFacts) -> Answer:
        """The result, and at Bob the scores in the order of his file."""
        session.log("rows scored", rows=len(outcome.rows))
        model, scored = self.model, outcome.scored
        aligned = outcome.peer_ids is not None
        result = PredictionResult(
            role=session.role,
            peer=session.peer,
            mechanism=model.agreement["mechanism"],
            shared_weights=model.sealed,
            session=model.session,
            rows=len(outcome.rows),
            ids=len(self.rows.own),
            peer_ids=outcome.peer_ids,
            normalise=str(self.normalisation) if aligned else None,
            columns=len(model.columns),
            seconds=session.seconds,
            bytes_sent=session.traffic.bytes_sent,
            bytes_received=session.traffic.bytes_received,
            peer_confirmed=session.confirmed,
            learnt=LEARNT if scored is None else None,
            suspected_wraps=None if scored is None else scored.suspected_wraps,
            meaning=None if scored is None else self.used.meaning,
            threshold=None if scored is None else self.threshold,
        )
        if scored is None:
            return Answer(result)
        # Back into the order of the file.
        order = np.argsort(outcome.rows)
        ids = tuple(self.rows.own.take(outcome.rows[order]).series.to_list())
        return Answer(result, ids, scored.scores[order], self.used.shift)
