"""Bob and several Alices over TLS: they train, score and export one model, whatever stops one."""

from __future__ import annotations

import signal
import subprocess
import sys
import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import roc_auc_score

from taciturn.crypto import KeyIdentity
from taciturn.data import Normalisation
from taciturn.deploy import BROKEN, AligningParty, Party, PartyConfig, Predictor, Question
from taciturn.deploy.transport import make_certificates
from taciturn.engine import Callbacks, Channel, Endpoints, Transcript
from taciturn.errors import (
    AgreementError,
    PeerAbsent,
    PeerRefused,
    PeerSilent,
    PeerStopped,
    TaciturnError,
)
from taciturn.model import whole_to_onnx
from taciturn.protocol import (
    Boundary,
    Endorsement,
    Endorsements,
    Introduction,
    PublicBytes,
    Roster,
    decode,
    encode,
    kind_of,
)
from taciturn.rng import KeyedEntropy
from tests.certificates import issue_again
from tests.deploy.several import (
    Act,
    Company,
    Side,
    all_end,
    all_run,
    processes,
    records,
    role_of,
    star_of_hosts,
    training,
)
from tests.deploy.sides import MECHANISMS, run_both, write_config, write_tables
from tests.deploy.test_party import record
from tests.deploy.wires import HookedEndpoint, Hooks, changing
from tests.seldom import seldom
from tests.system import needs_namespaces
from tests.waiting import HANG, wait_until

SGD: dict[str, Any] = {"epochs": 2, "batch-size": 8, "learning-rate": 0.1, "passes": None}
CIRCLE = {Introduction, Roster, Endorsement, Endorsements}


def company(folder: Path, *, rows: int = 120, **values: Any) -> Company:
    made = Company(folder, **values)
    made.write_tables(rows)
    return made


def require_the_same(star: Company, ends: dict[str, dict[str, Any]]) -> None:
    """Bit for bit what one process makes of the same coins; and all was said once."""
    numbers, ledger = star.in_one_process()
    assert star.model_numbers() == numbers
    assert ends["bob"]["ledger"] == ledger
    star.assert_one_version()


# --- from tables to scores ------------------------------------------------------------------------


def aligning(config: PartyConfig, way: Endpoints, calls: Callbacks) -> Any:
    return AligningParty(config, way, calls, Normalisation.of("none")).run()


def trying(config: PartyConfig, way: Endpoints, calls: Callbacks) -> Any:
    return Party.of(config, way, calls, dry_run=True).dry_run()


def scoring(config: PartyConfig, way: Endpoints, calls: Callbacks) -> Any:
    question = Question.read(config, config.path(config.output.model), config.path("new.csv"))
    return Predictor(config, way, calls).run(question)


def require_scores(star: Company, scores: dict[str, float], slack: float) -> None:
    """They are those of the whole model, from raw columns."""
    frames = [
        pl.read_csv(star.place(name) / "new.csv")
        .filter(pl.col("id").is_in(list(scores)))
        .sort("id")
        for name in (*star.names, "bob")
    ]
    wanted = star.whole().scores(*frames)
    assert frames[0]["id"].to_list() == sorted(scores)
    assert np.abs(wanted - [scores[name] for name in sorted(scores)]).max() < slack


def require_auc_of_scikit_learn(star: Company, reported: float, slack: float) -> None:
    """On the rows that were held out, after a training on the joined table."""
    tables = [star.party(name).tables for name in (*star.names, "bob")]
    his = tables[-1]
    assert his.labels is not None
    assert his.held_out_labels is not None
    # Bob's last column is the intercept, which scikit-learn has of its own.
    joined, held_out = (
        np.hstack([part.values for part in parts])[:, :-1]
        for parts in (
            [one.train for one in tables],
            [one.held_out for one in tables if one.held_out is not None],
        )
    )
    reference = LogisticRegression(C=1.0, tol=1e-8, max_iter=1000)
    reference.fit(joined, his.labels.values)
    auc = roc_auc_score(his.held_out_labels.values, reference.decision_function(held_out))
    assert abs(reported - auc) <= slack


