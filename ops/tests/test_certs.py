"""Certificates for a trial."""

from __future__ import annotations

from taciturn.__main__ import run


def test_the_command_says_what_goes_to_whom(tmp_path, capsys, monkeypatch):
    monkeypatch.chdir(tmp_path)
    assert run("certs --out c --name alice --name bob --days 10".split()) == 0
    lines = capsys.readouterr().out.splitlines()
    (hers,) = [line for line in lines if "c/alice.key" in line]
    assert "c/ca.pem" in hers
    assert "c/alice.pem" in hers
    (authority,) = [line for line in lines if "c/ca.key" in line]
    assert not {"alice", "bob"} & {*authority.replace(":", " ").split()}
