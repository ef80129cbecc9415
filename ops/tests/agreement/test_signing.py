"""An agreement that both sides signed: what was changed since is refused, and named."""

from __future__ import annotations

import shutil
import tomllib
from dataclasses import replace
from datetime import datetime, timedelta, tzinfo
from pathlib import Path
from typing import Any

import pytest
from cryptography import x509
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.hashes import SHA256
from cryptography.hazmat.primitives.serialization import (
    Encoding,
    load_pem_private_key,
)
from hypothesis import HealthCheck, assume, given, settings
from hypothesis import strategies as st
from ops.tests.tampering import TAMPERINGS, Scene

from taciturn.errors import ConfigError, SignatureError
from taciturn.jobs.base import run_job
from taciturn.jobs.predict.job import PredictJob
from taciturn.party.agreement_check import (
    Verifier,
    peer_fingerprints,
    require_begun_in_time,
    require_in_time,
    require_signed,
    statement,
    verified,
)
from taciturn.party.agreement_file import AgreementFile
from taciturn.party.config import PartyConfig
from taciturn.party.credentials import credentials_of
from taciturn_ops.agreement.sign import signature_block
from taciturn_ops.doctor.party import check_agreement
from taciturn_ops.doctor.result import Level
from taciturn_ops.serve.job import ServeJob
from tests.certificates import issue_again, renew
from tests.expected import refused
from tests.modules import module_of


@pytest.fixture(scope="module")
def scene(tmp_path_factory: pytest.TempPathFactory) -> Scene:
    return Scene(tmp_path_factory.mktemp("signed") / "both")


@pytest.mark.parametrize("role", ["alice", "bob"])
def test_what_both_signed_is_accepted_and_pins_the_peer(scene, role):
    config = scene.config(scene.text, role)
    signers = require_signed(config)
    require_begun_in_time(config)
    assert set(signers) == {"alice", "bob"}
    peer = "bob" if role == "alice" else "alice"
    assert peer_fingerprints(config) == {peer: scene.credentials(peer).fingerprint}


def begin(scene: Scene, text: str, at: datetime) -> None:
    """What Alice's side looks at before it begins."""
    config = scene.config(text)
    require_signed(config, at)
    require_begun_in_time(config, at)


@pytest.mark.parametrize("one", TAMPERINGS, ids=lambda one: one.title)
def test_a_tampered_agreement_is_refused_by_name(scene, one):
    text, at = one.change(scene), scene.now + one.after
    with refused(one.kind, names=one.named(scene.words)) as raised:
        begin(scene, text, at)
    assert "agreement.toml" in raised.value.where
    assert raised.value.hint


def test_a_signature_is_of_the_digest_the_role_the_name_and_the_time(scene):
    parts: list[Any] = ["0" * 64, "bob", "bob", scene.now]
    others = ("1" * 64, "alice", "carol", scene.now + timedelta(seconds=1))
    for place, other in enumerate(others):
        changed = [*parts]
        changed[place] = other
        assert statement(*changed) != statement(*parts)


