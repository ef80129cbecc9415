"""A training between two simulated parties: what it was, how good the model is, what it cost."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import ClassVar, Final

from taciturn.numerics.convergence import Convergence
from taciturn.numerics.label_metrics import Added, ModelMetrics
from taciturn.numerics.symmetry import Symmetry
from taciturn.privacy.events import Statement
from taciturn.results.cost_preview import AskedConsent, Cost, Disclosure
from taciturn.results.serialise import INLINE, OMITTED, Result, Subject, inline
from taciturn.settings.agreement import Agreement
from taciturn.settings.schema import Sgd


@dataclass(frozen=True, slots=True)
class FeatureParty:
    """One of several Alices, and her number of columns."""

    name: str
    columns: int


@dataclass(frozen=True, slots=True)
class HiddenBatches:
    """Statistics of ``hybrid``'s draws.

    ``rejected`` is the probability that a draw is thrown away because its response is too short,
    ``redraws`` how many were; ``conditioning`` is what that adds to the response's epsilon between
    indicators with different numbers of marks.
    """

    epsilon: float
    subset_size: int
    marked: int
    l_rr: float
    expected_batch: float
    mean_batch: float
    empty_batches: int
    rejected: float
    redraws: int
    conditioning: float


@dataclass(frozen=True, slots=True)
class ReleasedModel:
    """Noise on the weights that Alice gets in ``sealed`` with ``reveal_epsilon``.

    Lengths are those of whitened weights: ``sensitivity`` is how far one label can move them in
    ``steps`` over rows of ``row_bound`` at most, and ``noise`` the standard deviation of what was
    added to each. All of it is public.
    """

    epsilon: float
    delta: float
    steps: int
    row_bound: float
    sensitivity: float
    noise: float


@dataclass(frozen=True, slots=True)
class SharedScores:
    """Approximation of the sigmoid in ``mutual``; all of it is public.

    ``error_bound`` is the most by which the sum of ``waves`` waves misses the sigmoid of a score
    within ``score_range``, and ``rounding`` the standard deviation of what fixed point adds.
    """

    score_range: float
    sigmoid_error: float
    waves: int
    error_bound: float
    rounding: float
    reveal_bob: bool


@dataclass(frozen=True, slots=True)
class SharedWeights:
    """Fixed-point layout of ``sealed``: digits, the bound on scores, suspected overflows.

    ``suspected_wraps`` counts scores in the outer half of the range; Bob alone knows it.
    """

    removed_keys: ClassVar[tuple[str, ...]] = ("dither",)

    modulus_bits: int
    feature_bits: int
    residue_bits: int
    score_bound: float
    suspected_wraps: int
    reveal: bool
    fresh_keys: bool
    model_release: ReleasedModel | None
    shared_scores: SharedScores | None


@dataclass(frozen=True, slots=True)
class Optimum:
    """The least penalised loss that a model of all columns can have on the training rows.

    ``gap`` is how far above it the trained model is, on the same rows and with their true labels.
    ``row_gap`` is the largest difference of a row's probability between the two.
    """

    loss: float
    gap: float
    row_gap: float | None = field(default=None, metadata=OMITTED)


@dataclass(frozen=True, slots=True, kw_only=True)
class DataFacts:
    """Shape of the tables that were trained on, without any value of them.

    ``dataset`` is its name, or the file; None for a table in memory. ``parties`` are the Alices,
    where there are several, among whom ``alice_columns`` are divided.
    """

    dataset: str | None
    rows: int
    held_out_rows: int
    alice_columns: int
    parties: tuple[FeatureParty, ...] | None = field(default=None, metadata=OMITTED)
    bob_columns: int

    def subject(self, mechanism: str | None) -> Subject:
        """The rows, both sides' columns, and the mechanism."""
        columns = {"alice": self.alice_columns, "bob": self.bob_columns}
        return Subject(self.dataset, mechanism, self.rows, self.held_out_rows, columns)


TRAINED_ON: Final = inline(rows="rows_train", held_out_rows="rows_test")
"""Metadata of the data of a training, whose record tells training rows from all rows."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RunMetrics:
    """Metrics of a model on training rows and on held-out rows.

    ``bob_alone`` has the figures of Bob's columns without Alice's on held-out rows, and
    ``partner_adds`` what the joint model's AUC there, or the deviance it explains, has beyond them.
    """

    train: ModelMetrics = field(repr=False)
    test: ModelMetrics = field(repr=False)
    bob_alone: ModelMetrics | None = field(default=None, repr=False)
    partner_adds: Added | None = None


@dataclass(frozen=True, slots=True)
class Comparison:
    """The centralised model beside the joint one; empty where they are not compared.

    ``centralised`` has the figures on held-out rows of centralised training with the same solver,
    on the same batches where there are any. ``max_weight_difference`` is how far the weights are
    from the centralised ones, and ``weight_bound`` how far fixed-point rounding alone can have
    moved one, or None where no bound is known. ``optimum`` is of newton alone.
    """

    centralised: ModelMetrics | None = field(default=None, repr=False)
    optimum: Optimum | None = None
    max_weight_difference: float | None = None
    weight_bound: float | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class TrainingRun(Result):
    """One training of ``taciturn train``.

    ``opened_change`` is the decrease of the training loss in the last pass of ``mutual``, with
    noise, and ``scores_beyond_range`` a lower bound on the number of scores that may lie beyond its
    range; both are None where they are not opened. ``symmetry`` is what Bob's test of the scores of
    all passes came to, where they are exact. ``learns`` and ``asked`` are what two sides between
    machines would have been told and asked before such a training. Records of earlier versions
    lack what has a default.
    """

    data: DataFacts = field(metadata=TRAINED_ON)
    agreement: Agreement = field(metadata=INLINE)
    budget: float | None
    encrypted: bool
    seed: int | None
    permute_labels: bool
    permute_rows: bool = False
    stopped: str | None
    hidden_batches: HiddenBatches | None
    sealed: SharedWeights | None
    metrics: RunMetrics = field(metadata=INLINE)
    comparison: Comparison = field(metadata=INLINE)
    cost: Cost = field(metadata=INLINE)
    ledger: Statement
    preparation: tuple[str, ...] = field(repr=False)
    notes: tuple[str, ...]
    convergence: Convergence = field(
        metadata=inline("row_change", reason="converged_reason", row_change="last_row_change")
    )
    opened_change: float | None = field(default=None, metadata=OMITTED)
    scores_beyond_range: int | None = field(default=None, metadata=OMITTED)
    symmetry: Symmetry | None = field(default=None, metadata=OMITTED)
    learns: Disclosure | None = field(default=None, repr=False, metadata=OMITTED)
    asked: AskedConsent | None = field(default=None, repr=False, metadata=OMITTED)

    @property
    def by_batches(self) -> bool:
        """Whether rows are trained on by batches, in epochs, and not all in each pass."""
        return isinstance(self.agreement.solver, Sgd)

    @property
    def training(self) -> TrainingRun:
        """Itself; an audited run has the training that was audited."""
        return self
