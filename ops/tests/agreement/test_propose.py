"""Propose, review, sign: what is proposed is what the proposer's file says, and what is signed."""

from __future__ import annotations

import io
import json
import math
import stat
import tomllib
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from ops.tests.tampering import AGREED, NAMED, furnish, name_agreement

import taciturn.transport  # noqa: F401 - before anybody imports grpc: it says which ciphers
from taciturn.__main__ import run
from taciturn.engine.callbacks import Callbacks
from taciturn.errors import (
    AgreementError,
    ConfigError,
    PeerRefused,
    PeerStopped,
    SignatureError,
)
from taciturn.jobs.resumable import ResumableSide
from taciturn.jobs.train.dry_run import DryRunJob
from taciturn.jobs.train.job import TrainJob
from taciturn.model.share import ModelShare
from taciturn.party.agreement_file import AgreementFile
from taciturn.party.config import PartyConfig
from taciturn.party.tables import PartyTables, load_tables
from taciturn.party.training_inputs import party_terms
from taciturn.privacy.registry import mechanism_class
from taciturn.protocol.events import Event, Progress
from taciturn.report.blocks import Facts, Section
from taciturn.report.html import render as render_html
from taciturn.report.training import SHARED_PEOPLE
from taciturn.results.folder import from_record
from taciturn.transport.dial import DialEndpoint
from taciturn.transport.grpc_channel import KeyPin
from taciturn.transport.serve import Hub
from taciturn.transport.tls import load_credentials, show_certificate
from taciturn_audit.results.check import CLEAR
from taciturn_ops.agreement.propose import proposal_text, propose
from taciturn_ops.agreement.report import review_page
from taciturn_ops.agreement.result import Review
from tests.certificates import issue_again
from tests.expected import all_refused, refused
from tests.modules import module_of
from tests.party.sides import MECHANISMS, NEWTON, run_both, write_config
from tests.repository.test_schema import problems
from tests.waiting import HANG


def command(capsys: pytest.CaptureFixture[str], *words: str) -> tuple[int, str, str]:
    """A command in this process: its exit code, and what it printed."""
    code = run(list(words))
    out, err = capsys.readouterr()
    return code, out, err


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    furnish(tmp_path)
    monkeypatch.chdir(tmp_path)
    return tmp_path


# --- a proposal says what the proposer's file says -----------------------------------------------


@pytest.fixture(scope="module")
def proposer(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, dict[str, PartyTables]]:
    folder = tmp_path_factory.mktemp("proposer")
    furnish(folder)
    configs = (PartyConfig.read(folder / f"{role}.toml") for role in ("alice", "bob"))
    return folder, {config.role: load_tables(config) for config in configs}


@st.composite
def agreements(draw: st.DrawFn) -> dict[str, Any]:
    """Settings that go together."""
    name = draw(st.sampled_from(sorted(MECHANISMS)))
    chosen = {"alice-columns": 6, **MECHANISMS[name]}
    positive = st.floats(1e-6, 10, allow_subnormal=False)
    if draw(st.sampled_from(mechanism_class(name).solvers)) == "newton":
        chosen |= {**NEWTON, "passes": draw(st.integers(1, 60)), "l2": draw(positive)}
    else:
        chosen |= {"epochs": draw(st.integers(1, 99)), "batch-size": 8}
        chosen |= {"learning-rate": draw(positive)}
        chosen |= {"schedule": draw(st.sampled_from(["constant", "inverse", "inverse-sqrt"]))}
        penalty = draw(st.sampled_from(["l1", "l2"]))
        chosen |= {"decay": draw(st.floats(0, 1)), penalty: draw(st.floats(0, 0.01))}
    if "epsilon" in chosen:
        chosen["epsilon"] = draw(st.floats(0.1, 8))
    chosen["split-seed"] = draw(st.text(max_size=12).filter(str.isprintable))
    chosen["held-out"] = draw(st.sampled_from([0, 0.1, 1 / 3]))
    chosen["feature-bits"] = draw(st.integers(10, 18))
    return {key: value for key, value in chosen.items() if value is not None}


