"""The life of a model that newton trained between two parties: trained, stopped, resumed, used."""

from __future__ import annotations

import json
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest

import taciturn
from taciturn.arrays import IntArray
from taciturn.crypto.bfv import BfvScheme
from taciturn.deploy import Party, PartyConfig, Rhythm, Trial, template
from taciturn.deploy.transport import make_certificates
from taciturn.engine import Callbacks
from taciturn.errors import BudgetExceeded, ConfigError, PeerStopped
from taciturn.model import own_part, own_to_onnx, to_sklearn, whole_model, whole_to_onnx
from taciturn.numerics import of_labels, optimum, penalised_loss
from taciturn.privacy import EncryptedMechanism
from taciturn.protocol import PartDone, Progress
from taciturn.protocol.alice import own_scores
from taciturn.rng import KeyedEntropy
from tests.deploy.hosts import Hosts, Side, both_finish
from tests.deploy.sides import (
    NEWTON,
    model_numbers,
    numbers_in_one_process,
    run_both,
    write_config,
    write_tables,
)
from tests.deploy.test_party import Pulled, party_alone, pulled_at, record, require_held_out_auc
from tests.deploy.test_predict import answers, expected, in_threads, question, shares, write_new
from tests.modules import module_of
from tests.test_two_machines import free_port
from tests.waiting import wait_until

ROLES = ("alice", "bob")
PASSES = 4
KINDS: dict[str, dict[str, Any]] = {
    "none": {"mechanism": "none"},
    "sealed": {"mechanism": "sealed"},
    "mutual": {"mechanism": "mutual"},
    "label-rr over none": {"mechanism": "label-rr", "epsilon": 2.0, "over": "none"},
    "label-rr over sealed": {"mechanism": "label-rr", "epsilon": 2.0, "over": "sealed"},
}


def set_up(folder: Path, name: str = "sealed", **agreement: Any) -> None:
    for role in ROLES:
        write_config(
            folder,
            role,
            agreement={**NEWTON, **KINDS[name], **agreement},
            state={"every-iterations": 2},
        )


@dataclass(frozen=True)
class Model:
    """A folder in which two parties have trained once, and what they said."""

    name: str
    folder: Path
    alice: dict[str, Any]
    bob: dict[str, Any]


def shared(model: Model) -> bool:
    """Whether Alice's weights are."""
    return "sealed" in model.name or model.name == "mutual"


