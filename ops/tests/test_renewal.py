"""Certificates made with openssl, and renewal that the peer does not notice."""

from __future__ import annotations

from taciturn.__main__ import run


def test_a_name_with_dots_is_shown_as_a_key_that_a_file_may_hold(tmp_path, capsys):
    folder = str(tmp_path)
    assert run(["certs", "--out", folder, "--name", "alice.example", "--name", "bob"]) == 0
    assert run(["certs", "--show", f"{folder}/alice.example.pem"]) == 0
    assert '\n"alice.example" = "' in capsys.readouterr().out
