"""The runbook of a signed agreement: its commands run as they are written, as real processes."""

from __future__ import annotations

import re
import shutil
from pathlib import Path

import pytest
from ops.tests.tampering import NAMED, Scene

from taciturn.errors import SignatureError
from taciturn.model.share import ModelShare
from taciturn.party.agreement_file import AgreementFile
from tests.test_two_machines import Terminal, both, free_port, steps

EXAMPLE = Path(__file__).resolve().parents[2] / "examples" / "signed-agreement"
RUNBOOK = (EXAMPLE / "README.md").read_text(encoding="utf-8")


def test_the_runbook_shows_the_section_and_the_sentence():
    assert f"```toml\n{NAMED.strip()}\n```" in RUNBOOK
    assert [title[:2] for title, _ in steps(RUNBOOK)] == ["1.", "2.", "3.", "5.", "6."]


def test_two_processes_train_by_what_both_signed(tmp_path):
    """Signatures, the key of the link's other end, and the digest in both models."""
    scene, port = Scene(tmp_path / "both"), free_port()
    scene.config(scene.text)
    for role in ("alice", "bob"):
        file = scene.folder / f"{role}.toml"
        file.write_text(re.sub(r"127\.0\.0\.1:\d+", f"127.0.0.1:{port}", file.read_text()))
    terminals = [Terminal(role, scene.folder) for role in ("alice", "bob")]
    lines = {role: [f"taciturn party {role}.toml --json"] for role in ("alice", "bob")}
    try:
        for code, said in both(terminals, lines):
            assert code == 0, said
    finally:
        for terminal in terminals:
            terminal.leave()
    for role in ("alice", "bob"):
        share = ModelShare.load(scene.folder / f"{role}.model.json")
        assert share.agreement["file_digest"] == scene.proposal.digest


@pytest.mark.slow  # ten processes, a quarter of a minute
def test_the_runbook_from_a_proposal_to_a_refusal(tmp_path):
    folder = tmp_path / "trial"
    shutil.copytree(EXAMPLE, folder)
    terminals = [Terminal(role, folder) for role in ("alice", "bob")]
    port, chapters = free_port(), dict(steps(RUNBOOK))
    try:
        for title, lines in chapters.items():
            if title.startswith("5."):
                for role in ("alice", "bob"):
                    assert NAMED.strip() in (folder / f"{role}.toml").read_text()
                    on_port(folder / f"{role}.toml", port)
            if title.startswith("6."):
                change(folder / "agreement.toml")
            for code, said in both(terminals, lines):
                assert code == (SignatureError.exit_code if title.startswith("6.") else 0), said
    finally:
        for terminal in terminals:
            terminal.leave()
    alice = terminals[0]
    (shown,) = re.findall(r"```text\n(.*?)\n```", RUNBOOK)
    assert shown in alice.said
    digest = ModelShare.load(folder / "bob.model.json").agreement["file_digest"]
    assert digest == ModelShare.load(folder / "alice.model.json").agreement["file_digest"]
    assert digest != AgreementFile.read(folder / "agreement.toml").digest
    for role in ("alice", "bob"):
        assert digest in (folder / f"review-{role}.html").read_text()


def on_port(path: Path, port: int) -> None:
    path.write_text(path.read_text().replace(":9443", f":{port}"))


def change(path: Path) -> None:
    """The change that the runbook names."""
    text = path.read_text()
    assert "\npasses = 56\n" in text
    path.write_text(text.replace("\npasses = 56\n", "\npasses = 70\n"))
