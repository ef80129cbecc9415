"""The product has one name; what was written under the former one is refused by name."""

import re
import subprocess
from pathlib import Path

import pytest

from taciturn.engine import Transcript
from taciturn.errors import FileError, StateError, TranscriptError
from taciturn.model import ModelShare
from taciturn.party import Vault

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


@pytest.mark.parametrize(
    ("content", "load", "kind"),
    [
        (b"TACIT-TRANSCRIPT\n\x01" + bytes(40), Transcript.load, TranscriptError),
        (b"TACIT-JOURNAL\n\x01" + bytes(64), lambda p: Vault.open(p, bytes(32)), StateError),
        (b'{"format": "tacit-model", "version": 2}', ModelShare.load, FileError),
    ],
    ids=["transcript", "journal", "model"],
)
def test_a_file_of_the_former_name_is_refused_by_name(content, load, kind, tmp_path):
    path = tmp_path / "file"
    path.write_bytes(content)
    with pytest.raises(kind, match=r"\btacit\b"):
        load(path)
