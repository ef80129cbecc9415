"""Weights of evidence between two sides: Bob's figures, Alice's silence, her consent and count."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest

from taciturn.data.user_table import DEFAULTS
from taciturn.errors import (
    AgreementError,
    BudgetExceeded,
    ConfigError,
    PeerStopped,
)
from taciturn.party.config import PartyConfig
from taciturn.party.tables import load_tables
from taciturn.transport.certs import make_certificates
from taciturn_risk.woe.bins import cut_column, default_least
from taciturn_risk.woe.declaration import WEIGHT_OF_EVIDENCE
from taciturn_risk.woe.job import WoeJob, WoeOptions
from taciturn_risk.woe.weights import information_value, weights_of_evidence
from tests.expected import all_refused, refused
from tests.party.sides import Ends, run_jobs, write_config, write_tables
from tests.party.spoken import declared_messages_only
from tests.party.test_loads import COMMAND, NEVER, PAYING, within
from tests.test_two_machines import free_port
from tests.waiting import HANG

ROLES = ("alice", "bob")
ROWS = 400
USUAL = WoeOptions()


def furnished(folder: Path, woe: dict[str, Any] | None = None, **agreement: Any) -> Path:
    """Both sides' files; Alice allows it where nothing else is said."""
    write_tables(folder, rows=ROWS, alice=4)
    for role in ROLES:
        changes: dict[str, Any] = {"agreement": {"mechanism": "sealed", **agreement}}
        if role == "alice":
            changes["woe"] = {"allow": True} if woe is None else woe
        write_config(folder, role, **changes)
    return folder


def meet(folder: Path, choices: dict[str, WoeOptions] | None = None) -> Ends:
    """Both sides over a wire in memory."""

    return run_jobs(folder, {role: WoeJob((choices or {}).get(role, USUAL)) for role in ROLES})


def by_hand(folder: Path, least: int) -> dict[str, list[tuple[str, int, int, float]]]:
    """What a person with both tables computes, of the training rows."""
    train = load_tables(PartyConfig.read(folder / "bob.toml"))
    assert train.labels is not None
    ids = train.labels.ids.series.to_list()
    place = {name: row for row, name in enumerate(pl.read_csv(folder / "alice.csv")["id"])}
    hers = pl.read_csv(folder / "alice.csv").drop("id")[[place[name] for name in ids]]
    ones = train.labels.values == 1
    table = {}
    for series in hers.get_columns():
        (cut,), _ = cut_column(series, DEFAULTS, least)
        hits = np.bincount(cut.codes[ones], minlength=len(cut.labels))
        weights = weights_of_evidence(hits, cut.rows)
        table[cut.name] = list(
            zip(cut.labels, cut.rows.tolist(), hits.tolist(), weights.tolist(), strict=True)
        )
    return table


def figures(result: Any) -> dict[str, list[tuple[str, int, int, float]]]:
    return {
        column.name: [(one.label, one.rows, one.ones, one.woe) for one in column.bins]
        for column in result.columns
    }


@pytest.mark.parametrize("mechanism", [{}, {"mechanism": "add", "epsilon": 1.0}])
def test_bob_has_what_a_person_with_both_tables_computes_and_alice_has_nothing(tmp_path, mechanism):
    """Also where the agreed mechanism encrypts nothing: the labels still leave under his key."""
    folder = furnished(tmp_path, {"allow": True, "share-names": True}, **mechanism)
    with declared_messages_only(WEIGHT_OF_EVIDENCE):
        ends = meet(folder)
    hers, his = ends.records
    config = PartyConfig.read(folder / "bob.toml")
    rows = load_tables(config).train.rows
    expected = by_hand(folder, default_least(rows))
    assert figures(ends.bob) == expected
    assert rows < ROWS
    assert his["rows"] == hers["rows"] == rows
    for column in ends.bob.columns:
        ones = np.array([one.ones for one in column.bins])
        sizes = np.array([one.rows for one in column.bins])
        assert column.iv == pytest.approx(information_value(ones, sizes))
    # Nothing of labels is in what she has.
    text = json.dumps(hers)
    assert all(f'"{word}"' not in text for word in ("woe", "iv", "ones", "bits", "smoothing"))
    assert hers["tables"] == {"given": 1, "limit": 1}
    assert his["label_epsilon"] == hers["label_epsilon"] == 0
    assert his["scheme"] == "bfv"
    assert his["counts_told"] == sum(len(bins) - 1 for bins in expected.values())


def test_names_are_hidden_unless_she_tells_them(tmp_path):
    ends = meet(furnished(tmp_path))
    (hers, his) = ends.records
    assert hers["names_hidden"]
    assert his["names_hidden"]
    assert {column["name"] for column in his["columns"]} == {f"alice.{n}" for n in range(1, 5)}
    names = {column["own"] for column in hers["columns"]}
    assert names == set(pl.read_csv(tmp_path / "alice.csv").columns) - {"id"}
    assert '"own"' not in json.dumps(his)
    sizes = sorted(sorted(one["rows"] for one in column["bins"]) for column in his["columns"])
    expected = by_hand(tmp_path, default_least(his["rows"]))
    assert sizes == sorted(sorted(rows for _, rows, _, _ in bins) for bins in expected.values())


