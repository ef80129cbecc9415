"""The product has one name."""

import re
import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
FORMER = re.compile(r"tacit(?!urn)", re.IGNORECASE)
# The texts that speak of both names.
ALLOWED = {
    "CHANGELOG.md": 1,
    "tests/repository/test_name.py": None,
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