@pytest.fixture(scope="module", params=KINDS)
def model(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Model:
    folder = tmp_path_factory.mktemp("newton")
    write_tables(folder)
    write_new(folder)
    # Where nobody sees a score there is no look on the way.
    look = "end" if request.param == "mutual" else "epoch"
    set_up(folder, request.param, evaluate=look)
    return Model(request.param, folder, *run_both(folder, act=record(folder)).records)


@pytest.mark.sampled(1)
def test_the_weights_are_those_of_one_process_fed_the_same_coins(model):
    assert model_numbers(model.folder) == numbers_in_one_process(model.folder)[0]
    assert model.bob["peer_confirmed"]
    assert (model.alice["ledger"], model.alice["metrics"]) == ({}, {})
    require_held_out_auc(model.folder, model.bob["metrics"]["held_out"]["auc"])
    assert model.bob.get("suspected_wraps") == (0 if "sealed" in model.name else None)


def test_bob_has_tested_the_scores_where_they_are_exact_and_nobody_else_knows(model):
    expected = {"largest": 0, "passed": True} if "sealed" in model.name else None
    assert model.bob.get("symmetry") == expected
    assert "symmetry" not in model.alice
    hers, his = shares(model.folder)
    assert his.metrics.get("symmetry") == expected
    assert "symmetry" not in hers.metrics


@pytest.mark.sampled(1)
def test_the_files_name_the_solver_and_a_penalty_that_fits_the_rows(model):
    for share in shares(model.folder):
        agreed = share.agreement
        assert (agreed["solver"], agreed["epochs"], agreed["batch_size"]) == (
            "newton",
            PASSES,
            share.rows,
        )
        assert agreed["l2"] == 1.0 / share.rows
    hers, his = shares(model.folder)
    # Each side's coordinates are its own alone.
    assert bool(hers.whitening) == shared(model)
    assert bool(his.whitening) == (model.name == "mutual")
    assert hers.whitening != his.whitening or not shared(model)


def test_it_is_near_the_optimum_of_both_tables(model):
    alice, bob = (party_alone(model.folder, role) for role in ROLES)
    whole = whole_model(*shares(model.folder))
    method, side = bob.terms.mechanism, bob.bob_side(KeyedEntropy.from_seed(1))
    assert isinstance(method, EncryptedMechanism)
    assert side is not None

    # The flips are those of the training: they lie in Bob's file.
    likelihood = of_labels(side.labels.values, method.likelihood)
    joined = np.hstack([alice.tables.train.values, bob.tables.train.values])
    weights = np.concatenate([whole.alices[0].weights, whole.bob.weights])
    l2 = bob.terms.agreement.l2
    best = optimum(joined, likelihood, l2, 1)
    loss = penalised_loss(joined @ weights, likelihood, weights, l2, 1)
    # Steps on a public schedule are slower than a search.
    assert -1e-6 < loss - best.loss < (0.1 if model.name == "mutual" else 0.03)


def test_every_pass_is_a_point_of_the_curve_and_a_step_of_the_figures(model):
    if model.name == "mutual":
        assert "curve" not in model.bob["metrics"]
        return
    curve = model.bob["metrics"]["curve"]
    assert [point["iteration"] for point in curve] == list(range(1, PASSES + 1))
    for point in curve:
        assert {"train_loss", "held_out_loss", "held_out_auc"} < point.keys()
    # On the way the rounded table's rows are looked at, and the last search still follows.
    slack = 0.03
    final = model.bob["metrics"]["held_out"]["loss"]
    assert curve[-1]["held_out_loss"] == pytest.approx(final, abs=slack)
    for role in ROLES:
        figures = json.loads((model.folder / f"{role}.metrics.json").read_text())
        assert figures["iterations"] == figures["iterations_total"] == PASSES
    log = (model.folder / "bob.log").read_text()
    assert log.count("held-out rows evaluated") == PASSES
    assert "held-out" not in (model.folder / "alice.log").read_text()


def test_new_rows_are_scored_as_the_whole_model_scores_them(model):
    hers, his = answers(
        in_threads(model.folder, {role: question(model.folder, role) for role in ROLES})
    )
    assert hers.scores is None
    wanted, slack = expected(model.folder)
    if shared(model):
        # Whitened rows are rounded, not columns.
        slack = 2.0**-8
    assert len(wanted) == len(his.rows()) == 30
    assert max(abs(row.score - wanted[row.id]) for row in his.rows()) <= slack


def test_it_can_be_exported_where_the_mechanism_lets_it(model):
    hers, his = shares(model.folder)
    whole = whole_model(hers, his)
    assert whole_to_onnx(whole)
    if model.name == "mutual":
        with pytest.raises(ConfigError, match="random share"):
            own_part(his)
    else:
        assert own_to_onnx(own_part(his))
    if shared(model):
        with pytest.raises(ConfigError, match="random share"):
            own_part(hers)
    else:
        assert own_to_onnx(own_part(hers))
    rows = {role: pl.read_csv(model.folder / f"new-{role}.csv").sort("id") for role in ROLES}
    scores = whole.scores(rows["alice"], rows["bob"])
    joined = rows["alice"].join(rows["bob"], on="id", how="inner", maintain_order="left")
    exported = to_sklearn(hers, his)
    assert np.abs(exported.decision_function(joined.drop("id")) - scores).max() < 1e-9


def test_an_alice_who_moves_one_score_is_found_and_not_told(tmp_path, monkeypatch):
    """One unit of one row in one pass; the training ends as ever."""
    write_tables(tmp_path)
    set_up(tmp_path)
    asked: list[int] = []

    def moved(*given: Any) -> IntArray:
        scores = own_scores(*given)
        asked.append(len(scores))
        scores[5] += len(asked) == 2
        return scores

    monkeypatch.setattr(module_of(own_scores), "own_scores", moved)
    alice, bob = run_both(tmp_path).records
    assert bob["symmetry"]["passed"] is False
    assert bob["symmetry"]["largest"] > 0
    assert shares(tmp_path)[1].metrics["symmetry"] == bob["symmetry"]
    assert (alice["peer_confirmed"], bob["peer_confirmed"]) == (True, True)
    assert "symmetry" not in alice


# --- stops ----------------------------------------------------------------------------------------

# In the first pass, at a checkpoint, and amid the last one; each with either side.
STOPS = [("none", "alice", 1), ("none", "bob", 5), ("sealed", "alice", 7), ("sealed", "bob", 3)]
STOPS += [("mutual", "bob", 5)]
MORE_STOPS = [
    (name, role, event)
    for name in KINDS
    for role in ROLES
    for event in (1, 2, 4, 6, 8)
    if (name, role, event) not in STOPS
]


@pytest.mark.sampled(3)
@pytest.mark.parametrize(
    ("name", "role", "event"),
    [*STOPS, *(pytest.param(*stop, marks=pytest.mark.slow) for stop in MORE_STOPS)],
)
def test_a_side_that_is_stopped_goes_on_to_the_same_weights(tmp_path, name, role, event):
    write_tables(tmp_path)
    set_up(tmp_path, name)
    first = run_both(tmp_path, act=record(tmp_path), watch=pulled_at(role, event))
    stopped, other = (first.alice, first.bob) if role == "alice" else (first.bob, first.alice)
    assert isinstance(stopped, Pulled)
    assert isinstance(other, PeerStopped)
    _, bob = run_both(tmp_path, act=record(tmp_path)).records
    assert model_numbers(tmp_path) == numbers_in_one_process(tmp_path)[0]
    # Of all passes: those before the stop are kept with what was asked in them.
    tested = {"largest": 0, "passed": True} if "sealed" in name else None
    assert bob.get("symmetry") == tested
    curve = bob["metrics"].get("curve", [])
    seen = 0 if name == "mutual" else PASSES
    assert [point["iteration"] for point in curve] == list(range(1, seen + 1))


def test_a_told_model_is_the_same_after_a_stop(tmp_path):
    """Its noise too: a second draw would be a second release."""
    write_tables(tmp_path)
    set_up(tmp_path, "sealed", reveal=True, **{"reveal-epsilon": 4.0})
    first = run_both(tmp_path, act=record(tmp_path), watch=pulled_at("bob", 4))
    assert isinstance(first.bob, Pulled)
    _, bob = run_both(tmp_path, act=record(tmp_path)).records
    assert (bob["ledger"]["label_epsilon_total"], bob["ledger"]["label_delta_total"]) == (4.0, 1e-6)
    assert model_numbers(tmp_path) == numbers_in_one_process(tmp_path)[0]
    (hers, *_), _ = model_numbers(tmp_path)
    assert len(hers) == len(shares(tmp_path)[0].columns)


@pytest.mark.parametrize("every", ["two passes", "so many bytes"])
@pytest.mark.sampled(1)
def test_checkpoints_bound_what_is_played_back(tmp_path, monkeypatch, every):
    """With one every two passes no more than two are run again after a stop."""
    write_tables(tmp_path)
    set_up(tmp_path, passes=9)
    if every == "so many bytes":
        # Long messages alone are a reason; whoever resumes holds them all.
        monkeypatch.setattr(
            module_of(Party), "Rhythm", lambda *_: Rhythm(1000, 1000.0, frame_bytes=1)
        )
    # Three events a pass.
    run_both(tmp_path, watch=pulled_at("bob", 24))
    done: list[int] = []

    def observe(event: Any) -> None:
        if isinstance(event, Progress):
            done.append(event.done)

    run_both(tmp_path, watch={"bob": Callbacks(observe=observe)}).records  # noqa: B018
    assert done[0] > 8 - 3
    assert done[-1] == 9


@pytest.mark.parametrize(
    ("role", "part"),
    [
        ("bob", 5),
        # The same from the other side: some seconds each.
        pytest.param("alice", 2, marks=pytest.mark.slow),
        pytest.param("alice", 10, marks=pytest.mark.slow),
    ],
)
def test_a_side_that_is_stopped_between_two_parts_goes_on_to_the_same_weights(tmp_path, role, part):
    """Three parts of the rows, and a stop after one of them."""
    write_wide_tables(tmp_path, rows=3 * 8192)
    set_up(tmp_path, passes=2)

    def act(party: Party) -> Any:
        party.terms = replace(party.terms, scheme=BfvScheme(part_tiles=1))
        return record(tmp_path)(party)

    parts: list[Any] = []

    def observe(event: Any) -> None:
        if isinstance(event, PartDone):
            parts.append(event)
            if len(parts) == part:
                raise Pulled

    first = run_both(tmp_path, act=act, watch={role: Callbacks(observe=observe)})
    assert isinstance(first.alice if role == "alice" else first.bob, Pulled)
    run_both(tmp_path, act=act).records  # noqa: B018
    assert model_numbers(tmp_path) == numbers_in_one_process(tmp_path)[0]


def write_wide_tables(folder: Path, rows: int) -> None:
    """More rows than a ciphertext holds."""
    coins = KeyedEntropy.from_seed(3)
    values = coins.uniform((rows, 3))
    ids = [f"p{number}" for number in range(rows)]
    label = (values.sum(axis=1) + coins.fork("label").uniform((rows,)) > 2).astype(int)
    pl.DataFrame({"id": ids, "a": values[:, 0], "b": values[:, 1]}).write_csv(folder / "alice.csv")
    pl.DataFrame({"id": ids, "c": values[:, 2], "sick": label}).write_csv(folder / "bob.csv")


class OneHost(Hosts):
    """Both parties on this machine: no namespaces."""

    def prefix(self, role: str) -> list[str]:
        return []


def furnish(folder: Path, name: str) -> None:
    """Certificates, settings on a free port, tables; a training of many passes."""
    write_tables(folder, rows=400)
    make_certificates(folder / "certs", [*ROLES])
    address = f"127.0.0.1:{free_port()}"
    for role in ROLES:
        way: dict[str, Any] = {"listen": None, "connect": None}
        way["listen" if role == "bob" else "connect"] = address
        write_config(
            folder,
            role,
            agreement={**NEWTON, **KINDS[name], "passes": 40},
            link={**way, "dead-seconds": 2.0},
            state={"every-iterations": 7},
        )


@pytest.mark.parametrize(
    ("name", "killed"),
    [
        # A second real training each; in threads every kind of stop is tried.
        pytest.param("sealed", "bob", marks=pytest.mark.slow),
        pytest.param("sealed", "alice", marks=pytest.mark.slow),
        pytest.param("none", "bob", marks=pytest.mark.slow),
        pytest.param("none", "alice", marks=pytest.mark.slow),
        pytest.param("mutual", "bob", marks=pytest.mark.slow),
        pytest.param("mutual", "alice", marks=pytest.mark.slow),
    ],
)
def test_killed_amid_a_pass_a_process_goes_on_to_the_same_weights(tmp_path, name, killed):
    """kill -9, real certificates and a real connection."""
    furnish(tmp_path, name)
    sides = {role: Side(OneHost({}), tmp_path, role) for role in ROLES}
    for side in sides.values():
        side.start()
    victim = sides[killed]
    # The key alone has 565 kB.
    wait_until(lambda: victim.kept() > 700_000, "no pass was begun")
    victim.kill()
    assert not (tmp_path / f"{killed}.model.json").exists(), "it had ended before it was killed"
    victim.start()
    both_finish(*sides.values())
    assert model_numbers(tmp_path) == numbers_in_one_process(tmp_path)[0]
    assert sides["bob"].record["peer_confirmed"]
    assert '"event": "session resumed"' in (tmp_path / f"{killed}.log").read_text()


# --- what the parties are told --------------------------------------------------------------------


@pytest.mark.sampled(1)
@pytest.mark.parametrize("name", ["none", "sealed", "mutual"])
def test_a_dry_run_counts_passes(tmp_path, name):
    write_tables(tmp_path)
    set_up(tmp_path, name)
    alice, bob = run_both(tmp_path, act=lambda party: party.dry_run()).records
    assert alice["estimate"]["iterations"] == PASSES
    assert alice["estimate"]["bytes_to_bob"] > 0
    assert bob["estimate"] is None
    # Where she has the weights, training rows are scored once more at the end.
    opened = 0 if name == "mutual" else PASSES + (name == "none")
    assert alice["columns_exposed"]["scores_per_row"] == opened
    opening = f"up to {opened} scores of each" if opened else "Bob receives no score of a"
    assert f"{opening} training row" in alice["columns_exposed"]["warning"]
    assert not (tmp_path / "bob-state").exists()


def test_alices_limit_counts_passes(tmp_path):
    write_tables(tmp_path)
    set_up(tmp_path)
    write_config(
        tmp_path,
        "alice",
        agreement={**NEWTON, **KINDS["sealed"]},
        privacy={"scores-per-row": 2 * PASSES - 1},
    )
    run_both(tmp_path).records  # noqa: B018 - raises where a side failed
    again = run_both(tmp_path, act=lambda party: party.run(fresh=True))
    assert isinstance(again.alice, BudgetExceeded)
    assert "7" in again.alice.message


def test_init_writes_newton_and_nothing_to_tune():
    for mechanism in ("sealed", "mutual", "none", "label-rr"):
        text = template("bob", Trial(mechanism))
        assert '\nsolver = "newton"' in text
        for name in ("epochs", "batch-size", "learning-rate", "patience"):
            assert f"\n{name} =" not in text
            assert f"\n# {name} =" not in text
    assert "\nepochs = " in template("bob", Trial("add"))


def test_a_file_that_names_no_solver_has_newton(tmp_path):
    write_tables(tmp_path)
    set_up(tmp_path, passes=None)
    settings = PartyConfig.read(tmp_path / "bob.toml").settings()
    assert (settings.solver, settings.passes, settings.epochs) == ("newton", 12, None)
    set_up(tmp_path, "mutual", passes=None)
    settings = PartyConfig.read(tmp_path / "bob.toml").settings()
    assert (settings.solver, settings.passes, settings.epochs) == ("newton", 40, None)
    set_up(tmp_path, "none", passes=None, epochs=3)
    settings = PartyConfig.read(tmp_path / "bob.toml").settings()
    assert (settings.solver, settings.passes, settings.epochs) == ("sgd", None, 3)


@pytest.mark.parametrize(
    ("agreement", "setting"),
    [
        ({"mechanism": "add", "epsilon": 1.0}, "solver"),
        ({"mechanism": "mult", "epsilon": 1.0}, "solver"),
        ({"mechanism": "hybrid", "alice-columns": 6, "l-rr": 16}, "solver"),
        ({"mechanism": "sealed", "scheme": "paillier"}, "scheme"),
    ],
)
def test_what_has_no_newton_says_so_in_a_partys_file_too(tmp_path, agreement, setting):
    write_tables(tmp_path)
    path = write_config(tmp_path, "bob", agreement={**NEWTON, "solver": "newton", **agreement})
    with pytest.raises(ConfigError) as raised:
        party_alone(tmp_path, "bob")
    assert f"{path}, [agreement] {setting}" in str(raised.value)


def test_settings_that_differ_are_named(tmp_path):
    write_tables(tmp_path)
    set_up(tmp_path)
    write_config(tmp_path, "alice", agreement={**NEWTON, **KINDS["sealed"], "passes": 5})
    end = run_both(tmp_path).bob
    assert "epochs: 4 here, 5 there" in str(end)


# --- a recording ----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "mechanism",
    # The attack on sums has tests of its own, and takes seconds.
    # And that of shared scores has nothing more to see than that of sealed weights.
    [
        pytest.param("none", marks=pytest.mark.slow),
        "sealed",
        pytest.param("mutual", marks=pytest.mark.slow),
    ],
)
def test_a_recorded_training_is_audited(tmp_path, mechanism):
    values = np.round(np.sin(np.arange(300).reshape(60, 5) ** 1.5), 3)
    frame = pl.DataFrame({f"c{j}": values[:, j] for j in range(5)}).with_columns(
        label=pl.Series((values.sum(axis=1) > 0).astype(int))
    )
    path = tmp_path / "run.transcript"
    result = taciturn.train(
        frame, label="label", mechanism=mechanism, scheme="clear", seed=1, passes=3, record=path
    ).to_dict()
    assert (result["solver"], result["passes"]) == ("newton", 3)
    audited = taciturn.audit(frame, transcript=path, canary=False).to_dict()
    names = {attack["name"] for attack in audited["attacks"]}
    assert ("moments" in names) == (mechanism == "none")
    assert bool(names) == (mechanism == "none")
