"""What a simulated training gave: its result, and what only a simulation has beside it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from statistics import fmean

from taciturn.arrays import FloatArray, IndexArray
from taciturn.data.split import VerticalData
from taciturn.engine.exposure import OpenedScores, sums_alone
from taciturn.engine.transcript import Transcript
from taciturn.errors import DivergenceError
from taciturn.faces import Hint
from taciturn.numerics.convergence import Convergence
from taciturn.numerics.metrics import AddedAuc, Metrics
from taciturn.numerics.symmetry import Symmetry
from taciturn.privacy.batch_response import BatchDesign, acceptance, conditioning
from taciturn.privacy.registry import mechanism, mechanism_class
from taciturn.privacy.statement import ExposedColumns, Statement
from taciturn.protocol.agree import unused
from taciturn.protocol.terms import Terms
from taciturn.results.training import FeatureParty, HiddenBatches, SharedWeights, TrainingRun
from taciturn.settings.agreement import Agreement
from taciturn.settings.schema import Settings
from taciturn.simulation.reference import Comparison


@dataclass(frozen=True, slots=True)
class Outcome:
    """One run: its result, both tables, both parties' weights, and what was said.

    ``noise_keys`` has, of each Alice, where her columns stand and the key of her scores' noise.
    """

    result: TrainingRun
    terms: Terms
    data: VerticalData = field(repr=False)
    alice_weights: FloatArray = field(repr=False)
    bob_weights: FloatArray = field(repr=False)
    noise_keys: tuple[tuple[slice, bytes], ...] = field(repr=False)
    batches: tuple[IndexArray, ...] = field(default=(), repr=False)
    transcript: Transcript | None = field(default=None, repr=False)

    def with_transcript(self, transcript: Transcript) -> Outcome:
        """The same outcome with its conversation."""
        return replace(self, transcript=transcript)


@dataclass(frozen=True, slots=True, kw_only=True)
class Measured:
    """What was measured in a run, and cannot be known before it."""

    train: Metrics
    test: Metrics
    comparison: Comparison
    bob_alone: Metrics
    partner_adds: AddedAuc
    arrival: Convergence
    iterations: int
    stopped: str | None
    hidden_batches: HiddenBatches | None
    sealed: SharedWeights | None
    seconds: float
    bytes_to_alice: int
    bytes_to_bob: int
    ledger: Statement
    ledger_notes: tuple[str, ...] = ()
    symmetry: Symmetry | None = None


def training_run(
    settings: Settings, terms: Terms, data: VerticalData, measured: Measured
) -> TrainingRun:
    """The result of a run: what was asked for and agreed on, and what came of it."""
    agreement = terms.agreement
    return TrainingRun(
        dataset=settings.source,
        mechanism=agreement.mechanism,
        epsilon=agreement.epsilon,
        noise=agreement.noise,
        variant=agreement.variant,
        b1=agreement.b1,
        b2=agreement.b2,
        bob_update=agreement.bob_update,
        over=agreement.over,
        budget=settings.budget,
        scheme=agreement.scheme,
        key_bits=agreement.key_bits,
        encrypted=terms.scheme.protects,
        seed=settings.seed,
        permute_labels=settings.permute_labels,
        permute_rows=settings.permute_rows,
        solver=agreement.solver,
        passes=agreement.epochs if terms.whole_table else None,
        epochs=None if terms.whole_table else agreement.epochs,
        batch_size=None if terms.whole_table else agreement.batch_size,
        learning_rate=None if terms.whole_table else agreement.learning_rate,
        l2=agreement.l2,
        class_weight=agreement.class_weight,
        iterations=measured.iterations,
        stopped=measured.stopped,
        hidden_batches=measured.hidden_batches,
        sealed=measured.sealed,
        alice_columns=len(data.alice_train.columns),
        parties=feature_parties(data),
        bob_columns=len(data.bob_train.columns) - int(data.intercept),
        intercept=data.intercept,
        rows_train=data.labels_train.rows,
        rows_test=data.labels_test.rows if data.held_out else 0,
        train=measured.train,
        test=measured.test,
        centralised=measured.comparison.centralised,
        bob_alone=measured.bob_alone,
        partner_adds=measured.partner_adds,
        converged=measured.arrival.converged,
        converged_reason=measured.arrival.reason,
        diverged=bool(measured.arrival.diverged),
        last_change=measured.arrival.last_change,
        symmetry=measured.symmetry,
        optimum=measured.comparison.optimum,
        max_weight_difference=measured.comparison.max_weight_difference,
        weight_bound=measured.comparison.weight_bound,
        seconds=measured.seconds,
        bytes_to_alice=measured.bytes_to_alice,
        bytes_to_bob=measured.bytes_to_bob,
        ledger=replace(measured.ledger, columns=_exposed(terms, data)),
        preparation=tuple(data.preparation.describe()),
        notes=(
            *data.notes,
            *unused(settings),
            *_weighing(agreement),
            *mechanism(agreement).notes(),
            *sums_alone(terms),
            *_unhidden(terms, measured),
            *measured.ledger_notes,
        ),
    )


def feature_parties(data: VerticalData) -> tuple[FeatureParty, ...] | None:
    """Several Alices with their columns, for a result; None where there is one."""
    pairs = ((name, place.stop - place.start) for name, place in data.alices)
    return tuple(FeatureParty(*pair) for pair in pairs) or None


def require_arrived(run: TrainingRun) -> None:
    """Refuses a model that is worse than none, unless noise has made it so."""
    if not run.diverged or not mechanism_class(run.mechanism).lossless:
        return
    out = "standardise or clip the columns"
    if run.solver == "sgd":
        out += ", lower {learning_rate}, or use {solver}"
    raise DivergenceError(
        f"the training diverged: its log loss on the training rows is {run.train.loss:.4g}, where "
        "0.6931 is that of saying one half of every row",
        where="the training rows",
        hint=Hint(out, solver="newton"),
    )


def hidden_batches(
    design: BatchDesign, columns: int, batches: Sequence[IndexArray], redraws: int
) -> HiddenBatches:
    """Sums a training's draws up."""
    sizes = [len(rows) for rows in batches]
    return HiddenBatches(
        epsilon=design.epsilon,
        subset_size=design.subset,
        marked=design.marked,
        l_rr=design.asked_rows,
        expected_batch=design.true_rows,
        mean_batch=fmean(sizes),
        empty_batches=sizes.count(0),
        rejected=1.0 - acceptance(design, columns),
        redraws=redraws,
        conditioning=conditioning(design, columns),
    )


def _exposed(terms: Terms, data: VerticalData) -> ExposedColumns:
    held_out = data.labels_test.rows if data.held_out else 0
    opened = OpenedScores.of(terms, data.labels_train.rows, held_out)
    return ExposedColumns(opened.per_row, opened.in_all)


def _unhidden(terms: Terms, measured: Measured) -> tuple[str, ...]:
    """Said where the ledger rests on an encryption that this run did not have."""
    if measured.sealed is None or terms.scheme.protects:
        return ()
    return (f"the ledger is that of a scheme that encrypts: {terms.scheme.name} hides nothing",)


def _weighing(agreement: Agreement) -> list[str]:
    if agreement.class_weight is None:
        return []
    zero, one = agreement.class_weight
    known = f"a row of label 0 counts {zero:g}, one of label 1 {one:g}; both parties know it"
    if not (zero and one):
        return [known, "probabilities are none: the model has learnt from one class only"]
    edge = zero / (zero + one)
    return [
        known,
        "probabilities are corrected for the class weights, which put the edge between the classes "
        f"at a probability of {edge:.4g}",
    ]