def require_model(star: Company, bob: dict[str, Any]) -> None:
    """Files of one session, which can be put together and exported."""
    shares = {name: star.share(name) for name in star.all}
    assert len({share.session for share in shares.values()}) == 1
    assert [shares[name].name for name in star.names] == list(star.names)
    assert whole_to_onnx(star.whole())
    assert [party["name"] for party in bob["parties"]] == list(star.names)


@pytest.mark.slow  # a second or two, and others show the same on less
def test_two_alices_and_bob_from_their_tables_to_scores(tmp_path):
    """Over TLS in threads; each lacks rows that the others have."""
    star = Company(tmp_path, agreement={"passes": None})
    star.write_tables(300, differ=5)
    aligned = records(star.run(aligning))
    assert {end["common"] for end in aligned.values()} == {300 - 3 * 5}
    tried = records(star.run(trying))
    assert {end["agreement"]["alice-columns"] for end in tried.values()} == {10}
    ends = records(star.run())
    assert all(end["peer_confirmed"] for end in ends.values())
    require_the_same(star, ends)
    require_model(star, ends["bob"])
    auc = ends["bob"]["metrics"]["held_out"]["auc"]
    require_auc_of_scikit_learn(star, auc, slack=0.005)
    for place, name in enumerate(star.all):
        star.write_new(name, 300 + 3 * place, 30)
    answers = star.run(scoring)
    assert [answers[name].scores for name in star.names] == [None, None]
    scores = dict(zip(answers["bob"].ids, answers["bob"].scores.tolist(), strict=True))
    assert len(scores) == 30 - 2 * 3
    require_scores(star, scores, slack=2.0**-8)


@pytest.mark.slow  # half a minute: the commands themselves, in three terminals
def test_the_commands_of_three_terminals(tmp_path):
    star = Company(tmp_path, agreement={"passes": None})
    star.write_tables(450, columns=10, differ=7)
    with processes(star) as sides:
        aligned = all_run(sides, "align")
        assert {end["common"] for end in aligned.values()} == {450 - 3 * 7}
        assert all(end["dry_run"] for end in all_run(sides, "party", "--dry-run").values())
        ends = all_run(sides, "party", "--record", "transcript")
        require_the_same(star, ends)
        require_model(star, ends["bob"])
        require_auc_of_scikit_learn(star, ends["bob"]["metrics"]["held_out"]["auc"], slack=0.005)
        for name in star.all:
            star.write_new(name, 450, 60)
        answer = all_run(sides, "predict", "--rows", "new.csv")
        assert "scores" not in answer["alice-1"]
        scores = {row["id"]: row["score"] for row in answer["bob"]["scores"]}
        require_scores(star, scores, slack=2.0**-8)
    files = [str(tmp_path / name / f"{role_of(name)}.model.json") for name in star.all]
    command = [sys.executable, "-m", "taciturn", "model", "export", *files, "--onnx", "all.onnx"]
    subprocess.run(command, cwd=tmp_path, check=True, capture_output=True)
    assert (tmp_path / "all.onnx").stat().st_size > 0


KINDS: dict[str, dict[str, Any]] = {
    "sealed, sgd": {**SGD, **MECHANISMS["sealed"]},
    "none": MECHANISMS["none"],
    "none, sgd": {**SGD, **MECHANISMS["none"]},
    "label-rr": {**MECHANISMS["label-rr"], "epsilon": 4.0},
    "label-rr over none": {**MECHANISMS["label-rr"], "epsilon": 4.0, "over": "none"},
    "label-rr, sgd": {**SGD, **MECHANISMS["label-rr"], "epsilon": 4.0},
    "add": {**SGD, **MECHANISMS["add"]},
    "mult": {**SGD, **MECHANISMS["mult"]},
}


