"""New rows scored by two sides: the scores are the model's, and only Bob has them."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest

from taciturn.data.csv_files import Dialect
from taciturn.data.ids import Normalisation, RowIds
from taciturn.data.prepare import fit
from taciturn.data.source import TableSource
from taciturn.data.user_table import DEFAULTS
from taciturn.engine.callbacks import Callbacks
from taciturn.errors import (
    AgreementError,
    BudgetExceeded,
    ColumnError,
    FileError,
    RemoteProtocolError,
    RowIdError,
    RowOrderError,
)
from taciturn.jobs.base import Job
from taciturn.jobs.predict.declaration import LISTED_PREDICTION, PREDICTION
from taciturn.jobs.predict.job import PredictJob
from taciturn.jobs.predict.side import Answer, PredictionSide
from taciturn.model.share import ModelShare
from taciturn.model.whole import whole_model
from taciturn.numerics.threshold import chosen
from taciturn.party.aligned_rows import AlignedRows
from taciturn.party.config import PartyConfig
from taciturn.party.consent.budget import Charge
from taciturn.party.consent.score_budget import ScoreBudget
from taciturn.party.consent.scored_rows import RowOpening
from taciturn.party.consent.store import ConsentStore
from taciturn.party.new_rows import new_rows
from taciturn.protocol.events import ScoresDue
from taciturn.protocol.handshake import wire_form
from taciturn.protocol.messages import Hello
from taciturn.protocol.steps import Emit, Send
from taciturn.rng import KeyedEntropy
from tests.expected import all_refused, refused
from tests.model.models import share_of
from tests.party.sides import (
    MECHANISMS,
    NEWTON,
    Ends,
    run_both,
    run_jobs,
    write_config,
    write_tables,
)
from tests.party.spoken import declared_messages_only
from tests.party.wires import Wire
from tests.seldom import seldom

ROLES = ("alice", "bob")
# label-rr is tried over shared weights too.
TRAININGS: dict[str, dict[str, Any]] = {
    **MECHANISMS,
    "label-rr over sealed": {
        "mechanism": "label-rr",
        "epsilon": 2.0,
        "base_mechanism": "sealed",
        **NEWTON,
    },
    "sealed, revealed": {"mechanism": "sealed", "reveal": True, **NEWTON},
    "sealed, fresh keys, L2": {"mechanism": "sealed", "fresh-keys": True, "l2": 0.01, **NEWTON},
}


def trained(folder: Path, **agreement: Any) -> Path:
    """A folder with both shares of a small model, and new rows that were not trained on."""
    write_tables(folder)
    write_new(folder)
    for role in ROLES:
        write_config(folder, role, agreement={"epochs": 1, **agreement})
    run_both(folder).records  # noqa: B018 - raises where a side failed
    return folder


def write_new(folder: Path, rows: int = 30) -> None:
    """Rows beyond those of the training, each side's in an order of its own; one value is gone."""
    scratch = folder / "scratch"
    scratch.mkdir()
    write_tables(scratch, rows=120 + rows)
    for role in ROLES:
        frame = pl.read_csv(scratch / f"{role}.csv").filter(pl.col("id") >= "p0120")
        if role == "bob":
            frame = frame.drop("sick")
        name = frame.columns[1]
        frame = frame.with_columns(
            pl.when(pl.col("id") == "p0125").then(None).otherwise(pl.col(name)).alias(name)
        )
        frame.write_csv(folder / f"new-{role}.csv")
    shutil.rmtree(scratch)


