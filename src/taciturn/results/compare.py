"""Mechanisms side by side on the same rows: the model, what Alice can tell of labels, the cost."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Literal

from taciturn.results.estimate import Estimate
from taciturn.results.serialise import OMITTED, Result
from taciturn.results.training import FeatureParty


@dataclass(frozen=True, slots=True, kw_only=True)
class BestAttack:
    """The best attack by the figure of the comparison, beside the best control by the same.

    ``attack`` is None where none of ours applies, and so are its figures. ``leak``: an attack told
    more than every control, by its accuracy or its AUC.
    """

    attack: str | None
    value: float | None
    low: float | None
    high: float | None
    control: str
    known: float
    leak: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class ComparedMechanism:
    """One mechanism: its model on held-out rows, its ledger, the attacks, and what it will cost.

    ``shuffled`` is of a training on labels shuffled beforehand, which only messages can tell, and
    ``real`` of the training itself. ``estimate`` is with the agreed encryption.
    """

    mechanism: str
    epsilon: float | None
    solver: str
    accuracy: float | None
    auc: float | None
    label_epsilon_total: float
    assumption: str
    shuffled: BestAttack
    real: BestAttack
    verdict: str
    estimate: Estimate


@dataclass(frozen=True, slots=True)
class RefusedMechanism:
    """A mechanism that these settings exclude, and why."""

    mechanism: str
    epsilon: float | None
    reason: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Comparison(Result):
    """Mechanisms on the same rows, each trained and attacked without encryption.

    ``ranked_by`` is the figure in which attacks are given: the AUC where one label is rare.
    ``bob_alone_auc`` is that of Bob's columns without Alice's. Of several Alices, the ``parties``,
    the one with most columns attacks.
    """

    dataset: str
    rows_train: int
    rows_test: int
    alice_columns: int
    parties: tuple[FeatureParty, ...] | None = field(default=None, metadata=OMITTED)
    bob_columns: int
    seed: int
    seeds: int
    scheme: str
    key_bits: int
    ranked_by: Literal["accuracy", "AUC"]
    centralised_auc: float | None
    bob_alone_auc: float | None
    compared: tuple[ComparedMechanism, ...]
    refused: tuple[RefusedMechanism, ...]
    audited: str | None = field(default=None, metadata=OMITTED)
    version: str | None = field(default=None, metadata=OMITTED)
    command: str | None = field(default=None, metadata=OMITTED)