@given(values=agreements(), role=st.sampled_from(["alice", "bob"]))
@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_a_proposal_comes_to_the_same_terms_bit_by_bit(proposer, values, role):
    folder, tables = proposer
    sections = tomllib.loads((folder / f"{role}.toml").read_text())
    sections = {**sections, "agreement": values}
    sections.pop("role")
    own = PartyConfig(role, folder, sections, f"{role}.toml")
    made = propose(own, tables[role], "agreement.toml")
    read = AgreementFile.parse(proposal_text(made), "agreement.toml")
    assert read == made
    by_file = PartyConfig(role, folder, sections, f"{role}.toml", read)
    first, second = (party_terms(config, tables[role]).agreement for config in (own, by_file))
    assert second.file_digest == made.digest
    assert second.model_copy(update={"file_digest": None}).canonical() == first.canonical()
    assert by_file.agreed["rows"] == tables[role].train.rows


def test_either_side_may_propose_and_both_come_to_the_same_settings(proposer):
    folder, tables = proposer
    configs = {role: PartyConfig.read(folder / f"{role}.toml") for role in ("alice", "bob")}
    made = {
        role: propose(config, tables[role], "agreement.toml") for role, config in configs.items()
    }
    assert made["alice"].agreement == made["bob"].agreement
    assert made["alice"].id != made["bob"].id
    assert made["alice"].alices[0].columns is not None
    assert made["alice"].bob.columns is None
    assert made["bob"].bob.label == "sick"
    until = made["bob"].valid_until - datetime.now(UTC)
    assert timedelta(days=29) < until <= timedelta(days=30)


def test_columns_can_be_kept_to_oneself_and_the_peers_key_named(folder, capsys):
    options = ["--hide-columns", "--peer-certificate", "certs/alice.pem", "--valid-days", "5"]
    code, out, _ = command(capsys, "agreement", "propose", "bob.toml", *options)
    assert code == 0
    # Standard output is the file, and nothing else.
    made = AgreementFile.parse(out, "agreement.toml")
    assert (made.bob.label, made.bob.columns, made.bob.prepared) == (None, None, 3)
    assert made.alices[0].fingerprint == show_certificate(Path("certs/alice.pem")).fingerprint
    assert "mean_symmetry" not in out
    record = json.loads(command(capsys, "agreement", "propose", "bob.toml", "--json")[1])
    assert problems(record, "propose") == []
    assert from_record(record).to_dict() == record
    assert AgreementFile.parse(record["text"], "x").digest == record["agreement"]["digest"]
    for wrong in (["--peer-certificate", "certs/carol.pem"], ["--valid-until", "2020-01-01"]):
        assert (
            command(capsys, "agreement", "propose", "bob.toml", *wrong)[0] == ConfigError.exit_code
        )


def test_a_study_is_a_part_of_what_is_signed(proposer):
    folder, tables = proposer
    made = propose(PartyConfig.read(folder / "bob.toml"), tables["bob"], "agreement.toml")
    study = {"folds": 5, "l2": [0.01, 0.1], "columns": {"few": ["a b", "c"]}, "runs": [{"x": 0.3}]}
    more = replace(made, study=study)
    read = AgreementFile.parse(proposal_text(more), "agreement.toml")
    assert read == more
    assert read.digest != made.digest
    assert replace(read, study=None).digest == made.digest
    other = proposal_text(more).replace("folds = 5", "folds = 6")
    assert AgreementFile.parse(other, "agreement.toml").digest != read.digest


# --- signing -------------------------------------------------------------------------------------


def proposed(folder: Path, capsys: pytest.CaptureFixture[str], *options: str) -> Path:
    code, *_ = command(
        capsys, "agreement", "propose", "bob.toml", "--out", "agreement.toml", *options
    )
    assert code == 0
    return folder / "agreement.toml"


def sign(capsys: pytest.CaptureFixture[str], *roles: str) -> list[int]:
    """The exit codes of sides that sign the proposal."""
    return [
        command(capsys, "agreement", "sign", "agreement.toml", f"{role}.toml", "--yes")[0]
        for role in roles
    ]


