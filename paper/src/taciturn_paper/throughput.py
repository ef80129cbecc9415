"""Rows per second of the protocol without encryption, against plain NumPy on the same batches.

One synthetic table, one epoch, both measured in turn within one run and reported as medians and
their ratio: what the messages, the codec, the fixed-point arithmetic and the ledger cost. The order
of the rows is drawn before either is timed.

Run it with ``python -m taciturn_paper.throughput`` or ``make bench``.
"""

from __future__ import annotations

import resource
import statistics
import time
from collections.abc import Callable
from dataclasses import asdict, dataclass

import numpy as np
from rich.console import Console
from rich.table import Table

from taciturn.arrays import FloatArray
from taciturn.crypto.clear import ClearScheme
from taciturn.data.ids import RowIds
from taciturn.data.label_table import LabelTable
from taciturn.data.tables import FeatureTable
from taciturn.engine.pair import run_pair
from taciturn.families.binomial import sigmoid
from taciturn.numerics.sgd import train_centralised
from taciturn.privacy.ledger import Ledger
from taciturn.privacy.unprotected import Unprotected
from taciturn.protocol.alice import train_revealed as alice
from taciturn.protocol.alice.inputs import AliceInputs
from taciturn.protocol.bob import train_revealed as bob
from taciturn.protocol.bob.inputs import BobInputs
from taciturn.protocol.joint_seed import seed_of
from taciturn.protocol.terms import Terms
from taciturn.rng import KeyedEntropy
from taciturn.settings.agreement import Agreement
from taciturn.settings.schema import Sgd

ROWS, COLUMNS, REPEATS = 1_000_000, 20, 5
BATCH_SIZES = (256, 4096)
LEARNING_RATE = 0.1
SEED = 1


@dataclass(frozen=True, slots=True)
class Throughput:
    """One batch size."""

    batch_size: int
    rows: int
    columns: int
    taciturn_rows_per_second: float
    numpy_rows_per_second: float
    times_numpy: float
    max_weight_difference: float


def synthetic(rows: int, columns: int, entropy: KeyedEntropy) -> tuple[FeatureTable, LabelTable]:
    """Uniform features of unit variance, and labels that a logistic model explains."""
    values = (entropy.uniform((rows, columns)) - 0.5) * np.sqrt(12.0)
    scores = values @ (entropy.uniform((columns,)) - 0.5)
    labels = (entropy.uniform((rows,)) < sigmoid(scores)).astype(np.int8)
    ids = RowIds.numbered(rows)
    names = tuple(f"x{number}" for number in range(columns))
    return FeatureTable(ids, names, values), LabelTable(ids, labels)


def measure(
    rows: int = ROWS, columns: int = COLUMNS, batch_size: int = 4096, repeats: int = REPEATS
) -> Throughput:
    """Times both in turn, ``repeats`` times."""
    entropy = KeyedEntropy.from_seed(SEED)
    features, labels = synthetic(rows, columns, entropy)
    nothing = FeatureTable(features.ids, (), np.empty((rows, 0)))
    agreement = Agreement(
        mechanism="none",
        scheme="clear",
        key_bits=0,
        solver=Sgd(epochs=1, batch_size=batch_size, learning_rate=LEARNING_RATE),
        l2=0.0,
        feature_bits=16,
        residue_bits=20,
    )
    terms, bobs = Terms(agreement, ClearScheme()), entropy.fork("bob")
    order = [batch.rows for batch in terms.plan(seed_of(entropy.fork("alice"), bobs), rows)]

    def jointly() -> FloatArray:
        trained, _ = run_pair(
            alice.train(AliceInputs(features, terms, entropy.fork("alice"))),
            bob.train(BobInputs(nothing, labels, terms, Unprotected(), Ledger(rows, ""), bobs)),
        )
        return trained.weights

    def centrally() -> FloatArray:
        return train_centralised(features.values, labels.values, order, terms.rate, terms.penalty)

    ours, plain = [], []
    for _ in range(repeats):
        ours.append(_timed(jointly))
        plain.append(_timed(centrally))
    seconds, reference = (statistics.median(times) for times in (ours, plain))
    return Throughput(
        batch_size=batch_size,
        rows=rows,
        columns=columns,
        taciturn_rows_per_second=rows / seconds,
        numpy_rows_per_second=rows / reference,
        times_numpy=seconds / reference,
        max_weight_difference=float(np.abs(jointly() - centrally()).max()),
    )


def _timed(work: Callable[[], object]) -> float:
    start = time.perf_counter()
    work()
    return time.perf_counter() - start


def main() -> None:
    """Prints the table."""
    table = Table(title=f"{ROWS:,} rows, {COLUMNS} columns, scheme clear, median of {REPEATS}")
    for heading in ("batch", "taciturn rows/s", "NumPy rows/s", "times NumPy", "weights differ by"):
        table.add_column(heading, justify="right")
    for batch_size in BATCH_SIZES:
        measured = asdict(measure(batch_size=batch_size))
        table.add_row(
            f"{batch_size}",
            f"{measured['taciturn_rows_per_second']:,.0f}",
            f"{measured['numpy_rows_per_second']:,.0f}",
            f"{measured['times_numpy']:.2f}",
            f"{measured['max_weight_difference']:.1e}",
        )
    screen = Console(highlight=False)
    screen.print(table)
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    held = ROWS * COLUMNS * 8 / 2**20
    screen.print(f"peak memory {peak:,.0f} MiB, of which the table itself takes {held:,.0f} MiB")


if __name__ == "__main__":
    main()
