"""ristretto255, a group of prime order: the only file that knows the library behind it.

Elements are 32 bytes each [RFC9496]. A text becomes an element by SHA-512 and the group's one-way
map (§4.3.4 there), so that nobody knows its discrete logarithm. Elements come and go as bytes one
after the other, since there may be millions of them. libsodium computes with the interpreter's lock
released: threads that are given a part each do use several cores.

**Guarantee.** ``raised`` accepts exactly the canonical encodings of elements other than the
identity; the group's order is prime, so that there is no small subgroup. A scalar is uniform among
1..order-1 and is hidden in its ``repr``.

**Assumes.** The decisional Diffie-Hellman assumption in ristretto255 [RFC9496]; SHA-512 with the
one-way map behaves like a random function into the group; libsodium's multiplication takes the same
time whatever the scalar.
"""

from __future__ import annotations

import hashlib
import os
import sys
import tempfile
import threading
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress
from functools import cache
from importlib import import_module
from pathlib import Path
from types import SimpleNamespace
from typing import Any

from taciturn.errors import CryptoError
from taciturn.rng import Entropy

ELEMENT_BYTES = 32
ORDER = 2**252 + 27742317777372353535851937790883648493
_IDENTITY = bytes(ELEMENT_BYTES)


@cache
def library() -> Any:  # noqa: ANN401 - a module without types
    """The library, loaded when it is first needed.

    Its loader writes a copy of libsodium to a temporary file, and leaves it there. That goes to
    memory where the system allows it: a folder for temporary files may be full, or closed to
    programs (``noexec``). Otherwise the copy is removed once it is loaded.
    """
    if sys.platform == "linux":
        # Where memory is closed to programs, a folder may not be.
        with suppress(OSError), _temporary_file_in_memory():
            return import_module("rbcl")
    try:
        import rbcl
    except OSError as problem:
        raise CryptoError(
            f"libsodium cannot be loaded: {problem.strerror or problem}",
            hint="set TMPDIR to a folder with room, from which programs may be run",
        ) from None
    copy = getattr(sys.modules.get("rbcl._sodium"), "lib_path", None)
    if copy is not None:
        with suppress(OSError):  # Windows keeps a library that is in use
            Path(copy).unlink()
    return rbcl


@contextmanager
def _temporary_file_in_memory() -> Iterator[None]:
    """Make the next temporary file of this thread one in memory."""
    thread, ordinary = threading.get_ident(), tempfile.NamedTemporaryFile
    descriptor = os.memfd_create("libsodium")

    def temporary(*arguments: Any, **options: Any) -> Any:  # noqa: ANN401 - as the original
        if threading.get_ident() != thread:
            return ordinary(*arguments, **options)
        return SimpleNamespace(name=f"/proc/self/fd/{descriptor}")

    tempfile.NamedTemporaryFile = temporary
    try:
        yield
    finally:
        tempfile.NamedTemporaryFile = ordinary
        os.close(descriptor)


class Scalar:
    """A secret exponent; its ``repr`` hides it."""

    __slots__ = ("_bytes",)

    def __init__(self, value: int) -> None:
        if not 0 < value < ORDER:
            raise CryptoError("a scalar lies between 1 and the group's order")
        self._bytes = value.to_bytes(ELEMENT_BYTES, "little")

    @classmethod
    def draw(cls, entropy: Entropy) -> Scalar:
        """A uniform scalar."""
        return cls(1 + entropy.below(ORDER - 1))

    def times(self, element: bytes) -> bytes:
        """The element raised to this scalar."""
        if _has_highest_bit(element):
            raise CryptoError(_what_is_wrong(element))
        try:
            return bytes(library().crypto_scalarmult_ristretto255(self._bytes, element))
        except RuntimeError:
            # The library only refuses; which of the two reasons it had shows in the element.
            raise CryptoError(_what_is_wrong(element)) from None

    def __repr__(self) -> str:
        return "Scalar(<hidden>)"


def hashed(context: bytes, texts: Iterable[str]) -> bytes:
    """An element for each text, by a random function that the context selects.

    A context has the same length wherever it is used for the same purpose.
    """
    # The context is hashed once; each text continues from a copy.
    start, onto = hashlib.sha512(context), library().crypto_core_ristretto255_from_hash
    elements = []
    for text in texts:
        sha = start.copy()
        sha.update(text.encode())
        elements.append(onto(sha.digest()))
    return b"".join(elements)


def raised(scalar: Scalar, elements: bytes) -> bytes:
    """Each element raised to the scalar; the error names an element that is none."""
    powers = []
    for at in range(0, len(elements), ELEMENT_BYTES):
        try:
            powers.append(scalar.times(elements[at : at + ELEMENT_BYTES]))
        except CryptoError as problem:
            raise _numbered(at, problem.message) from None
    return b"".join(powers)


def require_elements(elements: bytes) -> None:
    """Refuse bytes that are no element, or the identity, without computing with them."""
    valid = library().crypto_core_ristretto255_is_valid_point
    for at in range(0, len(elements), ELEMENT_BYTES):
        element = elements[at : at + ELEMENT_BYTES]
        # The library counts the identity as valid; no blinded id is it.
        if element == _IDENTITY or _has_highest_bit(element) or not valid(element):
            raise _numbered(at, _what_is_wrong(element))


def _has_highest_bit(element: bytes) -> bool:
    """Whether bit 255 is set: no canonical encoding has it, and the library does not look at it."""
    return bool(element[-1] >> 7)


def _what_is_wrong(element: bytes) -> str:
    return (
        "is the identity" if element == _IDENTITY else "is not a canonical encoding of an element"
    )


def _numbered(at: int, fault: str) -> CryptoError:
    return CryptoError(f"element {at // ELEMENT_BYTES + 1} {fault}")
