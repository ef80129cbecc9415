"""Pre-flight check: what either side could learn about the other, and what to change.

A *rehearsal* answers it. A few hundred of Alice's rows (or random ones of as many columns) are
trained on with random labels by the real programs without encryption; the
attacks then run on what she saw, each on a sample of batches. What an attack gets right of the rows
that it speaks about, beyond one half, is what the protocol tells. The column attacks run on what
the same rehearsal opened to Bob.

**Guarantee.** A verdict ``leaks`` or ``at risk`` was seen to happen in the rehearsal, by the rule
of ``verdict.foresee``, or at Bob because an attack recovered more than the controls. ``no attack of
ours applies`` says that none of ours did it there; it proves nothing about others.

**Assumes.** The rows are like those that will be trained on, and Bob's like the ones he had here.
No label is looked at.
"""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
from scipy.special import expit

from taciturn.data.prepare import RawData
from taciturn.engine.callbacks import Announce, noop
from taciturn.errors import advised, counted
from taciturn.jobs.train.exposure import column_exposure, reconstruction, sums_alone
from taciturn.jobs.train.simulation import feature_parties
from taciturn.parallel import one_thread
from taciturn.privacy.base import EncryptedMechanism
from taciturn.privacy.prices import price
from taciturn.protocol.bob.forecast import forecast
from taciturn.protocol.openings import SCORE_NOISE_TEXT
from taciturn.rng import KeyedEntropy
from taciturn.settings.schema import Settings
from taciturn_audit import advice
from taciturn_audit.advice import largest_sparsity, prediction_notes
from taciturn_audit.attacks.base import Attack, ModelOnlyControl, about_labels
from taciturn_audit.attacks.registry import rehearsal_attacks
from taciturn_audit.column_attacks.base import KnownRows
from taciturn_audit.column_attacks.integer_columns import IntegerColumnsAttack
from taciturn_audit.column_attacks.lattice import LatticeAttack
from taciturn_audit.column_attacks.regression import AnchoredAttack
from taciturn_audit.column_audit import bob_view, examine_columns, known_rows_of
from taciturn_audit.columns import Truth, settled
from taciturn_audit.rehearsal import MOST_EPOCHS, Rehearsal
from taciturn_audit.results.check import CLEAR, LEAKS, AttackVerdict, CheckFacts, CheckResult
from taciturn_audit.results.columns import ColumnRehearsal, ExposedColumn
from taciturn_audit.verdict import foresee, worst
from taciturn_audit.views.bob_view import BobView

_SAMPLED_BATCHES = 200
_BATCH_SEED = 20


def preflight(
    settings: Settings,
    raw: RawData,
    *,
    own_labels: bool = False,
    seat: str = "alice",
    known_rows: int | None = None,
    announce: Announce = noop,
) -> CheckResult:
    """Rehearse a configuration with Alice as the adversary, and with Bob if ``seat`` names him.

    Labels are not looked at, unless ``own_labels``: then as many of either class are rehearsed.
    """
    announce("simulating a training")
    rehearsal = Rehearsal.run(settings, raw, own_labels=own_labels)
    verdicts = []
    facts = _facts(rehearsal)
    # Columns know no coin, so that the model is no control here: what it reveals, the protocol
    # leaked.
    for attack in (ModelOnlyControl(), *rehearsal_attacks()):
        announce(attack.name)
        verdicts.append(_verdict(attack, rehearsal, math.isfinite(facts.label_epsilon_total)))
    return CheckResult(
        verdict=worst([attack.verdict for attack in verdicts]),
        verdicts=tuple(verdicts),
        facts=facts,
        warnings=_warnings(rehearsal),
        notes=(
            *advice.inapplicable(rehearsal.view),
            *sums_alone(rehearsal.terms),
            *_whose(rehearsal),
        ),
        recommendations=advice.recommendations(rehearsal.terms.agreement),
        prediction=prediction_notes(rehearsal.terms.agreement, rehearsal.columns),
        columns=column_exposure(
            rehearsal.terms,
            rehearsal.rows,
            rehearsal.outcome.data.alice_train,
            raw.rows - rehearsal.rows,
        ),
        bob_seat=None if seat == "alice" else rehearse_columns(rehearsal, known_rows, announce),
    )