@pytest.mark.slow  # some seconds; simulations try all of them
@pytest.mark.parametrize("name", seldom(KINDS, always=["sealed, sgd"]))
def test_every_mechanism_for_several_trains_to_the_weights_of_one_process(tmp_path, name):
    star = company(tmp_path, agreement=KINDS[name])
    ends = records(star.run())
    require_the_same(star, ends)
    require_model(star, ends["bob"])
    # Fresh noise may make any model of so few rows.
    if name.startswith(("sealed", "none")):
        assert ends["bob"]["metrics"]["held_out"]["auc"] > 0.9


# --- kills ----------------------------------------------------------------------------------------


def wait_for_progress(side: Side, before: int) -> None:
    """Until its journal has grown or begun anew: frames cross."""
    wait_until(lambda: side.kept() not in (0, before) or side.code is not None, "nothing went on")


def kill_in_turn(star: Company, killed: list[str]) -> dict[str, dict[str, Any]]:
    """Each is killed amid the training, and started again at once; how all end."""
    with processes(star) as sides:
        for side in sides.values():
            side.train()
        wait_until(lambda: sides["bob"].kept() > 20_000, "the training never began")
        for name in killed:
            assert sides["bob"].code is None, "the training was over before anybody was killed"
            sides[name].kill()
            before = sides["bob"].kept()
            sides[name].train()
            wait_for_progress(sides["bob"], before)
        return all_end(sides)


@pytest.mark.slow  # real processes; test_star.py kills toy ones at every record
def test_a_killed_alice_is_run_again_and_all_finish(tmp_path):
    """She is a process, and Bob waits amid the training until she is killed."""
    star = company(tmp_path, agreement=KINDS["sealed, sgd"])
    amid, killed = threading.Event(), threading.Event()

    def observe(event: object) -> None:
        if isinstance(event, Boundary) and event.state.iteration == 8:
            amid.set()
            assert killed.wait(HANG)

    def mortal(config: PartyConfig, way: Endpoints, calls: Callbacks) -> Any:
        with processes(star) as sides:
            side = sides["alice-2"]
            side.train()
            wait_until(lambda: amid.is_set() or side.code is not None)
            side.kill()
            side.train()
            killed.set()
            all_end({"alice-2": side})

    ends = star.run(alice_2=mortal, watch={"bob": Callbacks(observe=observe)})
    assert ends.pop("alice-2") is None
    require_the_same(star, records(ends))
    assert "session resumed" in (star.place("alice-2") / "alice.log").read_text()


@pytest.mark.slow  # up to half a minute each: four processes are started after the first three
@pytest.mark.parametrize("name", ["sealed", "sealed, sgd", "none, sgd"])
def test_everybody_may_be_killed_in_turn(tmp_path, name):
    longer = {"passes": 40} if name == "sealed" else {"epochs": 6}
    kind = {} if name == "sealed" else KINDS[name]
    star = company(tmp_path, rows=400, agreement={**kind, **longer})
    ends = kill_in_turn(star, ["alice-1", "bob", "alice-2", "bob"])
    require_the_same(star, ends)
    for party in star.all:
        log = star.place(party) / f"{role_of(party)}.log"
        assert "session resumed" in log.read_text()


@pytest.mark.slow  # two trainings; that the same coins give the same weights is tried always
def test_a_training_that_was_interrupted_ends_where_another_does(tmp_path):
    """With other coins: equal to the rounding."""
    settings = {"passes": 30}
    for part in ("killed", "whole"):
        (tmp_path / part).mkdir()
    killed = company(tmp_path / "killed", rows=400, agreement=settings)
    kill_in_turn(killed, ["alice-1", "bob", "alice-2"])
    whole = company(tmp_path / "whole", rows=400, agreement=settings)
    records(whole.run())
    assert np.abs(killed.weights() - whole.weights()).max() < 0.02


class Pulled(BaseException):
    """This side ends here."""


def pulled_at(name: str, boundary: int) -> dict[str, Callbacks]:
    def observe(event: object) -> None:
        if isinstance(event, Boundary) and event.state.iteration == boundary:
            raise Pulled

    return {name: Callbacks(observe=observe)}


