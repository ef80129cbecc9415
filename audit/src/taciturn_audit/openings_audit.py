"""Audit of what is opened after training, and of inputs that a side chooses.

**Guarantee.** An attack gets what its adversary has, and the judge compares its estimate with the
other side's table and weights afterwards. Every figure stands beside a control: the same measure
without the opened numbers, or without the chosen input.

**Assumes.** As ``column_audit``. A chosen input is everything as prescribed but one column or the
labels; what the weights then say of a row is judged by the weights themselves, which as many scores
of known rows as Alice has columns give to Bob.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace

import numpy as np
from scipy.stats import beta, binom, chi2

from taciturn.arrays import FloatArray, IndexArray
from taciturn.data.tables import FeatureTable
from taciturn.engine.callbacks import SILENT, Callbacks
from taciturn.errors import ConfigError, TaciturnError, counted
from taciturn.jobs.study.simulation import SimulatedPlan
from taciturn.jobs.study.worker import without_fold
from taciturn.jobs.train.simulation import Outcome, joint_scores
from taciturn.party.consent.score_budget import default_models
from taciturn.privacy.base import given
from taciturn.privacy.row_noise import opens_sums, row_noise
from taciturn.rng import KeyedEntropy
from taciturn.setting_syntax import Hint
from taciturn.settings.schema import Settings
from taciturn.settings.study import Study
from taciturn.simulation import RunEntropy, Source
from taciturn_audit.column_attacks.base import KnownRows
from taciturn_audit.column_attacks.opened_scores import (
    OpenedPredictionAttack,
    OpenedScoresAttack,
    OthersKnown,
    SeveralModelsAttack,
    WhatIfAttack,
    alice_part,
    row_from_others,
)
from taciturn_audit.column_audit import known_rows_of
from taciturn_audit.columns import Truth, controls, judge_columns
from taciturn_audit.further_trainings import FurtherTrainings, fold_scores
from taciturn_audit.results.columns import Skipped, is_above
from taciturn_audit.results.openings import (
    ALICE_PART,
    BITS,
    DIRECTION,
    LABELS,
    RECOVERED,
    ROW,
    OpeningAttack,
    OpeningFindings,
    conclude_openings,
)
from taciturn_audit.row_influence import Candidates, measure_influence
from taciturn_audit.views.opened_scores import OpenedScores, Rescored

CHOSEN_ROWS = 5
"""How many rows a column of Bob's is chosen against, one training each."""
INDICATORS = 8
"""How many rows Alice has a column of her own for."""
OTHERS_KNOWN_ROWS = 10
"""How many rows a Bob who knows all others estimates, one by one."""
_DEVIATIONS = 3.5
"""A correlation counts as above its control from this many standard errors on."""
_RARE = 0.01
_MOVED = 0.5
"""Range of the change of Bob's columns in a second scoring of the same rows."""


