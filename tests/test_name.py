"""The product has one name; what was written under the former one is refused by name."""

import json
import re
import subprocess
from pathlib import Path

import pytest

from taciturn.deploy import FlipBook, LabelBinding, Vault
from taciturn.engine import Transcript
from taciturn.errors import FileError, StateError, TranscriptError
from taciturn.model import ModelShare
from taciturn.privacy import FlippedLabels, LabelResponse, Unprotected

ROOT = Path(__file__).parent.parent
FORMER = re.compile(r"tacit(?!urn)", re.IGNORECASE)
# The constant that readers refuse by, and the two texts that speak of both names.
ALLOWED = {
    "src/taciturn/version.py": 1,
    "CHANGELOG.md": 1,
    "tests/test_name.py": None,
}


def tracked() -> list[str]:
    listed = subprocess.run(
        ["git", "-C", str(ROOT), "ls-files", "-z"], capture_output=True, check=False
    )
    if listed.returncode:
        pytest.skip("this is not a git checkout")
    return [name for name in listed.stdout.decode().split("\0") if name]


def test_no_file_has_the_former_name():
    assert [name for name in tracked() if FORMER.search(name)] == []


def test_no_text_has_the_former_name():
    left = {}
    for name in tracked():
        if (ROOT / name).is_file():
            text = (ROOT / name).read_bytes().decode("utf-8", errors="replace")
            count = len(FORMER.findall(text))
            allowed = ALLOWED.get(name, 0)
            if allowed is not None and count > allowed:
                left[name] = count
    assert left == {}


def test_a_transcript_of_the_former_name_is_refused_by_name(tmp_path):
    path = tmp_path / "run.transcript"
    path.write_bytes(b"TACIT-TRANSCRIPT\n\x01" + bytes(40))
    with pytest.raises(TranscriptError, match="former name, tacit"):
        Transcript.load(path)


def test_a_journal_of_the_former_name_is_refused_by_name(tmp_path):
    path = tmp_path / "journal"
    path.write_bytes(b"TACIT-JOURNAL\n\x01" + bytes(64))
    with pytest.raises(StateError, match="former name, tacit"):
        Vault.open(path, bytes(32))


def test_a_model_of_the_former_name_is_refused_by_name(tmp_path):
    path = tmp_path / "model.json"
    path.write_text(json.dumps({"format": "tacit-model", "version": 2}))
    with pytest.raises(FileError, match="former name, tacit"):
        ModelShare.load(path)


def test_a_flip_book_of_the_former_name_is_refused_by_name(tmp_path):
    path = tmp_path / "flips.json"
    path.write_text(json.dumps({"format": "tacit flip book", "version": 1}))
    binding = LabelBinding("label", bytes(32))
    with pytest.raises(FileError, match="former name, tacit"):
        FlipBook(path, FlippedLabels(LabelResponse(1.0), Unprotected()), binding).rows()
