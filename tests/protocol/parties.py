"""Small tables and both programs on them, and a way to drive one program by hand."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Generic, TypeVar

import numpy as np

from taciturn.arrays import FloatArray, IndexArray
from taciturn.crypto.base import Scheme
from taciturn.crypto.clear import ClearScheme
from taciturn.data.label_table import LabelTable
from taciturn.data.tables import FeatureTable
from taciturn.engine.driver import Driver
from taciturn.numerics.fixedpoint import FixedPoint
from taciturn.numerics.logistic import Penalty
from taciturn.numerics.sgd import LearningRate, train_centralised
from taciturn.privacy.base import Mechanism
from taciturn.privacy.ledger import Ledger
from taciturn.privacy.registry import mechanism as mechanism_of
from taciturn.protocol.alice.inputs import AliceInputs
from taciturn.protocol.alice.party import TRAININGS as ALICES
from taciturn.protocol.batches import BatchPlan
from taciturn.protocol.bob.inputs import BobInputs
from taciturn.protocol.bob.party import TRAININGS as BOBS
from taciturn.protocol.codec import decode, encode
from taciturn.protocol.joint_seed import seed_of
from taciturn.protocol.messages import Message
from taciturn.protocol.outcome import BobTrained, Trained
from taciturn.protocol.steps import Program
from taciturn.protocol.terms import Terms
from taciturn.rng import KeyedEntropy
from taciturn.settings.agreement import Agreement
from taciturn.settings.schema import Newton, Sgd

R = TypeVar("R")

ALICE = KeyedEntropy.from_seed(101)
BOB = KeyedEntropy.from_seed(203)
NOISE_KEY = bytes(range(32))
NOISE = 2.0**-12
"""The largest noise on a score that Bob sees after training."""
CLEAR = ClearScheme()


def agreement(**changes: Any) -> Agreement:
    """An agreement of a test; ``epochs`` are the rounds of either solver."""
    base = {
        "mechanism": "none",
        "scheme": "clear",
        "key_bits": 0,
        "epochs": 2,
        "batch_size": 4,
        "learning_rate": 0.25,
        "schedule": "constant",
        "decay": 0.0,
        "l1": 0.0,
        "l2": 0.0,
        "feature_bits": 16,
        "residue_bits": 20,
    }
    values = {**base, **changes}
    if values.get("solver") == Newton.name:
        passes = values["epochs"]
        values = {key: value for key, value in values.items() if key not in Sgd.model_fields}
        values["passes"] = passes
    return Agreement.from_mapping(values)


@dataclass(frozen=True)
class Tables:
    """One table, its first columns at Alice and the rest at Bob; an intercept stands last."""

    alice: FeatureTable
    bob: FeatureTable
    labels: LabelTable
    free: int = 0

    @classmethod
    def make(
        cls, *, rows: int = 18, alice: int = 4, bob: int = 0, intercept: bool = False, seed: int = 7
    ) -> Tables:
        entropy = KeyedEntropy.from_seed(seed)
        values = 4.0 * entropy.fork("features").uniform((rows, alice + bob)) - 2.0
        truth = values @ np.linspace(-2.0, 2.0, alice + bob) + entropy.fork("noise").uniform(
            (rows,)
        )
        his = FeatureTable.from_data(values[:, alice:], columns=[f"b{j}" for j in range(bob)])
        return cls(
            FeatureTable.from_data(values[:, :alice]),
            his.with_intercept() if intercept else his,
            LabelTable.from_data((truth > 0.5).astype(np.int8)),
            int(intercept),
        )

    @property
    def joined(self) -> FloatArray:
        return np.hstack([self.alice.values, self.bob.values])

    def agreed(self, terms: Agreement) -> Agreement:
        """The agreement of parties with these tables, which says whether there is an intercept."""
        return terms.model_copy(update={"intercept": bool(self.free)})


def alice_program(tables: Tables, terms: Agreement, scheme: Scheme = CLEAR) -> Program[Trained]:
    """Her side of the conversation that the agreement's mechanism has."""
    agreed = Terms(tables.agreed(terms), scheme)
    return ALICES[agreed.conversation](AliceInputs(tables.alice, agreed, ALICE))


