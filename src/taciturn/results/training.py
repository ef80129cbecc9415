"""A training between two simulated parties: what it was, how good the model is, what it cost."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import ClassVar

from taciturn.numerics.regression_metrics import Added, ModelMetrics
from taciturn.numerics.symmetry import Symmetry
from taciturn.privacy.events import Statement
from taciturn.results.serialise import OMITTED, Result


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
class TrainingRun(Result):
    """One training of ``taciturn train``.

    ``centralised`` has the figures of centralised training with the same solver, on the same
    batches where there are any, and ``bob_alone`` those of Bob's columns without Alice's, both on
    held-out rows; ``partner_adds`` is what the joint model's AUC there, or the deviance it
    explains, has beyond the latter. ``family`` is None for ``binomial``.
    ``converged`` is None where nobody knows, and ``converged_reason`` says why; ``last_change`` is
    by how much the last pass lowered the training loss, and ``last_row_change`` the largest change
    of a training row's probability in one of the last two. ``optimum`` is of newton alone.
    ``centralised``, ``optimum`` and ``max_weight_difference`` are None where they were not wanted.
    ``max_weight_difference`` is how far the weights are from the centralised ones, and
    ``weight_bound`` how far rounding alone can have moved one, or None where no bound is known.
    ``opened_change`` is the decrease of the training loss in the last pass of ``mutual``, with
    noise, and ``scores_beyond_range`` a lower bound on the number of scores that may lie beyond its
    range; both are None where they are not opened. ``symmetry`` is what Bob's test of the scores of
    all passes came to, where they are exact. ``parties`` are the Alices, where there are several,
    among whom ``alice_columns`` are divided. Records of earlier versions lack what has a default.
    """

    dataset: str
    mechanism: str
    epsilon: float | None
    noise: str | None
    variant: str | None
    b1: float | None
    b2: float | None
    bob_update: str | None
    base_mechanism: str | None
    mechanism_settings: Mapping[str, object] | None = field(default=None, metadata=OMITTED)
    budget: float | None
    scheme: str
    key_bits: int
    encrypted: bool
    seed: int | None
    permute_labels: bool
    permute_rows: bool = False
    solver: str
    passes: int | None
    epochs: int | None
    batch_size: int | None
    learning_rate: float | None
    l2: float
    family: str | None = field(default=None, metadata=OMITTED)
    class_weight: tuple[float, float] | None
    iterations: int
    stopped: str | None
    hidden_batches: HiddenBatches | None
    sealed: SharedWeights | None
    alice_columns: int
    parties: tuple[FeatureParty, ...] | None = field(default=None, metadata=OMITTED)
    bob_columns: int
    intercept: bool
    rows_train: int
    rows_test: int
    train: ModelMetrics = field(repr=False)
    test: ModelMetrics = field(repr=False)
    centralised: ModelMetrics | None = field(repr=False)
    optimum: Optimum | None
    max_weight_difference: float | None
    weight_bound: float | None
    seconds: float
    bytes_to_alice: int
    bytes_to_bob: int
    ledger: Statement
    preparation: tuple[str, ...] = field(repr=False)
    notes: tuple[str, ...]
    bob_alone: ModelMetrics | None = field(default=None, repr=False)
    partner_adds: Added | None = None
    converged: bool | None = None
    converged_reason: str | None = None
    diverged: bool = False
    last_change: float | None = None
    last_row_change: float | None = field(default=None, metadata=OMITTED)
    opened_change: float | None = field(default=None, metadata=OMITTED)
    scores_beyond_range: int | None = field(default=None, metadata=OMITTED)
    symmetry: Symmetry | None = field(default=None, metadata=OMITTED)

    @property
    def training(self) -> TrainingRun:
        """Itself; an audited run has the training that was audited."""
        return self