def _whose(rehearsal: Rehearsal) -> tuple[str, ...]:
    if rehearsal.terms.agreement.alices == 1:
        return ()
    columns = counted(rehearsal.own_columns, "column")
    return (
        f"the verdicts are for all Alices together, who have {columns}; none learns more alone",
    )


def _verdict(attack: Attack, rehearsal: Rehearsal, promised: bool) -> AttackVerdict:
    view = rehearsal.view
    if reason := attack.lacks(view):
        return AttackVerdict(attack.name, CLEAR, reason, "")
    guess = about_labels(attack.infer(view), view)
    kind = "labels" if rehearsal.own_labels else "random labels"
    level, why = foresee(guess, rehearsal.labels, kind, promised=promised)
    change = "" if level == CLEAR else advice.change(attack.name, rehearsal)
    return AttackVerdict(attack.name, level, why, change)


def _facts(rehearsal: Rehearsal) -> CheckFacts:
    agreed, method = rehearsal.terms.agreement, rehearsal.method
    cost = price(method.event)
    with one_thread():
        full_rank_share, median_condition = _ranks(rehearsal)
    ledger = forecast(rehearsal.terms, rehearsal.rows, rehearsal.bob_columns).statement()
    total = ledger.label_epsilon_total
    facts = CheckFacts(
        rows=rehearsal.rows,
        rehearsed_rows=rehearsal.labels.rows,
        alice_columns=rehearsal.columns,
        parties=feature_parties(rehearsal.outcome.data),
        batch_size=rehearsal.batch,
        last_batch=(rehearsal.rows - 1) % rehearsal.batch + 1,
        epochs=agreed.rounds,
        claimed_epsilon_per_release=cost.claimed,
        label_epsilon_per_release=cost.label,
        label_epsilon_total=total,
        attack_ceiling=float(expit(total)),
        full_rank_share=full_rank_share,
        median_condition=median_condition,
        stacked_equations_per_row=agreed.rounds * rehearsal.own_columns / rehearsal.batch,
        passes=agreed.rounds if rehearsal.terms.whole_table else None,
    )
    design = method.hidden_batch
    if design is None:
        return facts
    return replace(
        facts,
        l_rr=design.asked_rows,
        true_rows=design.true_rows,
        sparsity=design.true_rows / rehearsal.columns,
        recoverable_sparsity=largest_sparsity(min(1.0, rehearsal.columns / design.asked_rows)),
    )


def _ranks(rehearsal: Rehearsal) -> tuple[float, float]:
    """The share of sampled batches of full rank, and the median of their condition numbers."""
    entropy = KeyedEntropy.from_seed(_BATCH_SEED).fork("batches")
    size = min(rehearsal.batch, len(rehearsal.table))
    # Batches of all rows are all the same.
    sampled = 1 if rehearsal.terms.whole_table else _SAMPLED_BATCHES
    full, conditions = 0, []
    for _ in range(sampled):
        rows = rehearsal.table[entropy.permutation(len(rehearsal.table))[:size]]
        s = np.linalg.svd(rows, compute_uv=False)
        rank = int(np.count_nonzero(s > s.max() * max(rows.shape) * np.finfo(float).eps))
        full += rank == size
        if rank:
            conditions.append(s[0] / s[rank - 1])
    return full / sampled, float(np.median(conditions)) if conditions else math.inf