def test_both_sign_train_and_find_the_digest_in_their_models(folder, capsys):
    path = proposed(folder, capsys)
    path.write_text("# our own remark\n" + path.read_text())
    path.chmod(0o640)
    settings = folder / "bob.toml"
    head, own = settings.read_text().partition("[agreement]")[0], settings.read_text()
    ours = "# Our own.\n[data]"
    settings.write_text(own.replace("[data]", ours))
    settings.chmod(0o640)
    assert sign(capsys, "bob") == [0]
    # Two lines in place of the settings; the rest as it was.
    assert settings.read_text() == head + NAMED + ours + own.partition("[data]")[2]
    assert stat.S_IMODE(settings.stat().st_mode) == 0o640
    once = path.read_text()
    with refused(SignatureError, names="alice"):
        TrainJob().prepare(PartyConfig.read(folder / "bob.toml"))
    code, out, _ = command(
        capsys, "agreement", "sign", "agreement.toml", "alice.toml", "--yes", "--json"
    )
    record = json.loads(out)
    assert code == 0
    assert problems(record, "sign") == []
    assert from_record(record).to_dict() == record
    assert (record["already"], record["added"]) == (False, True)
    twice = path.read_text()
    assert twice.startswith(once.rstrip())
    assert stat.S_IMODE(path.stat().st_mode) == 0o640
    words = ("agreement", "sign", "agreement.toml", "alice.toml", "--yes", "--json")
    assert json.loads(command(capsys, *words)[1])["already"]
    assert path.read_text() == twice
    assert run_both(folder).records
    digest = AgreementFile.read(path).digest
    for role in ("alice", "bob"):
        assert ModelShare.load(folder / f"{role}.model.json").agreement["file_digest"] == digest


def test_a_signature_needs_a_yes(folder, capsys, monkeypatch):
    path = proposed(folder, capsys)
    before = path.read_text()
    assert (
        command(capsys, "agreement", "sign", "agreement.toml", "bob.toml")[0]
        == ConfigError.exit_code
    )

    class Terminal(io.StringIO):
        def isatty(self) -> bool:
            return True

    monkeypatch.setattr("sys.stdin", Terminal("n\n"))
    assert command(capsys, "agreement", "sign", "agreement.toml", "bob.toml")[0] != 0
    assert path.read_text() == before
    monkeypatch.setattr("sys.stdin", Terminal("y\n"))
    assert command(capsys, "agreement", "sign", "agreement.toml", "bob.toml")[0] == 0
    assert path.read_text() != before


@pytest.mark.parametrize(
    ("old", "new", "kind", "named"),
    [
        ("passes = 4", "passes = 5", SignatureError, "5"),
        ('file = "alice.csv"', 'file = "alice.csv"\ndrop = ["mean_area"]', AgreementError, "5"),
        ('peer = "bob"', 'peer = "carol"', SignatureError, "carol"),
        ("certs/alice", "certs/carol", SignatureError, "carol"),
        ("[privacy]", "[privacy]\nscores-per-row = 3", SignatureError, "4"),
    ],
    ids=["settings", "columns", "peer", "certificate", "limit"],
)
@pytest.mark.sampled(2)
def test_a_side_whose_file_does_not_fit_does_not_sign(folder, capsys, old, new, kind, named):
    path = proposed(folder, capsys)
    before, file = path.read_text(), folder / "alice.toml"
    file.write_text(file.read_text().replace(old, new))
    code, _, err = command(capsys, "agreement", "sign", "agreement.toml", "alice.toml", "--yes")
    assert code == kind.exit_code
    assert named in err
    assert path.read_text() == before


def test_a_table_that_is_not_the_agreed_one_is_refused_when_signing_and_when_training(
    folder, capsys
):
    proposed(folder, capsys)
    assert sign(capsys, "bob", "alice") == [0, 0]
    name_agreement(folder / "bob.toml")
    table = (folder / "bob.csv").read_text()
    (folder / "bob.csv").write_text(table.replace("mean_symmetry", "mean_age"))
    assert sign(capsys, "bob") == [SignatureError.exit_code]
    with refused(SignatureError, names=("mean_symmetry", "mean_age")):
        TrainJob().prepare(PartyConfig.read(folder / "bob.toml"))


# --- at the party --------------------------------------------------------------------------------


