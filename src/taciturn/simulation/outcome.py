"""What a simulated training gave, and its JSON record."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass, field, replace
from statistics import fmean
from typing import Any

from taciturn.arrays import FloatArray, IndexArray
from taciturn.data.split import VerticalData
from taciturn.engine.transcript import Transcript
from taciturn.numerics.metrics import Metrics
from taciturn.privacy.batch_response import BatchDesign, acceptance, conditioning
from taciturn.privacy.ledger import Statement
from taciturn.privacy.registry import mechanism
from taciturn.protocol.agree import unused
from taciturn.protocol.terms import Terms
from taciturn.settings.agreement import Agreement
from taciturn.settings.schema import Settings
from taciturn.simulation.reference import Comparison


@dataclass(frozen=True, slots=True)
class Traffic:
    """Bytes that crossed during training, handshake included."""

    to_alice: int
    to_bob: int


@dataclass(frozen=True, slots=True)
class HiddenBatches:
    """How ``hybrid``'s draws came out.

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

    @classmethod
    def of(
        cls, design: BatchDesign, columns: int, batches: Sequence[IndexArray], redraws: int
    ) -> HiddenBatches:
        """Sums a training's draws up."""
        sizes = [len(rows) for rows in batches]
        return cls(
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


@dataclass(frozen=True, slots=True)
class SharedWeights:
    """How ``sealed``'s numbers lie: digits, the bound on scores that fit, what Bob suspected.

    ``suspected_wraps`` counts scores in the outer half of the range; Bob alone knows it.
    """

    modulus_bits: int
    feature_bits: int
    residue_bits: int
    score_bound: float
    suspected_wraps: int
    reveal: bool
    dither: float
    fresh_keys: bool


@dataclass(frozen=True, slots=True)
class Outcome:
    """One run: the two shares of the model, how good it is, and what it cost."""

    settings: Settings
    terms: Terms
    data: VerticalData = field(repr=False)
    alice_weights: FloatArray = field(repr=False)
    bob_weights: FloatArray = field(repr=False)
    train: Metrics
    test: Metrics
    comparison: Comparison
    iterations: int
    stopped: str | None
    hidden_batches: HiddenBatches | None
    sealed: SharedWeights | None
    seconds: float
    traffic: Traffic
    ledger: Statement
    batches: tuple[IndexArray, ...] = field(default=(), repr=False)
    transcript: Transcript | None = field(default=None, repr=False)

    def with_transcript(self, transcript: Transcript) -> Outcome:
        """The same outcome with its conversation."""
        return replace(self, transcript=transcript)

    def to_dict(self) -> dict[str, Any]:
        """The record that scripts read; its keys are a contract."""
        agreement = self.terms.agreement
        return {
            "dataset": self.settings.source,
            "mechanism": agreement.mechanism,
            "epsilon": agreement.epsilon,
            "noise": agreement.noise,
            "variant": agreement.variant,
            "b1": agreement.b1,
            "b2": agreement.b2,
            "bob_update": agreement.bob_update,
            "over": agreement.over,
            "budget": self.settings.budget,
            "scheme": agreement.scheme,
            "key_bits": agreement.key_bits,
            "encrypted": self.terms.scheme.protects,
            "seed": self.settings.seed,
            "permute_labels": self.settings.permute_labels,
            "epochs": agreement.epochs,
            "batch_size": agreement.batch_size,
            "learning_rate": agreement.learning_rate,
            "class_weight": agreement.class_weight and list(agreement.class_weight),
            "iterations": self.iterations,
            "stopped": self.stopped,
            "hidden_batches": None if self.hidden_batches is None else asdict(self.hidden_batches),
            "sealed": None if self.sealed is None else asdict(self.sealed),
            "alice_columns": len(self.data.alice_train.columns),
            "bob_columns": len(self.data.bob_train.columns) - int(self.data.intercept),
            "intercept": self.data.intercept,
            "rows_train": self.data.labels_train.rows,
            "rows_test": self.data.labels_test.rows if self.data.held_out else 0,
            "train": self.train.to_dict(),
            "test": self.test.to_dict(),
            "centralised": self.comparison.centralised.to_dict(),
            "max_weight_difference": self.comparison.max_weight_difference,
            "weight_bound": self.comparison.weight_bound,
            "seconds": self.seconds,
            "bytes_to_alice": self.traffic.to_alice,
            "bytes_to_bob": self.traffic.to_bob,
            "ledger": self.ledger.to_dict(),
            "preparation": self.data.preparation.describe(),
            "notes": [
                *self.data.notes,
                *unused(self.settings),
                *_weighing(agreement),
                *mechanism(agreement).notes(),
                *self._unhidden(),
            ],
        }

    def _unhidden(self) -> tuple[str, ...]:
        """Said where the ledger rests on an encryption that this run did not have."""
        if self.sealed is None or self.terms.scheme.protects:
            return ()
        name = self.terms.scheme.name
        return (f"the ledger is that of a scheme that encrypts: {name} hides nothing",)


def _weighing(agreement: Agreement) -> list[str]:
    if agreement.class_weight is None:
        return []
    zero, one = agreement.class_weight
    return [f"a row of label 0 counts {zero:g}, one of label 1 {one:g}; both parties know it"]