@given(place=st.floats(0, 1, exclude_max=True), sign=st.characters(codec="ascii"))
@settings(max_examples=250, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_no_single_character_can_be_changed(scene, place, sign):
    """Whatever changes what the file says is refused: in the agreement, and in the signatures."""
    at = int(place * len(scene.text))
    text = scene.text[:at] + sign + scene.text[at + 1 :]
    try:
        assume(tomllib.loads(text) != tomllib.loads(scene.text))
    except tomllib.TOMLDecodeError:
        pass
    verifier = Verifier.from_credentials(
        scene.credentials("alice"), scene.folder / "certs" / "ca.pem"
    )
    with pytest.raises(ConfigError):
        verified(AgreementFile.parse(text, "agreement.toml"), verifier, scene.now)


def test_comments_blanks_and_the_order_of_keys_are_no_part_of_what_is_signed(scene):
    lines = scene.text.replace("[agreement]\n", "# by hand\n[agreement]  # here\n\n")
    first, second = "passes = 4\n", "scheme = "
    assert lines.index(second) < lines.index(first)
    swapped = lines.replace(first, "").replace(second, f"{first}{second}")
    assert set(require_signed(scene.config(swapped))) == {"alice", "bob"}


def test_without_signed_nobody_need_have_signed_but_a_wrong_signature_is_refused(scene):
    file = scene.folder / "lenient.toml"
    text = (scene.folder / "alice.toml").read_text()
    file.write_text(text.replace("signed = true", "signed = false"))
    scene.config(scene.file())
    assert require_signed(PartyConfig.read(file)) == {}
    scene.config(scene.file(scene.bob))
    assert set(require_signed(PartyConfig.read(file))) == {"bob"}
    scene.config(scene.file(scene.signature("bob", "others")))
    with refused(SignatureError, names="bob"):
        require_signed(PartyConfig.read(file))


def test_a_renewed_certificate_with_its_key_keeps_the_signature(scene):
    folder = Path(shutil.copytree(scene.folder / "certs", scene.folder / "renewed"))
    renew(folder, days=5)
    text = (scene.folder / "alice.toml").read_text().replace("certs/", "renewed/")
    (scene.folder / "renewed.toml").write_text(text)
    scene.config(scene.text)
    config = PartyConfig.read(scene.folder / "renewed.toml")
    assert (folder / "alice.pem").read_bytes() != (
        scene.folder / "certs" / "alice.pem"
    ).read_bytes()
    assert set(require_signed(config)) == {"alice", "bob"}


def test_a_side_that_has_another_key_now_must_sign_anew(scene):
    issue_again(scene.folder / "certs", scene.folder / "rekeyed", "alice")
    text = (scene.folder / "alice.toml").read_text().replace("certs/", "rekeyed/")
    (scene.folder / "rekeyed.toml").write_text(text)
    scene.config(scene.text)
    old, new = scene.alice.fingerprint[:16], scene.credentials("alice", "rekeyed").fingerprint[:16]
    with refused(SignatureError, names=("alice", old, new)):
        require_signed(PartyConfig.read(scene.folder / "rekeyed.toml"))


def test_a_side_with_another_key_than_the_agreement_names_is_refused(scene):
    """Before it signs: there is no signature that could tell."""
    scene.config(scene.file())
    text = (scene.folder / "bob.toml").read_text().replace("certs/", "others/")
    (scene.folder / "other-bob.toml").write_text(text)
    keys = scene.words["bob"], scene.words["other_bob"]
    with refused(SignatureError, names=keys):
        require_signed(PartyConfig.read(scene.folder / "other-bob.toml"))


def issued(name: str, key: Any, issuer: x509.Name, by: Any, end: datetime) -> x509.Certificate:
    """A certificate of ten days; one that is not Bob's may sign others."""
    title = x509.Name([x509.NameAttribute(x509.NameOID.COMMON_NAME, name)])
    return (
        x509.CertificateBuilder(issuer, title, key.public_key(), x509.random_serial_number())
        .not_valid_before(end - timedelta(days=10))
        .not_valid_after(end)
        .add_extension(x509.BasicConstraints(ca=name != "bob", path_length=None), critical=True)
        .add_extension(x509.SubjectAlternativeName([x509.DNSName(name)]), critical=False)
        .sign(by, SHA256())
    )


def test_an_intermediate_certificate_vouches_while_it_is_valid(scene):
    (root,) = x509.load_pem_x509_certificates((scene.folder / "certs" / "ca.pem").read_bytes())
    files = [(scene.folder / "certs" / name).read_bytes() for name in ("ca.key", "bob.key")]
    top, own = (load_pem_private_key(data, None) for data in files)
    key, later = ec.generate_private_key(ec.SECP256R1()), scene.now + timedelta(days=5)

    def signed_under(*ends: datetime) -> AgreementFile:
        above = [issued("branch", key, root.subject, top, end) for end in ends]
        chain = [issued("bob", own, above[0].subject, key, later), *above]
        octets = tuple(one.public_bytes(Encoding.DER) for one in chain)
        text = scene.file(replace(scene.bob, chain=octets), scene.alice)
        return AgreementFile.parse(text, "agreement.toml")

    verifier = Verifier.from_credentials(
        scene.credentials("alice"), scene.folder / "certs" / "ca.pem"
    )
    over = scene.now - timedelta(days=1)
    # Also beside one that was over; and when it is over today, and was not when Bob signed.
    for ends in ((later,), (over, later)):
        assert set(verified(signed_under(*ends), verifier, later + timedelta(days=2))) == {
            "alice",
            "bob",
        }
    with pytest.raises(SignatureError):
        verified(signed_under(over), verifier, scene.now)


def test_a_partys_certificate_vouches_for_nobody(scene):
    """Carol's is of the authority, and is no authority's: else she could sign as anybody."""
    certs = scene.folder / "certs"
    (carol,) = x509.load_pem_x509_certificates((certs / "carol.pem").read_bytes())
    own, hers = (
        load_pem_private_key((certs / f"{name}.key").read_bytes(), None)
        for name in ("bob", "carol")
    )
    forged = issued("bob", own, carol.subject, hers, scene.now + timedelta(days=5))
    chain = tuple(one.public_bytes(Encoding.DER) for one in (forged, carol))
    with refused(SignatureError, names=("bob", certs / "ca.pem")):
        require_signed(scene.config(scene.file(replace(scene.bob, chain=chain), scene.alice)))


def test_the_doctor_says_whether_it_is_signed(scene):
    signed = scene.config(scene.text)
    (finding,) = check_agreement(signed)
    assert finding.level is Level.OK
    (finding,) = check_agreement(scene.config(scene.file(scene.alice)))
    assert finding.level is Level.PROBLEM
    assert "bob" in finding.summary
    assert check_agreement(PartyConfig.read(scene.folder / "plain.toml")) == []


def test_it_is_valid_to_the_last_second(scene):
    require_in_time(scene.proposal, scene.proposal.valid_until)
    with pytest.raises(SignatureError):
        require_in_time(scene.proposal, scene.proposal.valid_until + timedelta(seconds=1))


def test_a_signature_shows_no_key(scene):
    own = credentials_of(scene.config(scene.text))
    assert own.key.decode().splitlines()[1] not in signature_block(scene.alice) + repr(scene.alice)


class Later:
    """A clock after the end of the scene's agreement."""

    @staticmethod
    def now(zone: tzinfo) -> datetime:
        return datetime.now(zone) + timedelta(days=31)


@pytest.mark.parametrize("role", ["alice", "bob"])
def test_no_prediction_and_no_service_begins_after_the_end(scene, role, monkeypatch):
    config = scene.config(scene.text, role)
    monkeypatch.setattr(module_of(require_signed), "datetime", Later)
    with pytest.raises(SignatureError):
        run_job(PredictJob(Path("no model"), Path("no rows")), config)
    # There is no such model: its end is seen before that.
    with pytest.raises(SignatureError):
        run_job(ServeJob(Path("nowhere.json")), config)