def bob_program(
    tables: Tables,
    terms: Agreement,
    scheme: Scheme = CLEAR,
    *,
    mechanism: Mechanism | None = None,
    ledger: Ledger | None = None,
    entropy: KeyedEntropy = BOB,
) -> Program[BobTrained]:
    """His side of it."""
    method = mechanism or mechanism_of(terms)
    charged = ledger or Ledger(tables.labels.rows, method.assumption)
    agreed = Terms(tables.agreed(terms), scheme)
    inputs = BobInputs(tables.bob, tables.labels, agreed, method, charged, entropy)
    return BOBS[agreed.conversation](inputs)


def plan_of(tables: Tables, terms: Agreement) -> BatchPlan:
    return BatchPlan(
        seed_of(ALICE, BOB), tables.labels.rows, terms.sgd.batch_size, terms.sgd.epochs
    )


def centralised(
    tables: Tables, terms: Agreement, batches: Sequence[IndexArray] | None = None
) -> FloatArray:
    """The oracle: the same batches, in the open."""
    return train_centralised(
        tables.joined,
        tables.labels.values,
        [batch.rows for batch in plan_of(tables, terms)] if batches is None else batches,
        LearningRate(terms.sgd.learning_rate, terms.sgd.schedule, terms.sgd.decay),
        Penalty(terms.sgd.l1, terms.l2),
        tables.free,
    )


def rounding_tolerance(tables: Tables, terms: Agreement) -> float:
    """How far rounding to the grid can move a weight; asserts what the bound rests on.

    Each step errs, in each of Alice's columns, by at most ``e = max|x - x'| + 2^-(fr+1) max|x'|``
    (residues lie in ±1; x' is the rounded feature). Her rounded scores move residues by at most
    ``2^-(fr+3)``, since the sigmoid's slope is at most 1/4, and so the step by that much of the
    longest row. A gradient step of rate ``lr`` on the logistic loss with an L2 penalty does not
    expand distances while ``lr (max|row|^2 / 4 + l2) <= 2``, so the Euclidean distance is at most
    ``sum(lr) (sqrt(d_A) e + 2^-(fr+3) max|row|)``. Sums of floats add a hair.
    """
    values = tables.alice.values
    grid = FixedPoint(terms.feature_bits)
    rounded = grid.decode(grid.encode(values, 20))
    error = (
        np.abs(values - rounded).max() + 2.0 ** -(terms.residue_bits + 1) * np.abs(rounded).max()
    )
    longest = float(np.square(tables.joined).sum(axis=1).max())
    steepest = longest / 4 + terms.l2
    assert terms.sgd.learning_rate * steepest <= 2
    rate = LearningRate(terms.sgd.learning_rate, terms.sgd.schedule, terms.sgd.decay)
    steps = sum(rate.at(number) for number in range(plan_of(tables, terms).iterations))
    from_scores = 2.0 ** -(terms.residue_bits + 3) * np.sqrt(longest)
    return float(steps * (np.sqrt(values.shape[1]) * error + from_scores) + 1e-13)


class ByHand(Generic[R]):
    """One program, fed crafted messages; what it says is kept."""

    def __init__(self, driver_role: Any, program: Program[R]) -> None:
        self.frames: list[bytes] = []
        self.driver: Driver[R] = Driver(driver_role, program, self.frames.append)
        self.driver.start()

    def feed(self, message: Message) -> None:
        self.driver.feed(encode(message))

    @property
    def said(self) -> list[Message]:
        return [decode(frame) for frame in self.frames]


def same(left: object, right: object) -> bool:
    """Equality of dataclasses whose fields may be arrays; NaN never occurs."""
    if isinstance(left, np.ndarray) or isinstance(right, np.ndarray):
        return (
            isinstance(left, np.ndarray)
            and isinstance(right, np.ndarray)
            and left.dtype == right.dtype
            and left.shape == right.shape
            and left.tobytes() == right.tobytes()
        )
    if isinstance(left, tuple) and isinstance(right, tuple):
        return len(left) == len(right) and all(map(same, left, right))
    if type(left) is not type(right):
        return False
    names = getattr(left, "__dataclass_fields__", None)
    if names is None:
        return left == right
    return all(same(getattr(left, name), getattr(right, name)) for name in names)
