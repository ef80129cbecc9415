"""How long a training will take and how much will cross, from a few iterations of its own shape."""

from __future__ import annotations

import statistics
import time
from collections import Counter
from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from taciturn.arrays import IntArray
from taciturn.crypto.base import DEFAULT_TABLE_MEMORY
from taciturn.data.tables import FeatureTable
from taciturn.engine.forecast_table import forecast_table
from taciturn.engine.trial import TRIALS, KeyPair, SlotsTrial, Trial
from taciturn.numerics.fixedpoint import magnitude_bits
from taciturn.protocol.look_ahead import Turns
from taciturn.protocol.mutual import Columns, Plan
from taciturn.protocol.scales import Scales
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
        else _of_batches(terms, tables, bob_columns)
    )
    alices = len(tables)
    if alices == 1:
        return estimate
    return replace(
        estimate,
        bytes_to_alice=estimate.bytes_to_alice + alices * (MEETING_BYTES + alices * ROSTER_BYTES),
        bytes_to_bob=estimate.bytes_to_bob + alices * (MEETING_BYTES + alices * PIN_BYTES),
    )


def _of_batches(terms: Terms, tables: Sequence[FeatureTable], bob_columns: int) -> Estimate:
    """What all Alices take, and Bob for them."""
    alike = Counter(len(table.columns) for table in tables)
    by_width = {len(table.columns): table for table in tables}
    parts = [(_batches(terms, by_width[width], bob_columns), alike[width]) for width in alike]
    return Estimate(
        iterations=parts[0][0].iterations,
        seconds=sum(count * part.seconds for part, count in parts),
        bytes_to_alice=sum(count * part.bytes_to_alice for part, count in parts),
        bytes_to_bob=sum(count * part.bytes_to_bob for part, count in parts),
    )


def _batches(terms: Terms, features: FeatureTable, bob_columns: int) -> Estimate:
    """What one Alice takes, and Bob for her."""
    coins = KeyedEntropy.from_system()
    iterations = terms.plan(bytes(KEY_BYTES), features.rows).iterations
    method = terms.mechanism
    if not method.encrypts:
        return _in_clear(terms, iterations)
    if method.shares_scores:
        return _mutual(terms, features, bob_columns, iterations, coins)
    if method.shares_weights:
        return _sealed(terms, features, iterations, coins)
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


def _sealed(terms: Terms, features: FeatureTable, iterations: int, coins: KeyedEntropy) -> Estimate:
    """One product an iteration, or two: scores of the rows, and the step of the columns."""
    agreed, size = terms.agreement, magnitude_bits(features.largest)
    scales = Scales.of(agreed, features.rows, size)
    turns = Turns.of(terms, scales, features.rows, len(features.columns), size)
    pair = KeyPair.of(terms.scheme, agreed.key_bits, turns.ring, coins)
    rows = scales.feature_grid.rounded(features.values[: agreed.batch_size])
    matrices = _step_matrices(turns, rows)
    trials = [[_trial(pair, matrix, coins) for matrix in matrices] for _ in range(TRIALS)]
    seconds = statistics.median(sum(t.seconds + t.ahead for t in both) for both in trials)
    key = len(pair.public.to_bytes())
    keys = len(matrices) * iterations if agreed.fresh_keys else 1
    if agreed.fresh_keys:
        start = time.perf_counter()
        KeyPair.of(terms.scheme, agreed.key_bits, turns.ring, coins)
        seconds += len(matrices) * (time.perf_counter() - start)
    to_alice, to_bob = (
        sum(getattr(trial, name) for trial in trials[0])
        for name in ("bytes_to_alice", "bytes_to_bob")
    )
    return Estimate(
        iterations=iterations,
        seconds=iterations * (seconds + len(matrices) * OVERHEAD_SECONDS),
        bytes_to_alice=iterations * (to_alice + len(matrices) * OVERHEAD_BYTES) + keys * key,
        bytes_to_bob=iterations * (to_bob + len(matrices) * OVERHEAD_BYTES),
    )


def _mutual(
    terms: Terms, features: FeatureTable, bob_columns: int, iterations: int, coins: KeyedEntropy
) -> Estimate:
    """The waves of a batch, and a step with each side's columns; Bob's are taken to be like hers.

    Bob has few columns or many: what they take hardly depends on it, but for having none.
    """
    rows, size = features.rows, magnitude_bits(features.largest)
    hers, his = Columns(len(features.columns), size), Columns(bob_columns, size)
    plan, agreed = Plan.of(terms, rows, hers, his), terms.agreement
    pair = KeyPair.of(terms.scheme, agreed.key_bits, plan.alice.ring, coins)
    batch = plan.scales.feature_grid.rounded(features.values[: agreed.batch_size])
    waves = SlotsTrial.of(plan.slots, agreed.key_bits, len(batch), plan.sigmoids.entries, coins)
    steps = [
        [_trial(pair, matrix, coins) for matrix in _step_matrices(plan.alice, batch)]
        for _ in range(TRIALS)
    ]
    halves, stepped = 2 if bob_columns else 1, steps[0]
    seconds = waves.seconds + halves * statistics.median(
        sum(trial.seconds + trial.ahead for trial in trials) for trials in steps
    )
    messages = waves.messages + halves * len(stepped)
    # In the second half the sides change places.
    there, back = (
        sum(getattr(trial, name) for trial in stepped)
        for name in ("bytes_to_alice", "bytes_to_bob")
    )
    key = len(pair.public.to_bytes())
    beside = messages * OVERHEAD_BYTES
    # How often each is offered, and how many each vector takes then.
    times, each_time = (iterations, len(stepped)) if agreed.fresh_keys else (1, 1)
    if agreed.fresh_keys:
        start = time.perf_counter()
        KeyPair.of(terms.scheme, agreed.key_bits, plan.alice.ring, coins)
        seconds += (1 + halves * each_time) * (time.perf_counter() - start)
    return Estimate(
        iterations=iterations,
        seconds=iterations * (seconds + messages * OVERHEAD_SECONDS),
        bytes_to_alice=iterations * (waves.bytes_to_alice + there + (halves - 1) * back + beside)
        + times * (waves.key_bytes + each_time * key),
        bytes_to_bob=iterations * (waves.bytes_to_bob + back + (halves - 1) * there + beside)
        + times * (halves - 1) * each_time * key,
    )


def _trial(pair: KeyPair, matrix: IntArray, coins: KeyedEntropy) -> Trial:
    return pair.trial(matrix, np.ones(matrix.shape[1], dtype=np.int64), coins)


def _step_matrices(turns: Turns, rows: IntArray) -> list[IntArray]:
    """What a step, and the scores after it, are products of."""
    return [turns.matrix(rows, rows)] if turns.ahead else [rows, rows.T]


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
