"""ristretto255: the standard's own answers, what is refused, and a scalar that does not show."""

from __future__ import annotations

import inspect
import os
import subprocess
import sys
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from taciturn.crypto.group import ELEMENT_BYTES, ORDER, Scalar, hashed, raised, require_elements
from taciturn.errors import CryptoError
from taciturn.rng import KeyedEntropy
from tests.expected import refused
from tests.waiting import HANG

# RFC 9496, appendix A.1: the generator and its multiples.
MULTIPLES = [
    "e2f2ae0a6abc4e71a884a961c500515f58e30b6aa582dd8db6a65945e08d2d76",
    "6a493210f7499cd17fecb510ae0cea23a110e8d5b901f8acadd3095c73a3b919",
    "94741f5d5d52755ece4f23f044ee27d5d1ea1e2bd196b462166b16152a9d0259",
]
# Appendix A.2: not canonical, negative, not on the curve, and others.
REFUSED = [
    "00" + "ff" * 31,
    "ff" * 31 + "7f",
    "f3" + "ff" * 30 + "7f",
    "ed" + "ff" * 30 + "7f",
    "01" + "00" * 31,
    "01" + "ff" * 30 + "7f",
    "ed57ffd8c914fb201471d1c3d245ce3c746fcbe63a3679d51b6a516ebebe0e20",
    "26948d35ca62e643e26a83177332e6b6afeb9d08e4268b650f1f5bbd8d81d371",
    "ec" + "ff" * 30 + "7f",
    # The highest bit of an element and of the identity, which the library does not look at.
    *(f"{one[:-2]}{int(one[-2:], 16) | 0x80:02x}" for one in (*MULTIPLES, "00" * 32)),
]
# Appendix A.3: the one-way map after SHA-512.
ESPRESSO = (
    "Ristretto is traditionally a short shot of espresso coffee",
    "3066f82a1a747d45120d1740f14358531a8f04bbffe6a819f86dfe50f44a0a46",
)
BASE = bytes.fromhex(MULTIPLES[0])


def test_multiples_and_hashes_are_the_standards():
    assert [Scalar(number).times(BASE).hex() for number in (1, 2, 3)] == MULTIPLES
    text, expected = ESPRESSO
    assert hashed(b"", [text]).hex() == expected
    # The context stands before the text.
    assert hashed(b"ab", ["c", "d"]) == hashed(b"", ["abc"]) + hashed(b"", ["abd"])


@pytest.mark.parametrize("encoding", [*REFUSED, "00" * 32])
def test_what_is_no_element_is_refused_by_its_number(encoding):
    elements = BASE * 2 + bytes.fromhex(encoding) + BASE
    for look in (lambda: raised(Scalar(5), elements), lambda: require_elements(elements)):
        with refused(CryptoError, names=3):
            look()


@given(st.binary(min_size=ELEMENT_BYTES, max_size=ELEMENT_BYTES))
def test_both_looks_refuse_the_same_bytes(data):
    def refuses(look) -> bool:
        try:
            look()
        except CryptoError:
            return True
        return False

    assert refuses(lambda: raised(Scalar(3), data)) == refuses(lambda: require_elements(data))


@settings(max_examples=30)
@given(st.text(), st.integers(1, ORDER - 1), st.integers(1, ORDER - 1))
def test_two_scalars_commute_and_an_inverse_undoes(text, a, b):
    try:
        element = hashed(b"context", [text])
    except UnicodeEncodeError:
        return
    one, two = Scalar(a), Scalar(b)
    assert two.times(one.times(element)) == one.times(two.times(element))
    assert Scalar(pow(a, -1, ORDER)).times(one.times(element)) == element
    # Exactly the product: no bit of a scalar is set or cleared on the way.
    assert Scalar(a * b % ORDER).times(element) == two.times(one.times(element))


def test_a_scalar_is_drawn_from_the_entropy_and_is_hidden():
    one, two = (Scalar.draw(KeyedEntropy.from_seed(seed)) for seed in (1, 1))
    assert one.times(BASE) == two.times(BASE) != Scalar.draw(KeyedEntropy.from_seed(2)).times(BASE)
    assert repr(one) == str(one) == "Scalar(<hidden>)"
    assert not hasattr(one, "__dict__")


@pytest.mark.parametrize("value", [0, -1, ORDER, 2**255])
def test_a_scalar_outside_its_range_is_refused(value):
    with refused(CryptoError):
        Scalar(value)


def test_no_other_file_knows_the_library():
    home = Path(inspect.getfile(Scalar))
    asking = [
        path for path in home.parents[1].rglob("*.py") if "import rbcl" in path.read_text("utf-8")
    ]
    assert asking == [home]


LOADING = """
import os, sys, tempfile
from taciturn.party.tables import AlignedRows
from taciturn.jobs.align.pairwise import Alignment
from taciturn.crypto.group import hashed
from taciturn.errors import CryptoError
assert "rbcl" not in sys.modules

def refuse(name):
    raise PermissionError(1, "not here")

os.memfd_create = refuse
folder = tempfile.gettempdir()
tempfile.tempdir = "/dev/null/nowhere"
try:
    hashed(b"", ["a"])
except CryptoError as problem:
    print("TMPDIR" in str(problem))
tempfile.tempdir = folder
print(len(hashed(b"", ["a"])))
"""


def test_the_library_is_loaded_when_needed_and_leaves_no_copy_behind(tmp_path):
    """Where memory is closed to programs: its loader writes a copy, here first to nowhere."""
    done = subprocess.run(
        [sys.executable, "-c", LOADING],
        env={**os.environ, "TMPDIR": str(tmp_path)},
        capture_output=True,
        text=True,
        timeout=HANG,
        check=False,
    )
    assert done.stdout == "True\n32\n", done.stderr
    assert list(tmp_path.iterdir()) == []


def test_the_library_needs_no_folder_for_temporary_files():
    code = (
        "import tempfile; tempfile.tempdir = '/dev/null/nowhere'; ordinary = "
        "tempfile.NamedTemporaryFile; from taciturn.crypto.group import hashed; "
        "print(len(hashed(b'', ['a'])), tempfile.NamedTemporaryFile is ordinary)"
    )
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, timeout=HANG, check=False
    )
    assert done.stdout == "32 True\n", done.stderr
