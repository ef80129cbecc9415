"""Certificates for a trial."""

from __future__ import annotations

import os
from datetime import UTC, datetime, timedelta

import pytest

from taciturn.errors import ConfigError, OutputError
from taciturn.transport.address import check_name
from taciturn.transport.certs import make_certificates
from taciturn.transport.tls import load_credentials
from tests.expected import refused


def test_what_is_made_is_fit_for_use(tmp_path):
    made = make_certificates(tmp_path / "new" / "certs", ["alice", "bob.example"], days=60)
    for name, certificate, key in made.parties:
        credentials = load_credentials(certificate, key, made.authority)
        assert credentials.name == name
        assert credentials.warnings == ()
        assert abs(credentials.expires - datetime.now(UTC) - timedelta(days=60)) < timedelta(
            minutes=5
        )


def test_keys_are_for_their_owner_alone(tmp_path):
    made = make_certificates(tmp_path, ["alice", "bob"])
    for key in [made.authority_key, *(key for _, _, key in made.parties)]:
        assert key.stat().st_mode & 0o777 == 0o600


def test_folders_are_not_for_others_to_write_to_whatever_the_umask(tmp_path):
    before = os.umask(0)
    try:
        make_certificates(tmp_path / "new" / "certs", ["alice", "bob"])
    finally:
        os.umask(before)
    for folder in (tmp_path / "new", tmp_path / "new" / "certs"):
        assert folder.stat().st_mode & 0o777 == 0o755


def test_nothing_is_overwritten_and_nothing_half_made_stays(tmp_path):
    (tmp_path / "bob.key").write_text("precious")
    with refused(OutputError) as caught:
        make_certificates(tmp_path, ["alice", "bob"])
    assert caught.value.where == str(tmp_path / "bob.key")
    assert [entry.name for entry in tmp_path.iterdir()] == ["bob.key"]
    assert (tmp_path / "bob.key").read_text() == "precious"


@pytest.mark.parametrize("name", ["", "Alice", "a b", "*.x", "-a", "a..b", "../x", "a" * 64, "1.2"])
def test_names_that_cannot_be(name):
    with refused(ConfigError, names=name):
        check_name(name)
