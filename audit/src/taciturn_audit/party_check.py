"""A check of one side's file: what Alice will be able to do, rehearsed with what this side has.

A side has its own table alone, so that something stands in for the other's, and the result says
what: at Bob random columns for Alice's, at Alice random labels for his and an intercept for his
columns. Price and exposure are those of the agreement in the file, and no stand-in is in them.

**Guarantee.** As of ``preflight``. Nothing leaves the machine; nobody is called.

**Assumes.** That what stands in is like the real: columns that repeat each other, or that have few
values, may tell more than random ones.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import polars as pl
from scipy.special import expit

from taciturn.data.label_table import LabelTable
from taciturn.data.prepare import RawData
from taciturn.data.tables import FeatureTable
from taciturn.data.user_table import DEFAULTS
from taciturn.engine.callbacks import Announce, noop
from taciturn.errors import ConfigError, counted, rendering_errors_as
from taciturn.jobs.study.plan import StudyPlan
from taciturn.jobs.train.exposure import column_exposure
from taciturn.jobs.train.plan import TrainingPlan
from taciturn.party.config import PartyConfig
from taciturn.setting_syntax import Hint
from taciturn_audit.preflight import preflight
from taciturn_audit.rehearsal import FEWEST_ROWS, random_table
from taciturn_audit.results.check import CheckResult

_SPELLING = "changes are given as keys of [agreement], to be made on both sides"


def check_party(
    config: PartyConfig,
    columns: int | None = None,
    announce: Announce = noop,
    *,
    seat: str | None = None,
    known_rows: int | None = None,
) -> CheckResult:
    """Rehearse the training of a party's file.

    ``columns`` is the number of Alice's columns at Bob, where the agreement does not say. Without
    ``seat`` both seats are rehearsed at Alice, whose columns Bob's is about, and hers alone at Bob.
    """
    with rendering_errors_as(config.syntax):
        if config.role == "alice":
            bob: tuple[str, int | None] = (seat or "both", known_rows)
            return _at_alice(TrainingPlan.from_config(config), columns, announce, bob)
        if seat not in (None, "alice") or known_rows is not None:
            raise ConfigError(
                "attacks on Alice's columns are rehearsed with her table, and this is Bob's file",
                setting="seat" if known_rows is None else "known_rows",
                hint="let Alice's side check its own file",
            )
        return _at_bob(TrainingPlan.from_config(config), columns, announce)


def _at_alice(
    preview: TrainingPlan,
    columns: int | None,
    announce: Announce,
    bob: tuple[str, int | None],
) -> CheckResult:
    if columns is not None:
        raise ConfigError(
            "this is Alice's file: its table already gives her columns",
            setting="columns",
            hint=Hint("leave {columns} out"),
        )
    config, table, terms = preview.config, preview.tables.train, preview.terms
    frame = pl.from_numpy(table.values, schema=list(table.columns))
    result = _rehearsed(config, table, frame, None, "all", announce, bob)
    return replace(
        result,
        columns=column_exposure(terms, table.rows, table, opened=preview.scores),
        price=preview.outlook(),
        notes=(
            *result.notes,
            "simulated with your own columns, random labels instead of Bob's, and an intercept "
            "instead of his columns",
            *_others(config),
            *_study(preview),
            _SPELLING,
        ),
    )


def _others(config: PartyConfig) -> tuple[str, ...]:
    if not config.parties:
        return ()
    return (
        "simulated without the other Alices' columns: Bob sees sums with theirs, which take more "
        "scores to determine, and Alices who pool what they have see more than you alone",
    )


def _study(preview: TrainingPlan) -> tuple[str, ...]:
    if not isinstance(preview, StudyPlan):
        return ()
    study = preview.study
    return (
        f"model 1 of {counted(len(study.points), 'combination')} was simulated; the cost and "
        f"the counts of scores are those of all {study.models} models together",
    )


def _at_bob(preview: TrainingPlan, columns: int | None, announce: Announce) -> CheckResult:
    config, tables = preview.config, preview.tables
    count = columns or config.alice_columns
    if count is None:
        raise ConfigError(
            "the number of Alice's columns is not set; it is needed to simulate her table",
            setting="alice_columns",
            hint=Hint("write {alice_columns}, or use {columns}", alice_columns=30, columns=30),
        )
    table, labels = tables.train, tables.labels
    bob_values = table.values[:, : len(table.columns) - table.free]
    stand_ins = random_table(table.rows, count).frame
    names = {name: f"stand-in {name}" for name in stand_ins.columns}
    bob_frame = pl.from_numpy(
        bob_values, schema=[f"own {name}" for name in table.columns[: bob_values.shape[1]]]
    )
    frame = pl.concat([stand_ins.rename(names), bob_frame], how="horizontal")
    truth = labels if _enough(labels) else None
    result = _rehearsed(config, table, frame, truth, count, announce)
    price = preview.outlook()
    if price.ledger is not None:
        # The agreement may have what a simulation has not: a training that ends by labels.
        total = price.ledger.label_epsilon_total
        facts = replace(result.facts, label_epsilon_total=total, attack_ceiling=float(expit(total)))
        result = replace(result, facts=facts)
    rehearsed = "simulated with your own labels, as many of each class"
    if truth is None:
        rehearsed = "simulated with random labels, as you have too few labels of one class"
    stood = f"{counted(count, 'random column')} instead of Alice's, which may reveal more"
    # What Bob would learn of random columns is nobody's concern; how much he receives is in price.
    return replace(
        result,
        columns=None,
        price=price,
        notes=(*result.notes, f"{rehearsed}; {stood}", *_study(preview), _SPELLING),
    )


def _enough(labels: LabelTable | None) -> bool:
    if labels is None:
        return False
    ones = int(labels.upper.sum())
    return 2 * min(ones, labels.rows - ones) >= FEWEST_ROWS


def _rehearsed(
    config: PartyConfig,
    table: FeatureTable,
    frame: pl.DataFrame,
    labels: LabelTable | None,
    alice: str | int,
    announce: Announce,
    bob: tuple[str, int | None] = ("alice", None),
) -> CheckResult:
    intercept = config.role == "alice" or bool(table.free)
    changes: dict[str, object] = {"alice_columns": alice, "intercept": intercept}
    if config.role == "alice":
        # The others' columns are not here: what she alone would see is rehearsed.
        changes["parties"] = 1
    settings = config.settings().model_copy(update=changes)
    # Labels that mean nothing: random ones take their place.
    truth = labels or LabelTable.from_data(np.arange(table.rows) % 2, ids=table.ids)
    raw = RawData(config.table().name, frame, table.ids, truth, DEFAULTS, whole=True)
    seat, known_rows = bob
    return preflight(
        settings,
        raw,
        own_labels=labels is not None,
        seat=seat,
        known_rows=known_rows,
        announce=announce,
    )