def test_her_least_rows_come_from_her_command_first(tmp_path):
    folder = furnished(tmp_path, {"allow": True, "min-rows": 60, "tables": 5})
    for choice, least in ((USUAL, 60), (WoeOptions(min_rows=120), 120)):
        hers, his = meet(folder, {"alice": choice}).records
        assert hers["min_rows"] == least
        assert min(one["rows"] for c in his["columns"] for one in c["bins"]) >= least


def test_without_her_consent_she_refuses_and_bob_hears_of_it(tmp_path):
    ends = meet(furnished(tmp_path, {}))
    all_refused(AgreementError, ends.alice, names="allow")
    all_refused(PeerStopped, ends.bob)


def test_a_second_table_is_refused_before_anything_is_sent(tmp_path):
    """By the difference of two tables whose labels differ in one row Bob would know its bins."""
    folder = furnished(tmp_path)
    meet(folder).records  # noqa: B018 - raises where a side failed
    ends = meet(folder)
    all_refused(BudgetExceeded, ends.alice, setting="tables")
    all_refused(PeerStopped, ends.bob)
    write_config(
        folder, "alice", agreement={"mechanism": "sealed"}, woe={"allow": True, "tables": 2}
    )
    hers, _ = meet(folder).records
    assert hers["tables"] == {"given": 2, "limit": 2}


def test_sides_that_are_not_set_up_alike_hear_in_what(tmp_path):
    folder = furnished(tmp_path)
    write_config(folder, "bob", agreement={"mechanism": "sealed", "split-seed": "other"})
    all_refused(AgreementError, meet(folder).alice, names="split-seed")
    # The handshake comes before her count.
    assert not (folder / "alice.consent.sqlite").exists()


@pytest.mark.parametrize(
    ("role", "choice", "named"),
    [
        ("alice", {"smoothing": 1.0}, "smoothing"),
        ("bob", {"min_rows": 10}, "min-rows"),
        ("bob", {"share_names": True}, "share-names"),
        ("bob", {"smoothing": -1.0}, "smoothing"),
    ],
)
def test_what_is_the_other_sides_to_choose_is_refused(tmp_path, role, choice, named):
    config = PartyConfig.read(furnished(tmp_path) / f"{role}.toml")
    with refused(ConfigError, names=named):
        WoeJob(WoeOptions(**choice)).prepare(config)


def test_several_alices_are_refused(tmp_path):
    furnished(tmp_path)
    pins = {"alice": "a" * 64, "other": "b" * 64}
    path = write_config(tmp_path, "alice", woe={"allow": True}, **{"agreement.parties": pins})
    with refused(ConfigError):
        WoeJob().prepare(PartyConfig.read(path))


def started(folder: Path, role: str, *options: str) -> subprocess.Popen[str]:
    command = [sys.executable, "-c", COMMAND, f"{role}.modules", "woe", f"{role}.toml", *options]
    return subprocess.Popen(
        command, cwd=folder, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    )


def test_two_processes_with_certificates_weigh_and_load_their_own_side_alone(tmp_path):
    folder = furnished(tmp_path, {"allow": True, "share-names": True})
    make_certificates(folder / "certs", list(ROLES))
    address = f"127.0.0.1:{free_port()}"
    agreed = {"mechanism": "sealed"}
    write_config(folder, "bob", agreement=agreed, link={"listen": address})
    write_config(
        folder,
        "alice",
        agreement=agreed,
        link={"connect": address},
        woe={"allow": True, "share-names": True},
    )
    running = {role: started(folder, role, "--json") for role in ROLES}
    records = {}
    for role, process in running.items():
        out, problems = process.communicate(timeout=HANG)
        assert process.returncode == 0, problems
        records[role] = json.loads(out)
    expected = by_hand(folder, default_least(records["bob"]["rows"]))
    assert {
        column["name"]: [(o["label"], o["rows"], o["ones"], o["woe"]) for o in column["bins"]]
        for column in records["bob"]["columns"]
    } == expected
    loaded = {role: set(json.loads((folder / f"{role}.modules").read_text())) for role in ROLES}
    for role in ROLES:
        assert not within(loaded[role], *(room for room in NEVER if room != "taciturn_risk"))
    assert not within(loaded["alice"], "taciturn.protocol.bob", "taciturn_risk.woe.bob", *PAYING)
    assert within(loaded["alice"], "taciturn_risk.woe.alice")
    assert not within(loaded["bob"], "taciturn.protocol.alice", "taciturn_risk.woe.alice")
