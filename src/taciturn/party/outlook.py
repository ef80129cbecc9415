"""Before a training: what it will cost, what each side will receive, and whether both accept it.

An agreement under which Alice can compute labels (its ledger will say infinity) begins only where
Bob's own file says so in words: ``[privacy] accept-leak``. Which agreements these are follows from
the prices of what they release, also where another package's mechanism releases it.

An agreement that opens training scores to Bob, from which he can reconstruct Alice's columns,
begins only where Alice's own file says so: ``[privacy] accept-column-exposure``. Which agreements
these are follows from the mechanism (``shares_scores``).

**Guarantee.** Between two parties nothing of an infinite price leaves Bob, and no training score
leaves Alice, without these lines.

**Assumes.** What the forecast assumes (``taciturn.protocol.bob.forecast``).
"""

from __future__ import annotations

import math
from dataclasses import replace
from typing import TYPE_CHECKING

from taciturn.engine.disclosure import disclosure
from taciturn.errors import BudgetExceeded, ConfigError, TaciturnError
from taciturn.faces import Hint
from taciturn.party.config import ACCEPTED_EXPOSURE, ACCEPTED_LEAK, PartyConfig
from taciturn.party.tables import PartyTables
from taciturn.privacy.statement import Statement
from taciturn.privacy.told_quality import TOLD
from taciturn.protocol.terms import Terms
from taciturn.results.outlook import Disclosure, LedgerSum, Outlook, Refusal

if TYPE_CHECKING:
    from taciturn.party.consent.label_budget import LabelCharge
    from taciturn.privacy.ledger import Ledger


def outlook(config: PartyConfig, tables: PartyTables, terms: Terms) -> Outlook:
    """What this side's training will cost and disclose.

    BudgetExceeded where the training would end with this error on its way.
    """
    held_out = 0 if tables.held_out is None else tables.held_out.rows
    learns = disclosure(terms, tables.train.rows, held_out)
    if config.role == "alice":
        return alices_outlook(config, terms, learns)
    # Only who pays for releases loads what counts them.
    from taciturn.party.consent.label_budget import training_charge

    statement = planned_ledger(config, tables, terms).statement()
    return bobs_outlook(config, terms, learns, statement, training_charge(config, tables, terms))


def alices_outlook(config: PartyConfig, terms: Terms, learns: Disclosure) -> Outlook:
    """Alice's outlook on one training or on several."""
    problem = exposure_refusal(config, terms)
    refused = None if problem is None else _refusal(problem, config)
    return Outlook(ledger=None, learns=learns, refused=refused)


def bobs_outlook(
    config: PartyConfig, terms: Terms, learns: Disclosure, statement: Statement, charge: LabelCharge
) -> Outlook:
    """Bob's outlook on one training or on several: what his labels will pay."""
    from taciturn.party.consent.label_budget import LabelBudget

    budget = LabelBudget.from_config(config)
    so_far, then = budget.statements(charge)
    problem: TaciturnError | None = leak_refusal(config, terms, statement)
    try:
        budget.require(charge)
    except BudgetExceeded as exceeded:
        problem = problem or exceeded
    return Outlook(
        ledger=statement,
        learns=learns,
        ledger_book=LedgerSum(
            trainings=len(budget.sessions()), so_far=so_far, then=then, limit=budget.limit
        ),
        refused=None if problem is None else _refusal(problem, config),
    )


def _refusal(problem: TaciturnError, config: PartyConfig) -> Refusal:
    problem.face = config.face
    return Refusal(problem.message, problem.hint)


def planned_ledger(config: PartyConfig, tables: PartyTables, terms: Terms) -> Ledger:
    """Bob's ledger as it will stand at the end, of one row that stands for all."""
    # Each side loads its own programs only.
    from taciturn.protocol.bob.forecast import forecast

    train, limits = tables.train, config.privacy
    return forecast(terms, train.rows, len(train.columns), budget=limits.budget, delta=limits.delta)


def leak_refusal(config: PartyConfig, terms: Terms, ledger: Statement) -> ConfigError | None:
    """Why Bob does not begin; None where labels are protected, or where he accepts the leak."""
    if math.isfinite(ledger.label_epsilon_total) or config.privacy.accept_leak == ACCEPTED_LEAK:
        return None
    if ledger.assumption == TOLD and _protected_but_for_telling(terms):
        return ConfigError(
            f"with this agreement {config.peer} is told how good the model is, in whole per "
            "cent: a few bits about all labels together, which have no finite price",
            setting="accept_leak",
            hint=Hint(
                "leave {tell_alice} out on both sides; or, if that is what you want, write "
                "{accept_leak} in [privacy]",
                accept_leak=ACCEPTED_LEAK,
            ),
        )
    return ConfigError(
        f"with this agreement {config.peer} can compute labels: "
        f"{terms.mechanism.receives()}; the ledger says: {ledger.assumption}",
        setting="accept_leak",
        hint=Hint(
            "agree on {mechanism} with its defaults, under which none can be computed; or, if that "
            "is what you want, write {accept_leak} in [privacy]",
            mechanism="sealed",
            accept_leak=ACCEPTED_LEAK,
        ),
    )


def exposure_refusal(config: PartyConfig, terms: Terms) -> ConfigError | None:
    """Why Alice does not begin; None where no training score leaves, or where she accepts it."""
    accepted = config.privacy.accept_column_exposure == ACCEPTED_EXPOSURE
    if terms.mechanism.shares_scores or accepted:
        return None
    line = "write {accept_column_exposure} in [privacy]"
    return ConfigError(
        f"with this agreement {config.peer} can reconstruct this side's columns: "
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


def _protected_but_for_telling(terms: Terms) -> bool:
    """Whether the price would be finite if Alice were told nothing of the model."""
    # Each side loads its own programs only.
    from taciturn.protocol.bob.forecast import forecast

    silent = terms.agreement.model_copy(update={"tell_alice": "nothing", "tell_epsilon": None})
    ledger = forecast(replace(terms, agreement=silent), rows=1, bob_columns=1)
    return math.isfinite(ledger.statement().label_epsilon_total)