@pytest.mark.parametrize("name", seldom(["bob", "alice-1", "alice-2"], always=["bob"]))
@pytest.mark.slow  # a second, and others show the same on less
def test_a_side_that_stops_between_two_passes_goes_on_to_the_same_weights(tmp_path, name):
    star = company(tmp_path)
    ends = star.run(watch=pulled_at(name, 3))
    assert isinstance(ends.pop(name), Pulled)
    assert all(isinstance(end, PeerStopped) for end in ends.values())
    # Of one of several it is said who.
    assert [name in ends[other].message for other in sorted(ends)] == [name != "bob"] * 2
    require_the_same(star, records(star.run()))


# --- hosts ---------------------------------------------------------------------------------------


@needs_namespaces
@pytest.mark.slow  # ten seconds each; two hosts are tried always
@pytest.mark.parametrize("name", ["sealed", "none"])
def test_three_alices_and_bob_on_four_hosts(tmp_path, name):
    names = ("alice-1", "alice-2", "alice-3")
    star = company(tmp_path, rows=300, names=names, agreement=MECHANISMS[name])
    with star_of_hosts(star) as hosts, processes(star, hosts.prefixes) as sides:
        for side in sides.values():
            side.train()
        ends = all_end(sides)
    assert all(end["peer_confirmed"] for end in ends.values())
    require_the_same(star, ends)
    require_model(star, ends["bob"])
    require_auc_of_scikit_learn(star, ends["bob"]["metrics"]["held_out"]["auc"], slack=0.02)


@needs_namespaces
@pytest.mark.slow  # ten seconds: a pulled cable is noticed after a while
def test_one_pulled_cable_changes_nothing(tmp_path):
    names = ("alice-1", "alice-2", "alice-3")
    star = company(tmp_path, rows=300, names=names, agreement={"passes": 30})
    log = star.place("bob") / "bob.log"
    with star_of_hosts(star) as hosts, processes(star, hosts.prefixes) as sides:
        for side in sides.values():
            side.train()
        wait_until(lambda: sides["bob"].kept() > 20_000, "the training never began")
        # Nothing goes on while the cable is being pulled, so that it is pulled amid the training.
        sides["alice-2"].signal(signal.SIGSTOP)
        hosts.cable("alice-2", "down")
        sides["alice-2"].signal(signal.SIGCONT)
        wait_until(lambda: f"alice-2: {BROKEN}" in log.read_text(), "nobody noticed the cable")
        hosts.cable("alice-2", "up")
        ends = all_end(sides)
    assert log.read_text().count("alice-2: connected") == 2
    assert log.read_text().count("alice-1: connected") == 1
    require_the_same(star, ends)


# --- one who is not as she should be --------------------------------------------------------------


class Met:
    """An endpoint that tells when it has a connection."""

    def __init__(self, endpoint: Endpoints, meetings: list[str]) -> None:
        assert not isinstance(endpoint, Mapping)
        self._endpoint, self._meetings = endpoint, meetings

    def connect(self, timeout: float) -> Channel:
        channel = self._endpoint.connect(timeout)
        self._meetings.append("met")
        return channel

    def close(self) -> None:
        self._endpoint.close()


class Stage:
    """Bob begins when so many Alices are connected: he is impatient, and a machine may be busy."""

    def __init__(self, waits_for: int = 1) -> None:
        self._met, self._waits_for = list[str](), waits_for
        self._over, self._act = threading.Event(), training()

    def first(self, config: PartyConfig, way: Endpoints, calls: Callbacks) -> Any:
        """An Alice as she should be."""
        return self._act(config, Met(way, self._met), calls)

    def bob(self, config: PartyConfig, way: Endpoints, calls: Callbacks) -> Any:
        wait_until(lambda: len(self._met) >= self._waits_for)
        try:
            return self._act(config, way, calls)
        finally:
            self._over.set()

    def refused(self, config: PartyConfig, way: Endpoints, calls: Callbacks) -> Any:
        """One who ends before Bob begins."""
        try:
            return self._act(config, way, calls)
        finally:
            self._met.append("refused")

    def absent(self, config: PartyConfig, way: Endpoints, calls: Callbacks) -> Any:
        """An Alice who never comes."""

    def silent(self, config: PartyConfig, way: Endpoints, calls: Callbacks) -> Any:
        """One who is connected, and says nothing."""
        Met(way, self._met).connect(HANG)
        assert self._over.wait(HANG)


