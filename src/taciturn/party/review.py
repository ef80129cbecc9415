"""A review of an agreement from one side: what it means for this side, before anything is signed.

Nothing leaves the machine; nobody is called; nothing is charged. Without the packages of the audit
no attack is run.

**Guarantee.** As of ``preflight``; sentences and counts follow from the agreement and this side's
table.

**Assumes.** What ``own_side`` assumes of what stands in.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from datetime import UTC, datetime
from pathlib import Path

from taciturn import extensions
from taciturn.engine.callbacks import Announce, silent
from taciturn.engine.estimate import Columns, estimate_cost
from taciturn.engine.exposure import column_exposure
from taciturn.errors import ConfigError, SignatureError, TaciturnError, shown_by
from taciturn.extras import EXTRAS, is_installed
from taciturn.faces import Hint
from taciturn.jobs.train import TrainingPlan as Prospect
from taciturn.party.agreed import misfits, own_side, source_columns
from taciturn.party.agreement_file import AgreementFile
from taciturn.party.config import PartyConfig
from taciturn.party.identity import credentials_of
from taciturn.party.own_limits import opened_sum, refusals
from taciturn.party.sign_file import own_differences, record_of_agreement, signers_so_far
from taciturn.party.signing import Signer, require_in_time
from taciturn.party.tables import PartyTables, load_tables
from taciturn.results.agreement import Review
from taciturn.results.check import CheckResult, ColumnExposure
from taciturn.results.estimate import Estimate
from taciturn.results.outlook import Refusal


def review(
    agreement: AgreementFile,
    path: Path,
    columns: int | None = None,
    announce: Announce = silent,
) -> Review:
    """The consequences of an agreement for one side, by the side's file.

    ``columns`` is the number of Alice's columns at Bob, where the agreement does not say.
    """
    config = PartyConfig.read(path, agreement)
    with shown_by(config.face):
        tables, prospect = load_tables(config), Prospect.of(config)
        terms = prospect.terms
        assumed = _assumed_columns(config, agreement, columns)
        check = _check(config, assumed, announce)
        announce("time and traffic")
        estimate = _estimate(prospect, assumed)
        signers, wrong = _signers(config, agreement)
        obstacles = [*wrong, *_obstacles(path, config, agreement, tables)]
        obstacles += refusals(prospect)
        price, exposed = prospect.outlook(), _exposure(prospect)
    return Review(
        reviewed=agreement.path,
        role=config.role,
        name=credentials_of(config).name,
        peers=config.peers,
        agreement=record_of_agreement(agreement, signers),
        mechanism=terms.mechanism.summary,
        rows=tables.train.rows,
        held_out_rows=0 if tables.held_out is None else tables.held_out.rows,
        own_columns=len(tables.preparation.columns),
        own_column_names=source_columns(tables),
        price=price,
        columns=exposed,
        check=check,
        assumed_columns=assumed,
        opened=opened_sum(prospect),
        estimate=estimate,
        obstacles=tuple(obstacles),
    )


def _assumed_columns(
    config: PartyConfig, agreement: AgreementFile, columns: int | None
) -> int | None:
    """At Bob, the number of random columns that stand in for Alice's; None at Alice."""
    if config.role == "alice":
        if columns is not None:
            raise ConfigError(
                "this file is Alice's, and her table has its columns",
                setting="columns",
                hint=Hint("leave {columns} out"),
            )
        return None
    widths = [side.prepared for side in agreement.alices]
    in_all = None if None in widths else sum(width or 0 for width in widths)
    count = columns or config.alice_columns or in_all
    if not count:
        raise ConfigError(
            "the agreement does not say how many columns Alice has, and random ones must stand in "
            "for them",
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


def _exposure(prospect: Prospect) -> ColumnExposure | None:
    if prospect.config.role == "bob":
        return None
    table = prospect.tables.train
    return column_exposure(prospect.terms, table.rows, table, opened=prospect.scores)


def _signers(
    config: PartyConfig, agreement: AgreementFile
) -> tuple[dict[str, Signer], list[Refusal]]:
    try:
        return signers_so_far(config, agreement), []
    except SignatureError as problem:
        return {}, [Refusal(problem.message, problem.hint)]


def _obstacles(
    path: Path, config: PartyConfig, agreement: AgreementFile, tables: PartyTables
) -> Iterator[Refusal]:
    try:
        side = own_side(config, agreement, credentials_of(config))
        for problem in misfits(config, tables, side):
            yield Refusal(f"this side's table: {problem}", "ask for a new proposal")
    except TaciturnError as refused:
        yield Refusal(refused.message, refused.hint)
    try:
        require_in_time(agreement, datetime.now(UTC))
    except SignatureError as refused:
        yield Refusal(refused.message, refused.hint)
    try:
        apart = own_differences(path, config, tables)
    except TaciturnError as refused:
        yield Refusal(refused.message, refused.hint)
        return
    for line in apart:
        yield Refusal(
            f"this side's file and the agreement differ: {line} (here is the file, there the "
            "agreement)",
            "write only file and signed in [agreement] of this side's file, or ask for a new "
            "proposal",
        )


def _estimate(prospect: Prospect, assumed: int | None) -> Estimate | None:
    single = _estimate_one(prospect, assumed)
    return None if single is None else prospect.of_all(single)


def _estimate_one(prospect: Prospect, assumed: int | None) -> Estimate | None:
    config, own = prospect.config, prospect.tables.train
    alices: Sequence[Columns] = [own]
    if assumed is not None:
        alices = _divided(assumed, len(config.parties) or 1)
    elif config.parties:
        return None
    return estimate_cost(
        prospect.terms,
        own.rows,
        alices,
        1 if assumed is None else own,
        table_memory=config.compute.table_memory << 20,
        cores=config.compute.cores,
    )


def _divided(columns: int, parties: int) -> list[int]:
    return [max(1, (columns + place) // parties) for place in range(parties)]