def _warnings(rehearsal: Rehearsal) -> tuple[str, ...]:
    agreed, whole_table = rehearsal.terms.agreement, rehearsal.terms.whole_table
    rounds, exposed = "passes" if whole_table else "epochs", reconstruction(rehearsal.terms)
    warnings = [] if exposed is None else [f"for Alice: {exposed}"]
    if agreed.rounds > MOST_EPOCHS:
        warnings.append(f"only {MOST_EPOCHS} of {agreed.rounds} {rounds} were simulated")
    if whole_table and rehearsal.rows > rehearsal.labels.rows:
        warnings.append(
            f"{rehearsal.labels.rows:,} of {rehearsal.rows:,} rows were simulated; sums over more "
            "rows reveal less about most of them, and as much about a row unlike all others"
        )
    if rehearsal.terms.shares_weights:
        warnings += _sealed_warnings(rehearsal)
    elif isinstance(rehearsal.method, EncryptedMechanism) and rehearsal.method.label_flips is None:
        warnings.append(
            "for Bob: an Alice who deviates from the protocol can have any value decrypted that "
            "she likes; the verdicts assume that she does not deviate"
        )
    if agreed.noise == "continuous":
        warnings.append(
            "floating-point noise can leak labels through its low-order bits: use discrete"
        )
    return tuple(warnings)


def _sealed_warnings(rehearsal: Rehearsal) -> list[str]:
    agreed = rehearsal.terms.agreement
    warnings = []
    if rehearsal.terms.shares_scores:
        warnings.append(
            f"for Bob: a score beyond {agreed.score_range:g} wraps; only he learns, after the "
            f"training, how many may have. Clip the columns ({advised('{clip}')}) or use an L2 "
            "penalty where weights may grow large"
        )
    if not agreed.fresh_keys:
        warnings.append(
            "for Bob: against an Alice who deviates from the protocol the encryption must be "
            "funcCPA, which does not follow from IND-CPA"
            + ("" if rehearsal.terms.shares_scores else advised("; {fresh_keys} does without"))
        )
    if agreed.reveal_epsilon is not None:
        warnings.append(
            "for Bob: what Alice receives has noise for a table within its bounds, which he cannot "
            "see; an Alice who does not keep to the protocol may have had any label put into it"
        )
    elif agreed.reveal and rehearsal.method.label_flips is None:
        warnings.append(
            f"for Bob: {advised('{reveal}')} hands Alice's weights out at the end, which depend on "
            "labels; "
            "an Alice who does not keep to the protocol may have had any label put into them"
        )
    return warnings


_MOST_NAMED = 5
_KNOWN_ROWS_SEED = 21
_NOTHING_OPENED = (
    "the training opens no score of a training row to Bob, only sums over all of them; held-out "
    f"rows, and each joint prediction, open one score of each row, {SCORE_NOISE_TEXT}",
)
# A column of which less is explained is not called exposed.
_EXPOSED = 0.5


def rehearse_columns(
    rehearsal: Rehearsal, known_rows: int | None = None, announce: Announce = noop
) -> ColumnRehearsal:
    """Success of Bob, who knows ``known_rows`` as in ``BobAudit``, on rehearsed columns."""
    view = bob_view(rehearsal.outcome, rehearsal.entropy)
    truth, entropy = (
        Truth.from_table(rehearsal.outcome.data.alice_train),
        KeyedEntropy.from_seed(_KNOWN_ROWS_SEED),
    )
    findings = examine_columns(view, truth, entropy, known_rows=known_rows, announce=announce)
    opened = bool(view.observations)
    exposed = _exposed(view, truth, entropy) if opened and findings.leaks else ()
    return ColumnRehearsal(
        findings=findings,
        level=LEAKS if findings.leaks else CLEAR,
        rehearsed_passes=rehearsal.outcome.terms.rounds,
        exposed=exposed,
        advice=tuple(_advice(rehearsal, exposed)) if opened else _NOTHING_OPENED,
    )


def _exposed(view: BobView, truth: Truth, entropy: KeyedEntropy) -> tuple[ExposedColumn, ...]:
    few = known_rows_of(truth, entropy, min(view.columns, view.features.rows // 2))
    fits = np.full(len(truth.names), -np.inf)
    for attack in (AnchoredAttack(), LatticeAttack(), IntegerColumnsAttack()):
        if attack.lacks(view):
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
    unit = "pass" if terms.whole_table else "epoch"
    words = [
        f"each {unit} gives Bob an exact score of every row; no number of them is known to be "
        "safe, and fewer are no protection"
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