IMPATIENT = {"connect-seconds": 1.0, "answer-seconds": 1.0}


def require_named(ends: dict[str, Any], kind: type[TaciturnError], *words: str) -> None:
    """Bob says that it is alice-2, and so does he tell the other."""
    assert isinstance(ends["bob"], kind), ends
    for word in ("alice-2", *words):
        assert word in ends["bob"].message
    assert isinstance(ends["alice-1"], PeerStopped), ends
    assert "alice-2" in ends["alice-1"].message


def finish(star: Company, again: Act | None = None) -> None:
    """Everybody runs again with the usual patience; alice-2 in another way, if need be."""
    star.write("bob")
    ends = star.run(alice_2=again or training())
    require_the_same(star, records(ends))


@pytest.mark.sampled(1)
@pytest.mark.parametrize("fault", ["absent", "silent"])
def test_an_alice_who_does_not_begin_is_named_and_waited_for_again(tmp_path, fault):
    star, stage = company(tmp_path), Stage(waits_for=2 if fault == "silent" else 1)
    star.write("bob", link=IMPATIENT)
    ends = star.run(bob=stage.bob, alice_1=stage.first, alice_2=getattr(stage, fault))
    require_named(ends, PeerAbsent, "no connection to alice-2")
    noted = "alice-2: the peer is connected and has not begun"
    assert (noted in (star.place("bob") / "bob.log").read_text()) == (fault == "silent")
    finish(star)


@pytest.mark.slow  # Bob's patience must be longer than a busy machine takes for a pass
def test_an_alice_who_falls_silent_amid_the_training_is_named(tmp_path):
    star, over = company(tmp_path), threading.Event()

    def observe(event: object) -> None:
        if isinstance(event, Boundary) and event.state.iteration == 2:
            assert over.wait(HANG)
            raise Pulled

    def bob(config: PartyConfig, way: Endpoints, calls: Callbacks) -> Any:
        try:
            return training()(config, way, calls)
        finally:
            over.set()

    star.write("bob", link={"answer-seconds": 8.0})
    ends = star.run(bob=bob, watch={"alice-2": Callbacks(observe=observe)})
    require_named(ends, PeerSilent)
    finish(star)


@pytest.mark.slow  # some seconds; test_star.py tries it with toy programs
def test_an_alice_who_is_late_is_waited_for(tmp_path):
    star, said = company(tmp_path), list[str]()

    def late(config: PartyConfig, way: Endpoints, calls: Callbacks) -> Any:
        wait_until(lambda: "alice-2: connected" in said)
        return training()(config, way, calls)

    ends = star.run(alice_1=late, watch={"bob": Callbacks(announce=said.append)})
    require_the_same(star, records(ends))


@contextmanager
def another_certificate(star: Company, *, authority: bool) -> Iterator[None]:
    """alice-2 has another key under her name, of the same authority or of another one."""
    others = star.folder / "others"
    if authority:
        make_certificates(others, ["alice-2", "bob"])
    else:
        issue_again(star.folder / "certs", others, "alice-2")
    pins = {"alice-2": star.fingerprint("alice-2", "others")}
    # Of a handshake that fails she is not told more than that nobody answers.
    link = {"connect-seconds": 0.5 if authority else HANG}
    # Her own file names the key that she has: her side would not begin otherwise.
    star.write("alice-2", certs="others", link=link, **{"agreement.parties": pins})
    if authority:
        trusted = (others / "ca.pem").read_text() + (star.folder / "certs" / "ca.pem").read_text()
        (others / "ca.pem").write_text(trusted)
    yield
    star.write("alice-2")