def test_two_files_of_an_agreement_are_noticed_when_the_sides_meet(folder, capsys):
    digests = []
    for role in ("alice", "bob"):
        code, out, _ = command(capsys, "agreement", "propose", "bob.toml")
        assert code == 0
        (folder / f"{role}-agreement.toml").write_text(out)
        digests.append(AgreementFile.parse(out, "x").digest)
    for role in ("alice", "bob"):
        file = folder / f"{role}.toml"
        name_agreement(file)
        lenient = file.read_text().replace("signed = true", "")
        file.write_text(lenient.replace("agreement.toml", f"{role}-agreement.toml"))
    met = run_both(folder, act=lambda party: party.dry_run())
    all_refused(AgreementError, met.alice, names=("file-digest", *digests))


def test_a_side_that_refuses_the_agreement_tells_the_peer_so_and_no_more(folder, capsys):
    proposed(folder, capsys)
    assert sign(capsys, "bob") == [0]
    for role in ("alice", "bob"):
        name_agreement(folder / f"{role}.toml")
    lenient = folder / "bob.toml"
    lenient.write_text(lenient.read_text().replace("signed = true", ""))
    ends = run_both(folder)
    assert isinstance(ends.alice, SignatureError)
    assert isinstance(ends.bob, PeerStopped)
    # The same code as for every other reason of hers.
    assert ends.bob.code == 0
    assert ends.alice.message not in ends.bob.message


def test_a_session_that_began_in_time_may_be_finished_later(folder, capsys, monkeypatch):
    proposed(folder, capsys)
    for role in ("bob", "alice"):
        assert sign(capsys, role) == [0]
        name_agreement(folder / f"{role}.toml")

    def over(config: PartyConfig, now: datetime | None = None) -> None:
        raise SignatureError("its time is over")

    def interrupt(event: Event) -> None:
        if isinstance(event, Progress) and event.done == 2:
            raise KeyboardInterrupt

    first = run_both(folder, watch={"alice": Callbacks(observe=interrupt)})
    assert isinstance(first.alice, KeyboardInterrupt)
    for place in (ResumableSide, DryRunJob):
        monkeypatch.setattr(module_of(place), "require_begun_in_time", over)
    alice, _ = run_both(folder).records
    assert alice["run"]["iterations"] == 4
    # A new session is asked for the time, and so is a dry run.
    for act in (lambda party: party.run(fresh=True), lambda party: party.dry_run()):
        ends = run_both(folder, act=act)
        assert all(isinstance(end, SignatureError) for end in (ends.alice, ends.bob))


def test_a_caller_talks_only_to_the_key_that_signed(folder):
    """Over real TLS: a second certificate of Bob's name, by the same authority, is not he."""
    others = folder / "others"
    issue_again(folder / "certs", others, "bob")
    certs = folder / "certs"
    own = load_credentials(certs / "alice.pem", certs / "alice.key", certs / "ca.pem")
    true = load_credentials(certs / "bob.pem", certs / "bob.key", certs / "ca.pem")
    pin = KeyPin(true.fingerprint, certs / "alice.pem", certs / "alice.key")
    for place in (others, certs):
        shown = load_credentials(place / "bob.pem", place / "bob.key", certs / "ca.pem")
        hub = Hub("127.0.0.1:0", shown, pins={"alice": own.fingerprint})
        calling = DialEndpoint(f"127.0.0.1:{hub.port}", own, peer="bob", pin=pin)
        try:
            if place == certs:
                assert calling.connect(HANG).alive
                continue
            keys = shown.fingerprint[:16], true.fingerprint[:16]
            with refused(PeerRefused, names=("bob", *keys)):
                calling.connect(HANG)
        finally:
            calling.close()
            hub.close()


# --- a review ------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def reviews(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Review]:
    """Both sides' reviews of one agreement, which Bob has signed."""
    from taciturn_ops.agreement.review import review
    from taciturn_ops.agreement.sign import sign_file

    folder = tmp_path_factory.mktemp("reviews")
    furnish(folder)
    config = PartyConfig.read(folder / "bob.toml")
    path = folder / "agreement.toml"
    made = propose(config, load_tables(config), str(path), purpose="a <pilot>")
    path.write_text(proposal_text(made))
    sign_file(path, PartyConfig.read(folder / "bob.toml", made))
    read = AgreementFile.read(path)
    return {role: review(read, folder / f"{role}.toml") for role in ("alice", "bob")}