@dataclass(frozen=True, slots=True)
class OpeningsAudit:
    """Audit of the openings of one training.

    ``further`` also trains again: several models, chosen inputs, a Bob who knows all other rows.
    """

    settings: Settings
    outcome: Outcome
    entropy: RunEntropy
    adversaries: Sequence[str] = ("alice", "bob")
    further: bool = False
    callbacks: Callbacks = SILENT

    def audit(self) -> OpeningFindings | None:
        """Run the attacks and judge them; None where these adversaries have none."""
        judged, skipped = list[OpeningAttack](), list[Skipped]()
        for name, adversary, attack in self._attacks():
            if adversary not in self.adversaries:
                continue
            self.callbacks.announce(f"{name}, on what is opened after training")
            try:
                judged.extend(attack())
            except _Inapplicable as reason:
                skipped.append(Skipped(name, str(reason)))
            except TaciturnError as problem:
                skipped.append(Skipped(name, f"the training was refused: {problem.message}"))
        if not judged and not skipped:
            return None
        return conclude_openings(judged, skipped, further=self.further)

    def _attacks(self) -> Iterator[tuple[str, str, Callable[[], Iterator[OpeningAttack]]]]:
        yield OpenedPredictionAttack.name, "bob", self._prediction
        yield WhatIfAttack.name, "bob", self._what_if
        if self.further:
            yield SeveralModelsAttack.name, "bob", self._several_models
            yield "chosen-input", "bob", self._label_column
            yield "chosen-input", "bob", self._one_positive
            yield "chosen-input", "alice", self._indicators
            yield "known-others", "bob", self._known_others
            yield "known-others", "bob", self._opened_sums

    # --- opened scores ------------------------------------------------------------------------

    def _opened(self, outcome: Outcome) -> OpenedScores:
        scores = outcome.held_out_scores
        if scores is None:
            raise _Inapplicable("no score of a held-out row is opened to Bob")
        return held_out_view(outcome, scores[:, None])

    def _prediction(self) -> Iterator[OpeningAttack]:
        view, attack = self._opened(self.outcome), OpenedPredictionAttack()
        yield self._of_alice_part(attack, view, alice_part(view)[:, 0])
        yield from judge_opened(attack, view, self._truth, self._order, self._uses(view))

    def _what_if(self) -> Iterator[OpeningAttack]:
        view, attack = (
            rescored(self._opened(self.outcome), self.outcome, self._order),
            WhatIfAttack(),
        )
        estimate = attack.estimate(view, KnownRows.none(view.columns)).values[:, 0]
        weights = attack.bob_weights(view)
        off = float(np.abs(weights - self.outcome.bob_weights[: len(weights)]).max(initial=0.0))
        errors = estimate - self._alice_part
        error = float(np.abs(errors - np.median(errors)).max())
        remark = f"Bob's weights to {off:.1e}, Alice's part of each score to {error:.1e}"
        yield replace(
            self._of_alice_part(attack, view, estimate),
            uses=f"two scorings of {counted(view.features.rows, 'row')} by one model",
            remark=remark,
        )

    def _several_models(self) -> Iterator[OpeningAttack]:
        """As many models as Alice's default limit admits in ``mutual``, and all of them."""
        trainings = self._trainings.several_models()
        scores = [trained.held_out_scores for trained in trainings]
        opened = [one for one in scores if one is not None]
        if not opened:
            raise _Inapplicable("no score of a held-out row is opened to Bob")
        every = np.column_stack(opened)
        admitted = min(default_models(len(self.outcome.alice_weights)), len(opened))
        for count in sorted({admitted, len(opened)}):
            # Models that differ as much as they can.
            taken = np.linspace(0, len(opened) - 1, count).astype(int)
            view = held_out_view(self.outcome, every[:, taken], own_weights=False)
            uses = self._uses(view)
            yield from judge_opened(SeveralModelsAttack(), view, self._truth, self._order, uses)

    def _uses(self, view: OpenedScores) -> str:
        rows, models = counted(view.features.rows, "held-out row"), counted(view.models, "model")
        return f"scores of {rows} by {models}"

    def _of_alice_part(
        self, attack: OpenedScoresAttack, view: OpenedScores, estimate: FloatArray
    ) -> OpeningAttack:
        start, part = time.perf_counter(), self._alice_part
        result = _correlation(estimate, part)
        order = self._order.fork("control").permutation(len(part))
        control = _correlation(estimate[order], part)
        return OpeningAttack(
            name=attack.name,
            adversary="bob",
            uses=self._uses(view),
            measure=ALICE_PART,
            result=result,
            control=control,
            above=_exceeds(result, control, len(part)),
            known_rows=0,
            models=1,
            seconds=time.perf_counter() - start,
        )

    # --- chosen inputs ------------------------------------------------------------------------

    def _label_column(self) -> Iterator[OpeningAttack]:
        if self.outcome.data.bob_train.values.shape[1] <= self.outcome.data.bob_train.free:
            raise _Inapplicable("Bob has no column")
        uses = "a column of his that is the label but for one row"
        rows = self._rows(CHOSEN_ROWS)
        yield self._towards_rows(rows, self._trainings.label_column, uses)

    def _one_positive(self) -> Iterator[OpeningAttack]:
        uses = "labels that are 1 for one row alone"
        yield self._towards_rows(self._rows(1), self._trainings.one_positive, uses)

    def _towards_rows(
        self, rows: IndexArray, train: Callable[[int], Outcome], uses: str
    ) -> OpeningAttack:
        self._require_classes()
        if len(self.outcome.data.alice_train.columns) < 2:
            raise _Inapplicable("Alice has one column, whose weight has no direction")
        start, directions = time.perf_counter(), _Directions.of_table(self.outcome.data.alice_train)
        chosen = [directions.cosine(train(int(row)).alice_weights, int(row)) for row in rows]
        plain = [directions.cosine(self.outcome.alice_weights, int(row)) for row in rows]
        result, control = float(np.mean(np.abs(chosen))), float(np.mean(np.abs(plain)))
        return OpeningAttack(
            name="chosen-input",
            adversary="bob",
            uses=uses,
            measure=DIRECTION,
            result=result,
            control=control,
            above=result > control and directions.is_unlikely(chosen),
            known_rows=0,
            models=len(rows),
            seconds=time.perf_counter() - start,
            remark=f"mean over {counted(len(rows), 'row')}; the control has his own column",
        )

    def _indicators(self) -> Iterator[OpeningAttack]:
        self._require_classes()
        data, rows = self.outcome.data, self._rows(INDICATORS)
        if data.alices:
            raise _Inapplicable("there are several Alices")
        if self.outcome.result.sealed is not None and not self.outcome.terms.agreement.reveal:
            raise _Inapplicable("Alice's weights are not revealed to her")
        start = time.perf_counter()
        weights = self._trainings.indicators(rows).alice_weights[-len(rows) :]
        labels = data.labels_train.values[rows] == 1
        right = int(np.count_nonzero((weights > 0) == labels))
        share = float(np.mean(data.labels_train.values == 1))
        control = max(share, 1.0 - share)
        yield OpeningAttack(
            name="chosen-input",
            adversary="alice",
            uses=f"{counted(len(rows), 'column')} of hers, each 1 in one row alone",
            measure=LABELS,
            result=right / len(rows),
            control=control,
            above=bool(binom.sf(right - 1, len(rows), control) < 0.05),
            known_rows=0,
            models=1,
            seconds=time.perf_counter() - start,
            remark=f"{right} of {len(rows)} by the signs of her weights",
        )

    # --- a Bob who knows all rows but one -----------------------------------------------------

    def _known_others(self) -> Iterator[OpeningAttack]:
        self._require_classes()
        opened, data = self._opened(self.outcome), self.outcome.data
        start, rows = time.perf_counter(), self._rows(OTHERS_KNOWN_ROWS)
        estimates = np.stack([self._row_from_others(opened, int(row)) for row in rows])
        truth, spread = data.alice_train.values[rows], data.alice_train.values.std(axis=0)
        spread = np.where(spread > 0, spread, 1.0)
        result = _correlation((estimates / spread).ravel(), (truth / spread).ravel())
        control = _correlation(
            (np.roll(estimates, 1, axis=0) / spread).ravel(), (truth / spread).ravel()
        )
        near = float(np.mean(np.abs(estimates - truth) <= 0.1 * spread))
        yield OpeningAttack(
            name="known-others",
            adversary="bob",
            uses=f"{self._uses(opened)}, and all rows but one",
            measure=ROW,
            result=result,
            control=control,
            above=_exceeds(result, control, truth.size),
            known_rows=data.alice_train.rows - 1 + opened.features.rows,
            models=1,
            seconds=time.perf_counter() - start,
            remark=f"{100 * near:.0f} % of {truth.size} values to a tenth of their deviation; "
            "the control is another row's estimate",
        )

    def _opened_sums(self) -> Iterator[OpeningAttack]:
        """Bits about one row that the opened sums carry; the control is what the ledger states."""
        self._require_classes()
        data, agreed, (row, *others) = (
            self.outcome.data,
            self.outcome.terms.agreement,
            self._rows(1 + OTHERS_KNOWN_ROWS),
        )
        rows, passes = data.labels_train.rows, agreed.rounds
        if not self.outcome.terms.shares_scores or not opens_sums(rows):
            raise _Inapplicable("no sum over all rows is opened")
        start, hers = time.perf_counter(), data.alice_train.values
        influence = measure_influence(
            Candidates(
                alice=hers,
                bob=data.bob_train.values,
                labels=data.labels_train.values,
                row=int(row),
                values=hers[others],
                l2=agreed.l2,
                passes=passes,
                free=data.bob_train.free,
                score_range=given(agreed, "score_range"),
                sigmoid_error=given(agreed, "sigmoid_error"),
            )
        )
        change = row_noise("change of the loss", rows, passes)
        count = row_noise("count of scores", rows, passes)
        stated = change.bits(change.moved.honest) + count.bits(count.moved.honest)
        yield OpeningAttack(
            name="known-others",
            adversary="bob",
            uses="the opened change of the loss and count, and all rows but one",
            measure=BITS,
            result=influence.bits(),
            control=stated,
            above=influence.bits() > stated,
            known_rows=rows - 1,
            models=1,
            seconds=time.perf_counter() - start,
            remark=f"the row moves the change by {influence.change:.1e} rows; the control is what "
            "the ledger states",
        )

    def _row_from_others(self, opened: OpenedScores, row: int) -> FloatArray:
        data = self.outcome.data
        values = data.alice_train.values.copy()
        values[row] = 0.0
        return row_from_others(
            OthersKnown(
                alice=values,
                bob=data.bob_train,
                labels=np.asarray(data.labels_train.values, dtype=np.float64),
                row=row,
                scored=data.alice_test.values,
                opened=opened,
                penalty=self.outcome.terms.agreement.l2,
                retrain=lambda hers: self._trainings.weights(hers, row),
            )
        )

    # --- what the judge and the further trainings have ----------------------------------------

    @property
    def _trainings(self) -> FurtherTrainings:
        observe = Callbacks(observe=self.callbacks.observe)
        return FurtherTrainings(self.settings, self.outcome, self.entropy, observe)

    @property
    def _order(self) -> KeyedEntropy:
        return self.entropy.data.permute.fork("openings")

    @property
    def _truth(self) -> Truth:
        return Truth.from_table(self.outcome.data.alice_test)

    @property
    def _alice_part(self) -> FloatArray:
        part: FloatArray = self.outcome.data.alice_test.values @ self.outcome.alice_weights
        return part

    def _rows(self, count: int) -> IndexArray:
        order = self._order.fork("rows").permutation(self.outcome.data.labels_train.rows)
        return np.asarray(order[:count], dtype=np.int64)

    def _require_classes(self) -> None:
        if not self.outcome.data.labels_train.kind.has_classes:
            raise _Inapplicable("labels are no classes")


