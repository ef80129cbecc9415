"""Before any training: how well Bob will be able to reconstruct Alice's columns.

A small training on coin labels by the real programs, of her own rows or random ones (the rehearsal
of ``preflight``), and the column attacks on what it opened to Bob.

**Guarantee.** A level ``leaks`` was seen in the rehearsal: an attack recovered more than the
controls. The other level says only that none of these attacks did.

**Assumes.** The rows are like those that will be trained on, and Bob's like the ones he had here.
"""

from __future__ import annotations

import numpy as np

from taciturn.engine.callbacks import Announce, silent
from taciturn.errors import advised
from taciturn.results.check import CLEAR, LEAKS
from taciturn.results.columns import ColumnRehearsal, ExposedColumn
from taciturn.rng import KeyedEntropy
from taciturn_audit.bob_seat import bob_view, examine_columns, known_rows_of, lacks
from taciturn_audit.column_attacks.anchored import AnchoredAttack
from taciturn_audit.column_attacks.base import KnownRows
from taciturn_audit.column_attacks.integer_columns import IntegerColumnsAttack
from taciturn_audit.column_attacks.lattice import LatticeAttack
from taciturn_audit.columns import Truth, settled
from taciturn_audit.rehearsal import Rehearsal
from taciturn_audit.views.bob_view import BobView

_MOST_NAMED = 5
_SEED = 21
_NOTHING_OPENED = (
    "the training opens no score of a training row to Bob; held-out rows, and each joint "
    "prediction, open one of each row, with noise of 2^-12",
)
# A column of which less is explained is not called exposed.
_EXPOSED = 0.5


def rehearse_columns(
    rehearsal: Rehearsal, known_rows: int | None = None, announce: Announce = silent
) -> ColumnRehearsal:
    """How well Bob, who knows ``known_rows`` as in ``BobAudit``, reconstructs rehearsed columns."""
    view = bob_view(rehearsal.outcome, rehearsal.coins)
    truth, coins = Truth.of(rehearsal.outcome.data.alice_train), KeyedEntropy.from_seed(_SEED)
    findings = examine_columns(view, truth, coins, known_rows=known_rows, announce=announce)
    opened = bool(view.observations)
    exposed = _exposed(view, truth, coins) if opened and findings.leaks else ()
    return ColumnRehearsal(
        findings=findings,
        level=LEAKS if findings.leaks else CLEAR,
        rehearsed_passes=rehearsal.outcome.terms.agreement.epochs,
        exposed=exposed,
        advice=tuple(_advice(rehearsal, exposed)) if opened else _NOTHING_OPENED,
    )


def _exposed(view: BobView, truth: Truth, coins: KeyedEntropy) -> tuple[ExposedColumn, ...]:
    few = known_rows_of(truth, coins, min(view.columns, view.features.rows // 2))
    fits = np.full(len(truth.names), -np.inf)
    for attack in (AnchoredAttack(), LatticeAttack(), IntegerColumnsAttack()):
        if lacks(attack, view):
            continue
        known = few if attack.uses_known_rows else KnownRows.none(view.columns)
        values, rows = settled(attack.estimate(view, known), truth, known)
        fits = np.maximum(fits, truth.fits(values[rows], rows))
    order = [place for place in np.argsort(-fits, kind="stable") if fits[place] > _EXPOSED]
    return tuple(
        ExposedColumn(truth.names[place], float(fits[place])) for place in order[:_MOST_NAMED]
    )


def _advice(rehearsal: Rehearsal, exposed: tuple[ExposedColumn, ...]) -> list[str]:
    terms = rehearsal.terms
    one = "pass" if terms.whole_table else "epoch"
    words = [
        f"each {one} gives Bob an exact score of every row; no number of them is known to be safe, "
        "and fewer are no protection"
    ]
    if exposed:
        names = ", ".join(f"{column.name} (R2 {column.r2:.2f})" for column in exposed)
        words.append(f"reconstructed best: {names}; leave them out, or accept their exposure")
    hidden = advised("{mechanism}: no training score is opened to Bob", mechanism="mutual")
    several = (
        "Bob sees sums of all Alices' scores: they hide which of you scored what, and not what all "
        "columns together are"
    )
    return [*words, hidden if terms.agreement.alices == 1 else several]
