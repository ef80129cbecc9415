"""The change log's table of what works with what is what the program does."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import polars as pl
import pytest

import taciturn
from taciturn.errors import ConfigError
from taciturn.model.whole import own_part, whole_model
from taciturn.party.config import PartyConfig
from taciturn.privacy.registry import MECHANISMS
from taciturn.privacy.solvers import resolved
from taciturn.settings.schema import Settings
from taciturn_risk.onnx import own_to_onnx, whole_to_onnx
from tests.expected import refused
from tests.jobs.predict.test_sides import shares, trained
from tests.party.sides import MECHANISMS as AGREEMENTS
from tests.party.sides import NEWTON, write_config

ROOT = Path(__file__).resolve().parents[2]
NEEDED = {"add": {"epsilon": 1.0}, "mult": {"epsilon": 10.0}, "label-rr": {"epsilon": 1.0}}
GRADIENTS, RESIDUES = "exact-solve", "likelihood"


def table() -> dict[str, dict[str, str]]:
    """The rows of the table by mechanism, each cell by its column."""
    changes = (ROOT / "CHANGELOG.md").read_text(encoding="utf-8")
    chapter = changes.split("### What works with what\n", 1)[1].split("\n### ", 1)[0]
    lines = [
        [cell.strip().replace("`", "") for cell in line.strip("|\n").split("|")]
        for line in chapter.splitlines()
        if line.startswith("|")
    ]
    return {row[0]: dict(zip(lines[0][1:], row[1:], strict=True)) for row in lines[2:]}


TABLE = table()


def options(row: str) -> dict[str, Any]:
    """What a row's first cell stands for, with what the mechanism needs."""
    mechanism, *pairs = row.split()
    given = {
        pairs[at].removeprefix("--").replace("-", "_"): pairs[at + 1]
        for at in range(0, len(pairs), 2)
    }
    return {"mechanism": mechanism, **NEEDED.get(mechanism, {}), **given}


def agreement(row: str) -> dict[str, Any]:
    """The same in a party's file, with sizes that a small table allows."""
    solver = NEWTON if TABLE[row]["newton"] == "only" else {}
    return {**AGREEMENTS[row.split()[0]], **solver, **options(row)}


@pytest.fixture(scope="module")
def rows() -> pl.DataFrame:
    """Two hundred rows of three columns; the label goes with the first."""
    values = {
        name: [(n * step) % 37 / 37 for n in range(200)]
        for name, step in zip("abc", (5, 11, 17), strict=True)
    }
    return pl.DataFrame({**values, "label": [int(value > 0.5) for value in values["a"]]})


def simulated(rows: pl.DataFrame, row: str, **more: Any) -> dict[str, Any]:
    common = {"label": "label", "alice_columns": "a,b", "seed": 1}
    return taciturn.train(rows, **{**common, **steps(row), **options(row), **more}).to_dict()


def steps(row: str) -> dict[str, Any]:
    """The shortest training there is."""
    return {"passes": 1} if TABLE[row]["newton"] == "only" else {"epochs": 1, "batch_size": 8}


def test_every_mechanism_has_a_row():
    assert {row.split()[0] for row in TABLE} == set(MECHANISMS)


@pytest.mark.parametrize("row", TABLE)
@pytest.mark.sampled(3)
def test_newton(rows, row):
    common: dict[str, Any] = {"label": "label", "scheme": "clear", "seed": 1, **options(row)}
    usual = resolved(Settings.from_mapping({**common, "data": "rows.csv"})).solver
    if TABLE[row]["newton"] == "refused":
        assert usual == "sgd"
        with refused(ConfigError, setting="solver"):
            taciturn.train(rows, **common, solver="newton")
    else:
        assert usual == "newton"
        assert taciturn.train(rows, **common).to_dict()["solver"] == "newton"
        with refused(ConfigError, names="paillier"):
            taciturn.train(rows, **{**common, "scheme": "paillier"}, solver="newton")
        if TABLE[row]["newton"] == "only":
            with pytest.raises(ConfigError) as raised:
                taciturn.train(rows, **common, solver="sgd")
            assert raised.value.setting == "solver"
        else:
            assert TABLE[row]["newton"] == "default"


@pytest.mark.sampled(6)
@pytest.mark.parametrize(
    "scheme",
    # Seconds each: every conversation has its own tests under paillier.
    ["bfv", pytest.param("paillier", marks=pytest.mark.slow), "clear"],
)
@pytest.mark.parametrize("row", TABLE)
def test_schemes(rows, row, scheme):
    bits = {"key_bits": 2048} if scheme == "paillier" else {}
    if TABLE[row][scheme] == "refused":
        with refused(ConfigError, setting="scheme", names=scheme):
            simulated(rows, row, scheme=scheme, **bits)
        return
    used = simulated(rows, row, scheme=scheme, **bits)
    if TABLE[row][scheme] == "unused":
        assert used["scheme"] == "clear"
    else:
        assert used["scheme"] == scheme


@pytest.mark.parametrize("row", TABLE)
def test_clear_is_for_simulations(row, tmp_path):
    assert TABLE[row]["clear"] == "simulation"
    path = write_config(tmp_path, "bob", agreement=agreement(row))
    assert PartyConfig.read(path).role == "bob"
    path = write_config(tmp_path, "bob", agreement={**agreement(row), "scheme": "clear"})
    with refused(ConfigError, setting="scheme"):
        PartyConfig.read(path)


@pytest.mark.parametrize(
    ("column", "setting"),
    [("class weights", {"class_weight": (0.5, 1.0)}), ("budget", {"budget": 100.0})],
)
@pytest.mark.parametrize("row", TABLE)
def test_class_weights_and_budgets(rows, row, column, setting):
    if TABLE[row][column] == "refused":
        with pytest.raises(taciturn.TaciturnError):
            simulated(rows, row, scheme="clear", **setting)
    else:
        assert simulated(rows, row, scheme="clear", **setting)["ledger"]


@pytest.mark.sampled(3)
@pytest.mark.parametrize("row", TABLE)
def test_attacks(rows, row):
    result = taciturn.audit(
        rows,
        seat="alice",
        label="label",
        seed=1,
        scheme="clear",
        canary=False,
        **steps(row),
        **options(row),
    ).to_dict()
    names = {attack["name"] for attack in result["attacks"]}
    expected = {"gradients": {GRADIENTS}, "residues": {RESIDUES}, "none": set()}[
        TABLE[row]["attacks"]
    ]
    assert names & {GRADIENTS, RESIDUES} == expected
    assert bool(names) == bool(expected)


@pytest.mark.sampled(3)
@pytest.mark.parametrize("row", TABLE)
def test_two_machines_predict_and_export(row, tmp_path):
    """A side's model files are there after a training; that scores are right has its own tests."""
    folder = trained(tmp_path, **agreement(row))
    assert TABLE[row]["two machines"] == TABLE[row]["predict"] == TABLE[row]["whole"] == "yes"
    hers, his = shares(folder)
    assert whole_to_onnx(whole_model(hers, his))
    for share, column in ((hers, "export: Alice's part"), (his, "Bob's part")):
        if TABLE[row][column] == "refused":
            with refused(ConfigError, names=share.role):
                own_part(share)
        else:
            assert own_to_onnx(own_part(share))
