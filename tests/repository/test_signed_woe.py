"""Weights of evidence between two sides: Bob's figures, Alice's silence, her consent and count."""

from __future__ import annotations

import polars as pl
from ops.tests.tampering import furnish, name_agreement
from risk.tests.woe.test_sides import ROLES, meet

from taciturn.__main__ import run
from taciturn.errors import (
    AgreementError,
)
from taciturn.party.config import PartyConfig
from taciturn_risk.woe.job import FeatureSide, WoeJob
from tests.expected import refused


def test_by_a_signed_agreement_its_columns_alone_are_weighed(tmp_path):
    """Her consent stands in her own file; what the agreement does not list is not told."""
    furnish(tmp_path)
    agreement = tmp_path / "agreement.toml"
    assert run(["agreement", "propose", str(tmp_path / "alice.toml"), "--out", str(agreement)]) == 0
    for role in ROLES:
        name_agreement(tmp_path / f"{role}.toml")
        assert (
            run(["agreement", "sign", str(agreement), str(tmp_path / f"{role}.toml"), "--yes"]) == 0
        )
    path = tmp_path / "alice.toml"
    with refused(AgreementError, names="allow"):
        WoeJob().prepare(PartyConfig.read(path))
    path.write_text(path.read_text() + "\n[woe]\nallow = true\nmin-rows = 20\n")
    signed = WoeJob().prepare(PartyConfig.read(path))
    assert isinstance(signed, FeatureSide)
    names = {column.name for column in signed.cut.columns}
    table = pl.read_csv(tmp_path / "alice.csv")
    table.with_columns(secret=pl.int_range(pl.len()) % 7).write_csv(tmp_path / "alice.csv")
    again = WoeJob().prepare(PartyConfig.read(path))
    assert isinstance(again, FeatureSide)
    assert {column.name for column in again.cut.columns} == names
    assert "secret" not in names
    hers, his = meet(tmp_path).records
    assert hers["counts_told"] == his["counts_told"] > 0
