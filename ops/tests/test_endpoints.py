"""One port for several Alices, over TLS, with the keys that were agreed on."""

from __future__ import annotations

from pathlib import Path

import pytest

import taciturn.transport  # noqa: F401 - before anybody imports grpc: it says which ciphers
from taciturn.errors import CertificateError, rendering_errors_as
from taciturn.party.endpoints import open_endpoint
from taciturn_ops.doctor.party import check_certificates
from tests.certificates import issue_again
from tests.expected import refused
from tests.party.sides import Company


@pytest.fixture(scope="module")
def star(tmp_path_factory: pytest.TempPathFactory) -> Company:
    """Bob and two Alices; the authority has certified another key of alice-2's, and carol."""
    made = Company(tmp_path_factory.mktemp("star"))
    for folder, name in (("others", "alice-2"), ("strangers", "carol")):
        issue_again(made.folder / "certs", made.folder / folder, name)
    return made


@pytest.mark.parametrize(
    ("name", "folder", "file"),
    [
        ("alice-2", "others", "alice-2"),
        ("alice-2", "strangers", "carol"),
        ("bob", "certs", "alice-1"),
    ],
    ids=["another key", "none of the parties", "Bob with an Alice's"],
)
def test_a_side_with_another_certificate_than_agreed_does_not_begin(star, name, folder, file):
    place = star.folder / folder
    files = {"certificate": str(place / f"{file}.pem"), "key": str(place / f"{file}.key")}
    config = star.write(name, link=files)
    with (
        refused(CertificateError, names=file) as caught,
        rendering_errors_as(config.syntax),
        open_endpoint(config, lambda text: None),
    ):
        pass
    assert Path(str(caught.value.where)) == place / f"{file}.pem"
    (finding, *_) = check_certificates(config)
    assert caught.value.message in finding.summary
    if folder == "others":
        assert star.fingerprint(name, folder)[:16] in caught.value.message
        assert star.fingerprint(name)[:16] in caught.value.message
