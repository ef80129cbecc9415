"""Who may ask: tokens that are nowhere kept, certificates with a name."""

from __future__ import annotations

import re
import stat

import pytest

from taciturn.errors import ConfigError, FileError
from taciturn_ops.serve.http.callers import Callers, new_token

# private: names in a certificate, without a connection
from taciturn_ops.serve.http.server import _names
from tests.expected import refused


def test_a_token_is_known_by_its_hash_alone(tmp_path):
    path = tmp_path / "callers.toml"
    crm, erp = new_token(path, "crm"), new_token(path, "erp.example")
    text = path.read_text(encoding="utf-8")
    assert crm not in text
    assert len(crm) == 64
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    callers = Callers.read(path)
    for token, name in ((crm, "crm"), (erp, "erp.example")):
        caller = callers.by_token(token)
        assert caller is not None
        assert caller.name == name
    for wrong in ("", "0" * 64, crm[:-1], crm.upper(), f"{crm} "):
        assert callers.by_token(wrong) is None
    assert crm not in repr(callers)


def test_another_token_replaces_the_first_and_leaves_the_rest_of_the_file(tmp_path):
    path = tmp_path / "callers.toml"
    path.write_text(
        '# pilot\n[callers."the CRM"]\nrows-per-day = 7  # May\n'
        f'[callers.erp]\nrows-per-day = 5\ntoken_sha256 = "{"0" * 64}"\n'
    )
    path.chmod(0o600)
    first, second = new_token(path, "erp"), new_token(path, "erp")
    assert re.findall("#.*", path.read_text(encoding="utf-8")) == ["# pilot", "# May"]
    callers = Callers.read(path)
    assert callers.by_token(first) is None
    caller = callers.by_token(second)
    assert caller is not None
    assert caller.rows_per_day == 5
    named = callers.by_certificate(("the CRM",))
    assert named is not None
    assert named.rows_per_day == 7


def test_a_certificate_is_enough_without_a_file_and_must_be_listed_in_one(tmp_path):
    caller = Callers().by_certificate(("crm",))
    assert caller is not None
    assert caller.name == "crm"
    new_token(tmp_path / "callers.toml", "erp")
    assert Callers.read(tmp_path / "callers.toml").by_certificate(("crm",)) is None


def test_a_certificate_in_a_peers_name_is_no_callers():
    callers = Callers(peers=frozenset({"alice"}))
    assert callers.by_certificate(("alice",)) is None
    # Whichever of its names it is.
    assert callers.by_certificate(("crm", "alice")) is None
    assert callers.by_certificate(("crm",)) is not None


def test_a_certificate_without_a_dns_name_has_none():
    assert _names({}) == ()
    assert _names({"subjectAltName": (("email", "a@b.example"),)}) == ()
    assert _names({"subjectAltName": (("DNS", "CRM.example"), ("DNS", "b"))}) == (
        "crm.example",
        "b",
    )
    assert Callers().by_certificate(()) is None


@pytest.mark.parametrize(
    ("text", "named"),
    [
        ("callers = 3", "callers"),
        ("[people.crm]\n", "people"),
        ("[callers]\ncrm = 3\n", "crm"),
        ('[callers.crm]\ntoken = "abc"\n', "token"),
        ("[callers.crm]\nrows-per-day = 0\n", "rows-per-day"),
        ("[callers.crm\n", "TOML"),
    ],
)
def test_a_file_that_is_none_is_refused_by_name(tmp_path, text, named):
    path = tmp_path / "callers.toml"
    path.write_text(text)
    path.chmod(0o600)
    with refused(ConfigError, names=named):
        Callers.read(path)


def test_a_file_that_others_may_read_is_refused(tmp_path):
    path = tmp_path / "callers.toml"
    new_token(path, "crm")
    path.chmod(0o644)
    with refused(FileError, names=path):
        Callers.read(path)