@pytest.fixture(scope="module")
def plain_model(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return trained(tmp_path_factory.mktemp("plain"), **MECHANISMS["none"])


@pytest.fixture(scope="module")
def sealed_model(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return trained(tmp_path_factory.mktemp("sealed"), **MECHANISMS["sealed"])


@pytest.fixture
def plain(plain_model: Path, tmp_path: Path) -> Path:
    """A folder of one's own with a model that was trained once."""
    return Path(shutil.copytree(plain_model, tmp_path / "plain"))


@pytest.fixture
def sealed(sealed_model: Path, tmp_path: Path) -> Path:
    return Path(shutil.copytree(sealed_model, tmp_path / "sealed"))


def shares(folder: Path) -> list[ModelShare]:
    return [ModelShare.load(folder / f"{role}.model.json") for role in ROLES]


def question(folder: Path, role: str, only: tuple[str, ...] = (), **options: Any) -> PredictionSide:
    config, model = PartyConfig.read(folder / f"{role}.toml"), folder / f"{role}.model.json"
    return PredictJob(model, folder / f"new-{role}.csv", only, **options).prepare(config)


def listed(folder: Path, role: str, only: tuple[str, ...] = ()) -> PredictionSide:
    """The rows, and a list that says both sides have them."""
    path = folder / f"{role}.list.csv"
    ids = RowIds.from_values(list(only) or pl.read_csv(folder / f"new-{role}.csv")["id"])
    AlignedRows(ids, ids).write(path, "id")
    return question(folder, role, common=path)


def answers(ends: Ends) -> tuple[Answer, Answer]:
    for end in (ends.alice, ends.bob):
        if isinstance(end, BaseException):
            raise end
    return ends.alice, ends.bob


@dataclass(frozen=True)
class Prepared(Job[Answer]):
    """A prediction whose files are read already, and perhaps altered."""

    side: PredictionSide

    @property
    def purpose(self) -> int:
        return PREDICTION if self.side.rows.listed is None else LISTED_PREDICTION

    def prepare(self, config: PartyConfig) -> PredictionSide:
        return self.side


def in_threads(
    folder: Path,
    questions: dict[str, PredictionSide],
    wire: Wire | None = None,
    watch: dict[str, Callbacks] | None = None,
) -> Ends:
    """Both sides over a wire in memory."""

    return run_jobs(folder, {role: Prepared(side) for role, side in questions.items()}, wire, watch)


def expected(folder: Path) -> tuple[dict[str, float], float]:
    """The whole model's score of each new row, and how far rounding may take one from it."""
    alice, bob = shares(folder)
    whole = whole_model(alice, bob)
    hers = pl.read_csv(folder / "new-alice.csv").sort("id")
    his = pl.read_csv(folder / "new-bob.csv").sort("id")
    scores = whole.scores(hers, his)
    # From shares her features are rounded; from weights the score that she sends. Either has noise.
    slack = 2.0 ** -(alice.agreement["residue_bits"] + 1)
    if alice.sealed:
        grid = 2.0 ** -alice.scales["feature_bits"]
        # Bob's likewise where his weights are shared too.
        rounded = [whole.alices[0].weights] + [whole.bob.weights] * bool(alice.bob_share)
        slack = 0.5 * grid * sum(float(np.abs(weights).sum()) for weights in rounded)
    slack += 2.0**-12 + 1e-9
    return dict(zip(hers["id"].to_list(), scores.tolist(), strict=True)), slack


@pytest.mark.parametrize(
    "name", seldom(TRAININGS, always=["sealed, fresh keys, L2", "label-rr over sealed"])
)
@pytest.mark.sampled(1)
def test_scores_are_those_of_the_whole_model_and_bobs_alone(tmp_path, name):
    folder = trained(tmp_path, **TRAININGS[name])
    hers, his = answers(in_threads(folder, {role: question(folder, role) for role in ROLES}))
    assert hers.scores is None
    assert hers.rows() == ()
    assert not {"scores", "meaning", "suspected_wraps"} & set(hers.result.to_dict())
    # In the order of Bob's file.
    assert list(his.ids) == pl.read_csv(folder / "new-bob.csv")["id"].to_list()
    wanted, slack = expected(folder)
    above = his.result.threshold
    assert above is not None
    rows: Any = his.rows()
    for row in rows:
        assert abs(row.score - wanted[row.id]) <= slack
        assert abs(row.probability - 1 / (1 + np.exp(-row.score))) < 1e-12
        assert row.label == (row.score > above.score)
    assert len(wanted) == len(his.rows()) == 30
    assert his.result.suspected_wraps == 0


def test_one_row_is_picked_by_one_side_and_found_by_the_other(plain):
    asked = {"alice": question(plain, "alice"), "bob": question(plain, "bob", ("p0140",))}
    hers, his = answers(in_threads(plain, asked))
    (row,) = his.rows()
    assert row.id == "p0140"
    wanted, slack = expected(plain)
    assert row.score == pytest.approx(wanted["p0140"], abs=slack)
    record = hers.result.to_dict()
    assert (record["rows"], record["ids"], record["peer_ids"]) == (1, 30, 1)


def respelled(folder: Path, role: str, rows: slice, spell: Callable[[str], str]) -> None:
    """Some of a side's new rows, under ids of its own spelling, and a column that no model has."""
    path = folder / f"new-{role}.csv"
    frame = pl.read_csv(path)[rows]
    names = pl.Series("id", [spell(row_id) for row_id in frame["id"]])
    frame.with_columns(names, pl.lit("x").alias("more")).write_csv(path)


@pytest.mark.parametrize("name", ["plain", "sealed"])
def test_only_rows_that_both_have_are_scored_whatever_their_spelling(request, name):
    """Each side has rows of its own, in other letters; Bob gets his spelling, in his order."""
    folder = request.getfixturevalue(name)
    wanted, slack = expected(folder)
    respelled(folder, "alice", slice(0, 20), str.upper)
    respelled(folder, "bob", slice(0, 25), str.title)
    limit = {"alice": {"privacy": {"scores-per-row": 50}}, "bob": {}}
    agreed = {"epochs": 1, **MECHANISMS["none" if name == "plain" else name]}
    for role in ROLES:
        write_config(folder, role, agreement=agreed, data={"normalise_ids": "case"}, **limit[role])
    with declared_messages_only(PREDICTION):
        hers, his = answers(in_threads(folder, {role: question(folder, role) for role in ROLES}))
    order = pl.read_csv(folder / "new-bob.csv")["id"].to_list()
    common = [row_id for row_id in order if row_id.lower() < "p0140"]
    assert [row.id for row in his.rows()] == common
    assert len(common) == hers.result.rows == his.result.rows == 15
    assert (his.result.ids, his.result.peer_ids, his.result.normalise_ids) == (25, 20, "case")
    for row in his.rows():
        assert row.score == pytest.approx(wanted[row.id.lower()], abs=slack)
    # Alice counts what left: the rows that were scored, and no other.
    budget = ScoreBudget(ConsentStore(folder / "alice.consent.sqlite"), "bob", limit=50)
    left = dict.fromkeys(wanted, 50)
    left |= {row_id.lower(): 49 for row_id in common}
    for row_id, scores in left.items():
        budget.require(Charge(((RowIds.from_values([row_id]), RowOpening(unnamed=scores)),)))
        with pytest.raises(BudgetExceeded):
            budget.require(
                Charge(((RowIds.from_values([row_id]), RowOpening(unnamed=scores + 1)),))
            )


def test_rows_without_a_common_one_end_both_sides(plain):
    respelled(plain, "bob", slice(0, 30), str.upper)
    ends = in_threads(plain, {role: question(plain, role) for role in ROLES})
    all_refused(RowOrderError, ends.alice, ends.bob, names=30)
    # His ids alone have capitals, which he is told.
    assert "case" in ends.bob.hint
    chosen = {
        role: question(plain, role, normalisation=Normalisation.parse("case")) for role in ROLES
    }
    assert len(answers(in_threads(plain, chosen))[1].rows()) == 30


def test_another_normalisation_and_a_list_on_one_side_are_named(plain):
    asked = {role: question(plain, role) for role in ROLES}
    other = question(plain, "alice", normalisation=Normalisation.parse("case"))
    ends = in_threads(plain, {**asked, "alice": other})
    all_refused(AgreementError, ends.alice, ends.bob, names="case")
    ends = in_threads(plain, {**asked, "bob": listed(plain, "bob")})
    all_refused(AgreementError, ends.alice, ends.bob)


def test_a_list_is_scored_as_it_is(plain):
    """As an alignment wrote it: common ids that are not the file's, and rows that are left out."""
    rows = [f"p{number:04d}" for number in range(128, 134)]
    common = RowIds.from_values([f"c{number}" for number in range(6)])
    for role, order in (("alice", [0, 1, 2, 3, 4, 5]), ("bob", [5, 3, 1, 0, 2, 4])):
        taken = np.array(order)
        AlignedRows(RowIds.from_values(rows).take(taken), common.take(taken)).write(
            plain / f"{role}.list.csv", "id"
        )
    asked = {role: question(plain, role, common=plain / f"{role}.list.csv") for role in ROLES}
    hers, his = answers(in_threads(plain, asked))
    wanted, slack = expected(plain)
    # In the order of his file, whatever the list's.
    assert [row.id for row in his.rows()] == rows[::-1]
    assert all(abs(row.score - wanted[row.id]) <= slack for row in his.rows())
    assert "peer_ids" not in hers.result.to_dict()


def test_a_few_rows_of_sealed_do_not_tell_their_size(sealed):
    """Bob hears the size of the training's values, which he knows, whatever the rows are."""
    heard = set()
    for name in ("p0121", "p0140", "p0149"):
        asked = listed(sealed, "alice", (name,))
        assert 2.0**asked.model.magnitude_bits >= asked.rows.table.largest
        program = asked.program(KeyedEntropy.from_seed(1))
        first = program.send(None)
        assert isinstance(first, Send)
        assert isinstance(first.message, Hello)
        program.send(None)
        due = program.send(answered(first.message, asked))
        assert due == Emit(ScoresDue(RowIds.from_values([name])))
        second = program.send(None)
        assert isinstance(second, Send)
        assert isinstance(second.message, Hello)
        heard.add(second.message.magnitude_bits)
    assert heard == {ModelShare.load(sealed / "alice.model.json").magnitude_bits}


# --- the threshold of a class --------------------------------------------------------------------


def retrained(folder: Path, **output: Any) -> Path:
    """A folder with a small model, whose Bob has these settings about scores."""
    write_tables(folder)
    write_new(folder)
    agreed = {**MECHANISMS["none"], "held-out": 0.3}
    write_config(folder, "alice", agreement=agreed)
    write_config(folder, "bob", agreement=agreed, output=output)
    run_both(folder).records  # noqa: B018 - raises where a side failed
    return folder


def test_the_threshold_and_the_held_out_scores_are_those_of_the_model(tmp_path):
    """Bob's file holds what the whole model scores, and the best threshold of exactly that."""
    folder = retrained(tmp_path, **{"held-out-scores": "bob.held-out.csv"})
    path = folder / "bob.held-out.csv"
    assert path.stat().st_mode & 0o077 == 0
    held_out = pl.read_csv(path)
    assert held_out.columns == ["id", "score", "probability", "label"]
    alice, bob = shares(folder)
    assert held_out.height == bob.metrics["held_out"]["rows"] > 20
    hers, his = (
        held_out.select("id").join(pl.read_csv(folder / f"{role}.csv"), on="id", how="left")
        for role in ROLES
    )
    scores = whole_model(alice, bob).scores(hers, his.drop("sick"))
    assert np.abs(held_out["score"].to_numpy() - scores).max() < 2.0**-12 + 2.0**-19
    assert held_out["label"].to_list() == his["sick"].to_list()
    best = chosen(held_out["score"].to_numpy(), held_out["label"].to_numpy())
    stored = bob.metrics["threshold"]
    assert (stored["rule"], stored["rows"]) == ("youden", held_out.height)
    assert stored["score"] == pytest.approx(best.score)
    assert "threshold" not in alice.metrics
    _, answer = answers(in_threads(folder, {role: question(folder, role) for role in ROLES}))
    rows: Any = answer.rows()
    assert [row.label for row in rows] == [int(row.score > stored["score"]) for row in rows]
    # A number of the person's own comes first.
    asked = {"alice": question(folder, "alice"), "bob": question(folder, "bob", threshold=0.9)}
    _, answer = answers(in_threads(folder, asked))
    rows = answer.rows()
    assert [row.label for row in rows] == [int(row.probability > 0.9) for row in rows]
    assert answer.result.to_dict()["threshold"]["rule"] == "given"


def test_a_cost_or_a_number_in_bobs_file_decides_the_threshold(tmp_path):
    (tmp_path / "cost").mkdir()
    folder = retrained(
        tmp_path / "cost", **{"false-negative-cost": 50.0, "held-out-scores": "scores.csv"}
    )
    stored = shares(folder)[1].metrics["threshold"]
    held_out = pl.read_csv(folder / "scores.csv")
    best = chosen(held_out["score"].to_numpy(), held_out["label"].to_numpy(), 50.0)
    assert (stored["rule"], stored["score"]) == ("cost", pytest.approx(best.score))
    config = PartyConfig.read(write_config(folder, "bob", output={"threshold": 0.2}))
    assert config.output.threshold == 0.2


def test_a_probability_is_corrected_for_class_weights_and_a_class_is_not_moved(tmp_path):
    weights = [0.2, 1.0]
    folder = trained(tmp_path, **MECHANISMS["none"], **{"class-weight": weights, "held-out": 0.3})
    _, his = answers(in_threads(folder, {role: question(folder, role) for role in ROLES}))
    above = his.result.threshold
    assert above is not None
    rows: Any = his.rows()
    for row in rows:
        assert row.probability == pytest.approx(1 / (1 + np.exp(np.log(5) - row.score)))
        assert row.label == (row.score > above.score) == (row.probability > above.probability)


def test_a_held_out_row_is_named_as_bobs_table_names_it(tmp_path):
    write_tables(tmp_path)
    path = tmp_path / "bob.csv"
    path.write_text(path.read_text().replace("\np", "\nP"))
    common = RowIds.from_values([f"p{number:04d}" for number in range(120)])
    for role in ROLES:
        own = common if role == "alice" else RowIds(common.series.str.to_uppercase())
        AlignedRows(own, common).write(tmp_path / f"{role}.rows.csv", "id")
        data = {"aligned": f"{role}.rows.csv"}
        scores = {"held-out-scores": "scores.csv"} if role == "bob" else {}
        write_config(tmp_path, role, data=data, agreement={"held-out": 0.2}, output=scores)
    run_both(tmp_path).records  # noqa: B018 - raises where a side failed
    table = pl.read_csv(path).rename({"sick": "truth"})
    joined = pl.read_csv(tmp_path / "scores.csv").join(table, on="id")
    assert joined.height == shares(tmp_path)[1].metrics["held_out"]["rows"]
    assert joined["label"].to_list() == joined["truth"].to_list()


# --- sides that do not fit -----------------------------------------------------------------------


def test_other_rows_are_named_with_their_number(plain):
    asked = {"alice": listed(plain, "alice"), "bob": listed(plain, "bob", ("p0140",))}
    ends = in_threads(plain, asked)
    all_refused(AgreementError, ends.alice, ends.bob, names=(30, 1))
    # As many, and others.
    one = {"alice": listed(plain, "alice", ("p0141",)), "bob": asked["bob"]}
    ends = in_threads(plain, one)
    all_refused(AgreementError, ends.alice, ends.bob)


def test_shares_of_two_trainings_are_named(sealed):
    asked = {role: question(sealed, role) for role in ROLES}
    bob = replace(asked["bob"], model=replace(asked["bob"].model, session="0" * 32))
    ends = in_threads(sealed, {**asked, "bob": bob})
    all_refused(AgreementError, ends.alice, ends.bob, names="session")
    agreement = {**asked["alice"].model.agreement, "l2": 0.5}
    alice = replace(asked["alice"], model=replace(asked["alice"].model, agreement=agreement))
    ends = in_threads(sealed, {**asked, "alice": alice})
    all_refused(AgreementError, ends.alice, ends.bob, names="agreement")


def test_new_models_end_at_the_default_limit_of_mutual(tmp_path):
    """Six columns: two models may score a row, and those may score it again."""
    folder = trained(tmp_path, **{**MECHANISMS["mutual"], "passes": 1, "held-out": 0})
    for number in (1, 2, 3):
        if number > 1:
            run_both(folder, act=lambda party: party.run(fresh=True)).records  # noqa: B018
        for _ in (1, 2):
            ends = in_threads(folder, {role: question(folder, role) for role in ROLES})
            if number < 3:
                answers(ends)
            else:
                all_refused(BudgetExceeded, ends.alice, setting="scores_per_row", names=2)
                assert isinstance(ends.bob, BaseException)
    given = ScoreBudget.from_config(PartyConfig.read(folder / "alice.toml")).largest()
    assert (given.models, given.repetitions, given.trainings) == (2, 2, 3)


def test_alice_counts_the_scores_of_a_prediction(plain):
    """The model of the training has scored its rows; it scores new ones, and all of them again."""
    budget = ScoreBudget.from_config(PartyConfig.read(plain / "alice.toml"))
    before = budget.largest()
    for repetitions in (0, 1, 2):
        answers(in_threads(plain, {role: question(plain, role) for role in ROLES}))
        assert budget.largest() == replace(before, rows=before.rows + 30, repetitions=repetitions)
    for role in ROLES:
        shutil.copy(plain / f"{role}.csv", plain / f"new-{role}.csv")
    answers(in_threads(plain, {role: question(plain, role) for role in ROLES}))
    # Rows that the training scored at its end: by the same model, which is no further one.
    assert budget.largest().models == before.models


@pytest.mark.parametrize(
    ("changes", "kind", "named"),
    [
        ({"version": 99}, AgreementError, 99),
        ({"role": "alice"}, AgreementError, "alice"),
        ({"role": "carol"}, AgreementError, "alice"),
        ({"terms": "{"}, AgreementError, ()),
        ({"columns": -1}, RemoteProtocolError, -1),
    ],
    ids=str,
)
def test_a_greeting_that_does_not_fit_is_refused(plain, changes, kind, named):
    asked = listed(plain, "alice")
    program = asked.program(KeyedEntropy.from_seed(1))
    first = program.send(None)
    assert isinstance(first, Send)
    assert isinstance(first.message, Hello)
    program.send(None)
    with refused(kind, names=named):
        program.send(answered(first.message, asked, **changes))


def answered(heard: Hello, asked: PredictionSide, **changes: Any) -> Hello:
    """What Bob says to her greeting, about the same rows."""
    ids = asked.rows.table.ids.digest()
    return wire_form(replace(heard, **{"role": "bob", "ids_digest": ids, **changes}))


# --- rows and models that are not fit for use ----------------------------------------------------

TOWNS = pl.DataFrame(
    {
        "id": ["a", "b", "c", "d"],
        "age": [31.0, 44.0, None, 20.0],
        "town": ["A", "B", "A", None],
        "grade": ["1", "x", "2", "1"],
    }
)


def town_share(**changes: Any) -> ModelShare:
    return share_of(fit(TOWNS.drop("id"), DEFAULTS), "alice", **changes)


def rows_of(path: Path, text: str, share: ModelShare | None = None, **options: Any) -> Any:
    path.write_text(text)
    return new_rows(TableSource.at(path), "id", share or town_share(), **options)


@pytest.mark.parametrize(
    ("text", "kind", "names"),
    [
        ("id,age,town\na,1,A\n", ColumnError, "grade"),
        ("id,agee,city\na,1,A\n", ColumnError, ("age", "town", "grade")),
        ("who,age,town,grade\na,1,A,1\n", ColumnError, "'id'"),
        ("id,age,town,grade\na,old,A,1\n", ColumnError, "age"),
        ("id,age,town,grade\na,1,A,1\na,2,A,1\n", RowIdError, ()),
        ("id,age,town,grade\n", FileError, ()),
    ],
)
def test_rows_that_are_not_fit_are_named_with_their_file(tmp_path, text, kind, names):
    with refused(kind, names=names) as caught:
        rows_of(tmp_path / "new.csv", text)
    assert "new.csv" in caught.value.where


def test_one_of_the_rows_of_a_repeated_id_is_scored(tmp_path):
    path = tmp_path / "new.csv"
    path.write_text("id,age,town,grade\na,1,A,1\nb,5,A,1\nA,2,B,1\na,3,B,1\n")
    normalisation = Normalisation.parse("case")
    ways = {Dialect(duplicates="first"): ["a", "b"], Dialect(duplicates="last"): ["b", "a"]}
    for dialect, rows in ways.items():
        source = TableSource.at(path, dialect)
        taken = new_rows(source, "id", town_share(), normalisation=normalisation)
        assert taken.own_ids.series.to_list() == rows
    with refused(RowIdError):
        new_rows(TableSource.at(path), "id", town_share(), normalisation=normalisation)


def test_the_other_sides_share_is_refused_before_the_peer_is_called(plain):
    config = PartyConfig.read(plain / "bob.toml")
    with refused(FileError, names=("alice", "bob")):
        PredictJob(plain / "alice.model.json", plain / "new-bob.csv").prepare(config)
