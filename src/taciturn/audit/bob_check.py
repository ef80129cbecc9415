"""Before any training: what Bob will be able to tell of Alice's columns, and advice to her.

The rehearsal of ``preflight`` answers it: a small training on coin labels by the real programs, of
her own rows or random ones. ``anchored`` with as many known rows as she has columns runs on what it
opened to Bob, after one pass, two, three and so on; the other column attacks on all of it.

**Guarantee.** A level ``leaks`` was seen in the rehearsal: an attack told more than the controls.
The safe number of passes is one after which none of ours did; it proves nothing about others.

**Assumes.** The rows are like those that will be trained on, and Bob's like the ones he had here.
"""

from __future__ import annotations

import numpy as np

from taciturn.audit.bob_seat import bob_view, examine_columns, known_rows_of
from taciturn.audit.columns import Truth
from taciturn.audit.rehearsal import Rehearsal
from taciturn.column_attacks.anchored import AnchoredAttack
from taciturn.engine.callbacks import Announce, silent
from taciturn.errors import advised, counted
from taciturn.results.check import CLEAR, LEAKS
from taciturn.results.columns import ColumnFindings, ColumnRehearsal, ExposedColumn
from taciturn.rng import KeyedEntropy
from taciturn.view.bob_view import BobView

_LOOKS = (1, 2, 3, 5, 8, 12, 20, 30)
_MOST_NAMED = 5
_SEED = 21
_NOTHING_OPENED = (
    "the training opens no score of yours to Bob; each joint prediction opens one of each row",
)
# A column of which less is explained is not called exposed.
_EXPOSED = 0.5


def rehearse_columns(
    rehearsal: Rehearsal, known_rows: int | None = None, announce: Announce = silent
) -> ColumnRehearsal:
    """What the rehearsed training tells Bob.

    Args:
        rehearsal: The small training.
        known_rows: How many of her rows Bob knows; None for a few, and as many as her columns.
        announce: Called with what runs now.
    """
    view = bob_view(rehearsal.outcome, rehearsal.coins)
    truth, coins = Truth.of(rehearsal.outcome.data.alice_train), KeyedEntropy.from_seed(_SEED)
    findings = examine_columns(view, truth, coins, known_rows=known_rows, announce=announce)
    made, opened = rehearsal.outcome.terms.agreement.epochs, bool(view.observations)
    safe = _safe_passes(view, truth, coins, made) if opened else made
    exposed = _exposed(view, truth, coins) if opened and findings.leaks else ()
    return ColumnRehearsal(
        findings=findings,
        level=LEAKS if findings.leaks else CLEAR,
        rehearsed_passes=made,
        safe_passes=safe,
        exposed=exposed,
        advice=tuple(_advice(rehearsal, findings, safe, exposed) if opened else _NOTHING_OPENED),
    )


def _safe_passes(view: BobView, truth: Truth, coins: KeyedEntropy, made: int) -> int:
    """The most passes of those looked at after which, and before which, nothing was told."""
    safe = 0
    for passes in [number for number in _LOOKS if number < made] + [made]:
        findings = examine_columns(
            view.until(passes), truth, coins, known_rows=view.columns, attacks=[AnchoredAttack()]
        )
        if findings.leaks:
            break
        safe = passes
    return safe


def _exposed(view: BobView, truth: Truth, coins: KeyedEntropy) -> tuple[ExposedColumn, ...]:
    """Her columns by how much of them ``anchored`` explains, the most exposed first."""
    known = known_rows_of(truth, coins, min(view.columns, view.features.rows // 2))
    values = AnchoredAttack().estimate(view, known).values
    rows = np.setdiff1d(np.arange(len(values)), known.rows)
    hers = truth.values[rows]
    varies = np.sum((hers - hers.mean(axis=0)) ** 2, axis=0)
    fits = 1.0 - np.sum((values[rows] - hers) ** 2, axis=0) / np.maximum(varies, 1e-300)
    fits = np.where(varies > 0, fits, -np.inf)
    order = [place for place in np.argsort(-fits, kind="stable") if fits[place] > _EXPOSED]
    return tuple(
        ExposedColumn(truth.names[place], float(fits[place])) for place in order[:_MOST_NAMED]
    )


def _advice(
    rehearsal: Rehearsal, findings: ColumnFindings, safe: int, exposed: tuple[ExposedColumn, ...]
) -> list[str]:
    """What Alice can do about it, in words."""
    one = "pass" if rehearsal.terms.whole_table else "epoch"
    option = "passes" if rehearsal.terms.whole_table else "epochs"
    columns = counted(rehearsal.columns, "column")
    agreed, made = rehearsal.terms.agreement.epochs, rehearsal.outcome.terms.agreement.epochs
    words = []
    if agreed > made:
        words.append(
            f"{option} {agreed} is agreed on, and {made} were rehearsed: with as many as columns, "
            "and rows that he knows, Bob has them all"
        )
    if not findings.leaks:
        words.append(
            f"of {columns} no attack of ours told more than the controls; each further {one} is "
            "one more equation of every row"
        )
    elif safe:
        words.append(
            f"{advised(f'{{{option}}}', **{option: safe})}: of {columns}, after "
            f"{counted(safe, one)} no attack of ours had told more than the controls"
        )
    else:
        words.append(f"no number of passes is safe for {columns}: one {one} tells already")
    if exposed:
        names = ", ".join(f"{column.name} (R2 {column.r2:.2f})" for column in exposed)
        words.append(f"most exposed: {names}; leave them out, or make them coarser")
    hidden = advised(
        "{mechanism}: Bob sees no score in training, and the model is the same",
        mechanism="mutual",
    )
    several = (
        "Bob sees sums of all Alices' scores: they hide which of you scored what, and not what all "
        "columns together are"
    )
    return [*words, hidden if rehearsal.terms.agreement.alices == 1 else several]
