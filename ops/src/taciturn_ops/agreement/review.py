"""A review of an agreement from one side: what it means for this side, before anything is signed.

Nothing leaves the machine; nobody is called; nothing is charged. Without the packages of the audit
no attack is run.

**Guarantee.** As of ``preflight``; sentences and counts follow from the agreement and this side's
table.

**Assumes.** What ``own_side`` assumes of what stands in.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from taciturn import extensions
from taciturn.engine.callbacks import Announce, noop
from taciturn.errors import ConfigError, SignatureError, TaciturnError, rendering_errors_as
from taciturn.extras import EXTRAS, is_installed
from taciturn.jobs.train.estimate import Columns, estimate_cost
from taciturn.jobs.train.plan import TrainingPlan
from taciturn.party.agreement_check import Signer, source_columns
from taciturn.party.agreement_file import AgreementFile
from taciturn.party.config import PartyConfig
from taciturn.party.credentials import credentials_of
from taciturn.results.cost_preview import Estimate, Refusal
from taciturn.setting_syntax import Hint
from taciturn_ops.agreement.rehearsal import CheckResult
from taciturn_ops.agreement.result import Review
from taciturn_ops.agreement.sign import opened_sum, problems, record_of_agreement, signers_so_far


def review(
    agreement: AgreementFile,
    path: Path,
    columns: int | None = None,
    announce: Announce = noop,
) -> Review:
    """The consequences of an agreement for one side, by the side's file.

    ``columns`` is the number of Alice's columns at Bob, where the agreement does not say.
    """
    config = PartyConfig.read(path, agreement)
    with rendering_errors_as(config.syntax):
        preview = TrainingPlan.from_config(config)
        tables = preview.tables
        assumed = _assumed_columns(config, agreement, columns)
        check = _check(config, assumed, announce)
        announce("time and traffic")
        estimate = _estimate(preview, assumed)
        obstacles: list[TaciturnError] = []
        signers: dict[str, Signer] = {}
        try:
            signers = signers_so_far(config, agreement)
        except SignatureError as problem:
            obstacles.append(problem)
        obstacles += problems(path, config, agreement, tables, lambda: preview)
        return Review(
            reviewed=agreement.path,
            role=config.role,
            name=credentials_of(config).name,
            peers=config.peers,
            agreement=record_of_agreement(agreement, signers),
            mechanism=preview.terms.mechanism.summary,
            rows=tables.train.rows,
            held_out_rows=0 if tables.held_out is None else tables.held_out.rows,
            own_columns=len(tables.preparation.columns),
            own_column_names=source_columns(tables),
            price=preview.outlook(),
            columns=preview.consent.columns_exposed(),
            check=check,
            assumed_columns=assumed,
            opened=opened_sum(preview),
            estimate=estimate,
            obstacles=tuple(Refusal(obstacle.message, obstacle.hint) for obstacle in obstacles),
        )


def _assumed_columns(
    config: PartyConfig, agreement: AgreementFile, columns: int | None
) -> int | None:
    """At Bob, the number of random columns in place of Alice's; None at Alice."""
    if config.role == "alice":
        if columns is not None:
            raise ConfigError(
                "this is Alice's file: its table already gives her columns",
                setting="columns",
                hint=Hint("leave {columns} out"),
            )
        return None
    widths = [side.prepared for side in agreement.alices]
    in_all = None if None in widths else sum(width or 0 for width in widths)
    count = columns or config.alice_columns or in_all
    if not count:
        raise ConfigError(
            "the agreement lacks the number of Alice's columns, which random ones stand in for",
            setting="columns",
            hint=Hint("use {columns}, or ask her", columns=30),
        )
    return count


def _check(config: PartyConfig, assumed: int | None, announce: Announce) -> CheckResult | None:
    # Without the audit the rest is still said.
    installed = "check_party" in extensions.names(extensions.FUNCTIONS)
    if not (installed and all(map(is_installed, EXTRAS["audit"]))):
        return None
    result: CheckResult = extensions.function("check_party")(config, assumed, announce)
    return result


def _estimate(preview: TrainingPlan, assumed: int | None) -> Estimate | None:
    config, table, held_out = preview.config, preview.tables.train, preview.tables.held_out
    alices: Sequence[Columns] = [table]
    if assumed is not None:
        parties = len(config.parties) or 1
        alices = [max(1, (assumed + place) // parties) for place in range(parties)]
    elif config.parties:
        return None
    single = estimate_cost(
        preview.terms,
        table.rows,
        alices,
        1 if assumed is None else table,
        held_out=0 if held_out is None else held_out.rows,
        table_memory=config.compute.table_memory << 20,
        cores=config.compute.cores,
    )
    return preview.of_all(single)
