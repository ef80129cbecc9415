"""What a simulated training gave, and its JSON record."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Any

from tacit.arrays import FloatArray
from tacit.config import Settings
from tacit.data.split import VerticalData
from tacit.numerics.metrics import Metrics
from tacit.privacy.ledger import Statement
from tacit.protocol.terms import Terms
from tacit.runtime.transcript import Transcript
from tacit.simulation.reference import Comparison


@dataclass(frozen=True, slots=True)
class Traffic:
    """Bytes that crossed during training, handshake included."""

    to_alice: int
    to_bob: int


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
    seconds: float
    traffic: Traffic
    ledger: Statement
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
            "scheme": agreement.scheme,
            "key_bits": agreement.key_bits,
            "encrypted": self.terms.scheme.protects,
            "seed": self.settings.seed,
            "permute_labels": self.settings.permute_labels,
            "epochs": agreement.epochs,
            "batch_size": agreement.batch_size,
            "learning_rate": agreement.learning_rate,
            "iterations": self.iterations,
            "alice_columns": len(self.data.alice_train.columns),
            "bob_columns": len(self.data.bob_train.columns) - int(self.data.intercept),
            "intercept": self.data.intercept,
            "rows_train": self.data.labels_train.rows,
            "rows_test": self.data.labels_test.rows,
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
            "notes": list(self.data.notes),
        }