class _Inapplicable(Exception):
    """An attack that does not apply, with the reason."""


def held_out_view(
    outcome: Outcome, scores: FloatArray, *, own_weights: bool = True
) -> OpenedScores:
    """Bob's view of opened scores of the held-out rows."""
    data, agreed = outcome.data, outcome.terms.agreement
    knows = own_weights and (not outcome.terms.shares_scores or agreed.reveal_bob)
    return OpenedScores(
        features=data.bob_test,
        labels=data.labels_test,
        scores=scores,
        columns=len(data.alice_train.columns),
        bob_weights=outcome.bob_weights[:, None] if knows else None,
    )


def rescored(view: OpenedScores, outcome: Outcome, entropy: KeyedEntropy) -> OpenedScores:
    """The view with a second scoring of its rows, for which Bob moves his columns a little."""
    free, values = view.features.free, view.features.values.copy()
    moved = (values.shape[0], values.shape[1] - free)
    if not moved[1]:
        raise _Inapplicable("Bob has no column")
    values[:, : moved[1]] += 2 * _MOVED * (entropy.fork("what-if").uniform(moved) - 0.5)
    table = FeatureTable(view.features.ids, view.features.columns, values)
    scores = joint_scores(
        outcome.data.alice_test,
        table,
        outcome.alice_weights,
        outcome.bob_weights,
        outcome.terms.score_grid,
        outcome.noise_keys,
    )
    return replace(view, rescored=Rescored(table, scores), bob_weights=None)


