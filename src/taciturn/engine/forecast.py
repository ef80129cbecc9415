"""How long a training will take and how much will cross, from a few iterations of its own shape."""

from __future__ import annotations

import statistics
from collections import Counter
from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from taciturn.crypto.base import DEFAULT_TABLE_MEMORY
from taciturn.data.tables import FeatureTable
from taciturn.engine.forecast_table import forecast_table
from taciturn.engine.trial import TRIALS, KeyPair
from taciturn.numerics.fixedpoint import magnitude_bits
from taciturn.protocol.terms import Terms
from taciturn.results.estimate import Estimate
from taciturn.rng import KEY_BYTES, KeyedEntropy

# What an iteration costs besides its encryption: messages, codec, ledger, the model's arithmetic.
OVERHEAD_SECONDS = 0.0003
# Frames of an iteration besides ciphertexts and numbers: heads, counts, the event's name.
OVERHEAD_BYTES = 40
# What several Alices say of themselves, each way; what all are told of each of them; and what each
# says to Bob of each, her agreement's line.
MEETING_BYTES, ROSTER_BYTES, PIN_BYTES = 245, 600, 85


def forecast(
    terms: Terms,
    *tables: FeatureTable,
    bob_columns: int = 1,
    table_memory: int = DEFAULT_TABLE_MEMORY,
) -> Estimate:
    """Runs a few iterations of the shape that terms and Alice's table give.

    All parties are in one process: what several Alices take, and what crosses, adds up. Those with
    as many columns are taken to be alike.

    Args:
        terms: The agreement in use.
        tables: The training rows of Alice, or of each Alice.
        bob_columns: How many columns Bob has, the intercept among them: newton's search has them.
        table_memory: Bytes that newton's table may take in the scheme's own form.
    """
    estimate = (
        forecast_table(terms, tables, bob_columns, table_memory)
        if terms.whole_table
        else _of_batches(terms, tables)
    )
    alices = len(tables)
    if alices == 1:
        return estimate
    return replace(
        estimate,
        bytes_to_alice=estimate.bytes_to_alice + alices * (MEETING_BYTES + alices * ROSTER_BYTES),
        bytes_to_bob=estimate.bytes_to_bob + alices * (MEETING_BYTES + alices * PIN_BYTES),
    )


def _of_batches(terms: Terms, tables: Sequence[FeatureTable]) -> Estimate:
    """What all Alices take, and Bob for them."""
    alike = Counter(len(table.columns) for table in tables)
    by_width = {len(table.columns): table for table in tables}
    parts = [(_batches(terms, by_width[width]), alike[width]) for width in alike]
    return Estimate(
        iterations=parts[0][0].iterations,
        seconds=sum(count * part.seconds for part, count in parts),
        bytes_to_alice=sum(count * part.bytes_to_alice for part, count in parts),
        bytes_to_bob=sum(count * part.bytes_to_bob for part, count in parts),
    )


def _batches(terms: Terms, features: FeatureTable) -> Estimate:
    """What one Alice takes, and Bob for her."""
    coins = KeyedEntropy.from_system()
    iterations = terms.plan(bytes(KEY_BYTES), features.rows).iterations
    method = terms.mechanism
    if not method.encrypts:
        return _in_clear(terms, iterations)
    capacity = terms.capacity(magnitude_bits(features.largest), features.rows)
    pair = KeyPair.of(terms.scheme, terms.agreement.key_bits, capacity, coins)
    rows = features.values[: terms.usual_product]
    matrix = terms.feature_grid.rounded(rows).T
    vector = np.full(len(rows), 1 << (terms.agreement.residue_bits - 1), dtype=np.int64)
    trials = [pair.trial(matrix, vector, coins) for _ in range(TRIALS)]
    masked = len(features.columns) * (((pair.public.modulus - 1).bit_length() + 7) // 8)
    seconds = statistics.median(trial.seconds + trial.ahead for trial in trials)
    return Estimate(
        iterations=iterations,
        seconds=iterations * (seconds + OVERHEAD_SECONDS),
        bytes_to_alice=iterations * (trials[0].bytes_to_alice + masked + 2 * OVERHEAD_BYTES)
        + len(pair.public.to_bytes()),
        bytes_to_bob=iterations * (trials[0].bytes_to_bob + 8 * len(rows) + 2 * OVERHEAD_BYTES),
    )


def _in_clear(terms: Terms, iterations: int) -> Estimate:
    """Scores up and residues down, nothing encrypted."""
    rows = terms.agreement.batch_size
    narrow = terms.agreement.noise != "continuous"
    return Estimate(
        iterations=iterations,
        seconds=iterations * OVERHEAD_SECONDS,
        bytes_to_alice=iterations * ((4 if narrow else 8) * rows + 2 * OVERHEAD_BYTES),
        bytes_to_bob=iterations * (8 * rows + OVERHEAD_BYTES),
    )