@pytest.mark.sampled(1)
@pytest.mark.parametrize("authority", [False, True], ids=["another key", "another authority"])
def test_an_alice_with_another_certificate_is_named(tmp_path, authority):
    star, stage = company(tmp_path), Stage(waits_for=2)
    star.write("bob", link=IMPATIENT)
    with another_certificate(star, authority=authority):
        ends = star.run(bob=stage.bob, alice_1=stage.first, alice_2=stage.refused)
    require_named(ends, PeerAbsent, "no connection to alice-2")
    if not authority:
        assert "alice-2: its certificate is not the agreed one" in ends["bob"].message
    assert isinstance(ends["alice-2"], PeerAbsent if authority else PeerRefused)
    # Bob has not met her: she alone starts over, since she began with other settings.
    finish(star, training(fresh=True))


@contextmanager
def another_agreement(star: Company) -> Iterator[Act]:
    star.write("alice-2", agreement={"passes": 5})
    yield training()
    star.write("alice-2")


@contextmanager
def another_list(star: Company) -> Iterator[Act]:
    """One row is another one's."""
    table = star.place("alice-2") / "alice.csv"
    text = table.read_text()
    table.write_text(text.replace("p0007,", "q0007,"))
    yield training()
    table.write_text(text)


@contextmanager
def forged_signature(star: Company) -> Iterator[Act]:
    """alice-2 has her key and certificate, and signs the roster with another key."""
    forged = list[bytes]()
    other = KeyIdentity.simulated("alice-2", KeyedEntropy.from_seed(1))

    def change(frame: bytes) -> bytes:
        message = decode(frame)
        if not isinstance(message, Endorsement):
            return frame
        forged.append(frame)
        return encode(replace(message, signature=PublicBytes(other.sign(b"the roster"))))

    def act(config: PartyConfig, way: Endpoints, calls: Callbacks) -> Any:
        assert not isinstance(way, Mapping)
        return training()(config, HookedEndpoint(way, Hooks(sending=changing(change))), calls)

    yield act
    assert forged, "no signature was forged"


@pytest.mark.sampled(1)
@pytest.mark.parametrize(
    ("fault", "words"),
    [
        (another_agreement, "epochs: 4 here, 5 there"),
        (another_list, "alice-2"),
        (forged_signature, "alice-2"),
    ],
)
def test_an_alice_who_is_not_set_up_alike_is_named_before_anything_is_released(
    tmp_path, fault, words
):
    star = company(tmp_path)
    with fault(star) as act:
        ends = star.run(alice_2=act)
        require_named(ends, AgreementError, words)
        assert isinstance(ends["alice-2"], TaciturnError)
    assert not list(tmp_path.glob("*/*.model.json"))
    # Nothing was released: run again, they start a session that fits.
    ends = records(star.run())
    require_the_same(star, ends)


# --- one Alice ------------------------------------------------------------------------------------


def kinds(transcript: Transcript) -> list[str]:
    return [f"{sender} {kind_of(frame).__name__}" for sender, frame in transcript.records]


@pytest.mark.slow  # some seconds
def test_one_alice_is_introduced_to_nobody(tmp_path):
    """What crosses between two parties has no word of several, and several have no other words."""
    pair = tmp_path / "pair"
    pair.mkdir()
    write_tables(pair)
    for role in ("alice", "bob"):
        agreed = {**SGD, **MECHANISMS["sealed"]}
        write_config(pair, role, agreement=agreed)
    run_both(pair, act=record(pair)).records  # noqa: B018 - raises where a side failed
    two = Transcript.load(pair / "bob.transcript")
    assert not {kind_of(frame) for _, frame in two.records} & CIRCLE
    assert two.links == 1
    assert "parties" not in two.header["agreement"] or two.header["agreement"]["parties"] is None
    (tmp_path / "star").mkdir()
    star = company(tmp_path / "star", agreement=agreed)
    records(star.run())
    circle = {kind.__name__ for kind in CIRCLE}
    for place in (0, 1):
        spoken = kinds(star.transcript("bob").link(place))
        assert {word.split()[1] for word in spoken} > circle
        rest = [word for word in spoken if word.split()[1] not in circle]
        assert set(rest) == set(kinds(two))