def judge_opened(
    attack: OpenedScoresAttack, view: OpenedScores, truth: Truth, entropy: KeyedEntropy, uses: str
) -> Iterator[OpeningAttack]:
    """Shares of Alice's values that an attack recovers, by the number of rows that Bob knows.

    The control is the better of the best constant of each column and regression on all that Bob
    has beside the scores, which knows every second row.
    """
    if reason := attack.lacks(view):
        raise _Inapplicable(reason)
    known_without = controls(truth, view.features, view.labels)
    for count in attack.known_counts(view):
        known, start = known_rows_of(truth, entropy, count), time.perf_counter()
        estimate = attack.estimate(view, known)
        score = judge_columns(attack.name, estimate, truth, known)
        open_to = "" if score.ambiguity == "none" else f", up to {score.ambiguity}"
        yield OpeningAttack(
            name=attack.name,
            adversary="bob",
            uses=uses,
            measure=f"{RECOVERED}{open_to}",
            result=score.recovered,
            control=max(control.recovered for control in known_without),
            above=is_above(score, known_without),
            known_rows=count,
            models=view.models,
            seconds=time.perf_counter() - start,
            remark=estimate.remark,
        )


@dataclass(frozen=True, slots=True)
class _Directions:
    """Rows and weights in coordinates in which Alice's columns are uncorrelated."""

    rows: FloatArray = field(repr=False)
    turn: FloatArray = field(repr=False)

    @classmethod
    def of_table(cls, table: FeatureTable) -> _Directions:
        values = table.values - table.values.mean(axis=0)
        rows, sizes, right = np.linalg.svd(values, full_matrices=False)
        kept = sizes > 1e-9 * sizes.max(initial=1e-300)
        return cls(rows[:, kept], sizes[kept, None] * right[kept])

    def cosine(self, weights: FloatArray, row: int) -> float:
        """Cosine of the angle between her weights and her row."""
        turned, towards = self.rows[row], self.turn @ weights
        length = float(np.linalg.norm(turned) * np.linalg.norm(towards))
        return float(turned @ towards) / length if length else 0.0

    def is_unlikely(self, cosines: Sequence[float]) -> bool:
        """Whether random directions reach such cosines rarely, by Fisher's method."""
        half = (len(self.turn) - 1) / 2
        tails = beta.sf(np.square(cosines), 0.5, half)
        statistic = -2.0 * float(np.log(np.maximum(tails, 1e-300)).sum())
        return bool(chi2.sf(statistic, 2 * len(cosines)) < _RARE)