@pytest.mark.parametrize("role", ["alice", "bob"])
def test_a_review_says_who_learns_what_the_price_the_time_and_who_signed(reviews, role):
    result = reviews[role]
    record = result.to_dict()
    assert problems(json.loads(json.dumps(record)), "review") == []
    assert from_record(record).to_dict() == record
    assert result.obstacles == ()
    assert result.agreement.unsigned == ("alice",)
    assert result.check.price.learns == result.price.learns
    assert result.price.learns.columns is not None
    assert result.columns == result.check.columns
    assert (result.check.bob_seat is None) == (role == "bob")
    assert (result.opened is None) == (role == "bob")
    assert (result.check.price.ledger is None) == (role == "alice")
    assert result.estimate.bytes_to_alice > 0
    page = render_html(review_page(result))
    assert "a &lt;pilot&gt;" in page
    assert result.agreement.digest in page
    assert "<script" not in page
    sections = [block for block in review_page(result).blocks if isinstance(block, Section)]
    learns = next(section for section in sections if section.ident == "learns")
    facts = next(block for block in learns.blocks if isinstance(block, Facts))
    assert next(iter(facts.pairs.values())) == SHARED_PEOPLE


def test_a_review_of_an_unprotected_training_is_never_green(reviews):
    his = reviews["bob"]
    words = {}
    for total in (0.0, math.inf):
        facts = replace(his.check.facts, label_epsilon_total=total)
        verdicts = tuple(replace(one, verdict=CLEAR) for one in his.check.verdicts)
        check = replace(his.check, verdict=CLEAR, verdicts=verdicts, facts=facts)
        first = review_page(replace(his, check=check)).blocks[0]
        assert isinstance(first, Section)
        assert first.badge is not None
        words[total] = first.badge.word
    assert words[0.0] in ("not-shown", "not-tested")
    assert words[math.inf] == "certain"


@pytest.mark.parametrize(
    ("limit", "word"),
    [(None, "certain"), (1_000, "certain"), (6, "not-tested")],
)
def test_alices_review_warns_while_her_limit_lets_bob_have_a_row(reviews, limit, word):
    hers = reviews["alice"]
    assert hers.opened is not None
    unopened = replace(hers.price, learns=replace(hers.price.learns, columns=None))
    opened = replace(hers.opened, so_far=0, this=1, then=1, limit=limit)
    seat = hers.check.bob_seat
    silent = replace(seat, level=CLEAR, findings=replace(seat.findings, attacks=(), leaks=False))
    check = replace(hers.check, verdict=CLEAR, bob_seat=silent)
    result = replace(hers, price=unopened, opened=opened, check=check)
    first = review_page(result).blocks[0]
    assert isinstance(first, Section)
    assert first.badge is not None
    assert first.badge.word == word
    assert ("scores-per-row" in first.title) == (word == "certain")


def test_a_review_and_a_signature_need_alices_line(folder, capsys):
    write_config(folder, "alice", agreement=AGREED, privacy={"accept-column-exposure": None})
    proposed(folder, capsys)
    code, out, _ = command(capsys, "agreement", "review", "agreement.toml", "alice.toml", "--json")
    assert code == 0
    assert any("accept-column-exposure" in one["way_out"] for one in json.loads(out)["obstacles"])
    code, _, err = command(capsys, "agreement", "sign", "agreement.toml", "alice.toml", "--yes")
    assert code == SignatureError.exit_code
    assert "accept-column-exposure" in err


def test_a_review_names_what_stands_in_the_way(folder, capsys):
    agreed = {"mechanism": "none", "epochs": 1}
    for role in ("alice", "bob"):
        write_config(folder, role, agreement=agreed, privacy={"accept-leak": None})
    path = proposed(folder, capsys)
    file = folder / "bob.toml"
    file.write_text(file.read_text().replace("epochs = 1", "epochs = 2"))
    path.write_text(path.read_text().replace('label = "sick"', 'label = "ill"'))
    words = ["agreement", "review", "agreement.toml", "bob.toml", "--columns", "6"]
    code, out, _ = command(capsys, *words, "--html", "page.html")
    assert code == 0
    assert max(map(len, out.splitlines())) <= 100
    record = json.loads(command(capsys, *words, "--json")[1])
    page = Path("page.html").read_text()
    assert len(record["obstacles"]) == 3
    for named in ("epochs", "ill", "accept-leak"):
        assert any(named in str(one) for one in record["obstacles"])
        assert named in page
