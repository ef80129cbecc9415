"""Lines that a side's own file must hold before a training begins: from terms, tables and ledger.

``[privacy] accept-column-exposure`` is Alice's, and ``accept-leak`` Bob's; ``[agreement]
few-labels`` is of both. ``asked_of`` says what a simulated run would have asked of each side.
"""

from __future__ import annotations

import math
from dataclasses import replace

from taciturn.data.label_table import LabelTable
from taciturn.errors import ConfigError, LabelValueError, TaciturnError
from taciturn.privacy.events import Statement
from taciturn.privacy.quality_release import TOLD
from taciturn.protocol.opened_scores import OpenedScores
from taciturn.protocol.terms import Terms
from taciturn.results.cost_preview import AskedConsent, AskedLine
from taciturn.setting_syntax import Hint, hyphenated, toml_value
from taciturn.settings.agreement import (
    ACCEPTED_EXPOSURE,
    ACCEPTED_FEW,
    ACCEPTED_LEAK,
    LEAST_LABELS,
    Agreement,
)


def exposes_columns(terms: Terms, opened: OpenedScores) -> bool:
    """Whether scores of training rows are opened: in ``mutual`` by a study that says so."""
    return not terms.shares_scores or opened.per_row > 0


def exposure_refusal(terms: Terms, peer: str) -> ConfigError:
    """What Alice has to accept where ``exposes_columns``."""
    line = "write {accept_column_exposure} in [privacy]"
    if terms.shares_scores:
        return ConfigError(
            f"{peer} can reconstruct this side's columns: the study opens a score of every "
            "training row for each combination (open-scores)",
            setting="accept_column_exposure",
            hint=Hint(
                f"leave open-scores out of [study]; or, if that is what you want, {line}",
                accept_column_exposure=ACCEPTED_EXPOSURE,
            ),
        )
    return ConfigError(
        f"with this agreement {peer} can reconstruct this side's columns: "
        f"{terms.agreement.mechanism} opens scores of every training row",
        setting="accept_column_exposure",
        hint=Hint(
            f"agree on {{mechanism}}, which opens none; or, if that is what you want, {line}"
            if terms.agreement.alices == 1
            else f"if that is what you want, {line}; only {{mechanism}} opens none, for one Alice",
            mechanism="mutual",
            accept_column_exposure=ACCEPTED_EXPOSURE,
        ),
    )


def leak_refusal(terms: Terms, ledger: Statement, peer: str) -> ConfigError:
    """What Bob has to accept where ``ledger`` has no finite price; ``peer`` learns it."""
    if ledger.assumption == TOLD and _protected_but_for_telling(terms):
        return ConfigError(
            f"with this agreement {peer} learns how good the model is, in whole per cent: a few "
            "bits about all labels together, which have no finite price",
            setting="accept_leak",
            hint=Hint(
                "leave {share_metrics} out on both sides; or, if that is what you want, write "
                "{accept_leak} in [privacy]",
                accept_leak=ACCEPTED_LEAK,
            ),
        )
    return ConfigError(
        f"with this agreement {peer} can compute labels: {terms.mechanism.receives()}; the ledger "
        f"says: {ledger.assumption}",
        setting="accept_leak",
        hint=Hint(
            "agree on {mechanism} with its defaults, under which none can be computed; or, if "
            "that is what you want, write {accept_leak} in [privacy]",
            mechanism="sealed",
            accept_leak=ACCEPTED_LEAK,
        ),
    )


def _protected_but_for_telling(terms: Terms) -> bool:
    """Whether the price would be finite if Alice learnt nothing of the model."""
    # Each side loads its own programs only.
    from taciturn.protocol.bob.forecast import forecast

    nothing = {"share_metrics": "nothing", "metrics_epsilon": None}
    agreement = terms.agreement.model_copy(update=nothing)
    ledger = forecast(replace(terms, agreement=agreement), rows=1, bob_columns=1)
    return math.isfinite(ledger.statement().label_epsilon_total)


def require_labels(labels: LabelTable, agreed: Agreement) -> None:
    """Raise LabelValueError where a class has fewer labels than agreed on."""
    if agreed.few_labels == ACCEPTED_FEW or labels.rarest_class() >= LEAST_LABELS:
        return
    raise LabelValueError(
        f"of {labels.rows:,} training labels {labels.rarest_class()} are of the rarer class, and "
        f"fewer than {LEAST_LABELS} point at single rows: the other side's weights would show "
        "these rows",
        setting="few_labels",
        hint=Hint(
            "train on more rows; or, if both sides want that, agree on {few_labels}",
            few_labels=ACCEPTED_FEW,
        ),
    )


_ACCEPTED = {
    "accept_column_exposure": ACCEPTED_EXPOSURE,
    "accept_leak": ACCEPTED_LEAK,
    "few_labels": ACCEPTED_FEW,
}


def asked_of(terms: Terms, labels: LabelTable, held_out: int, ledger: Statement) -> AskedConsent:
    """What both sides would be asked to accept before a training between machines.

    ``labels`` are those of the training rows, and ``ledger`` is the forecast.
    """
    opened, few = OpenedScores.from_terms(terms, labels.rows, held_out), None
    try:
        require_labels(labels, terms.agreement)
    except LabelValueError as problem:
        few = problem
    exposed, leaks = exposes_columns(terms, opened), math.isinf(ledger.label_epsilon_total)
    return AskedConsent(
        alice=_line(exposure_refusal(terms, "bob") if exposed else None),
        bob=_line(leak_refusal(terms, ledger, "alice") if leaks else None),
        both=_line(few),
    )


def _line(refusal: TaciturnError | None) -> AskedLine | None:
    if refusal is None:
        return None
    name = refusal.setting
    return AskedLine(f"{hyphenated(name)} = {toml_value(_ACCEPTED[name])}", refusal.message)