def _correlation(left: FloatArray, right: FloatArray) -> float:
    apart = [part - part.mean() for part in (left, right)]
    lengths = [float(np.linalg.norm(part)) for part in apart]
    return float(apart[0] @ apart[1]) / math.prod(lengths) if all(lengths) else 0.0


def _exceeds(result: float, control: float, count: int) -> bool:
    return abs(result) - abs(control) > _DEVIATIONS / math.sqrt(count)


def audit_study(base: Settings, study: Study, raw: Source) -> OpeningFindings:
    """Attack what the trainings of a study's first fold open of its rows; unencrypted.

    The other folds open the same of theirs. Scores are those that Bob's program received, if any.
    Raises ``ConfigError`` where the study has no folds.
    """
    if not study.folds:
        raise ConfigError(
            "the study has no folds", setting="folds", hint=Hint("use {folds}", folds=3)
        )
    plan = SimulatedPlan.from_study(
        base.model_copy(update={"scheme": "clear", "key_bits": None}), study, raw
    )
    data, scores = without_fold(plan.data, plan.folds, 0), fold_scores(plan, 0)
    view = OpenedScores(data.bob_test, data.labels_test, scores, len(data.alice_test.columns))
    truth, order = Truth.from_table(data.alice_test), plan.entropy.data.permute.fork("openings")
    rows, models = counted(data.labels_test.rows, "training row"), counted(view.models, "model")
    judged, skipped = list[OpeningAttack](), list[Skipped]()
    for attack in (OpenedPredictionAttack(), SeveralModelsAttack()):
        try:
            uses = f"scores of {rows} of one fold by {models}"
            judged.extend(judge_opened(attack, view, truth, order, uses))
        except _Inapplicable as reason:
            skipped.append(Skipped(attack.name, str(reason)))
    return conclude_openings(judged, skipped, further=True)
