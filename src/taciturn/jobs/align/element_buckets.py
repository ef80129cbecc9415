"""Group elements by the million, in buckets by their first bytes: which two sides have in common.

The elements of two honest sides are uniform, so that buckets fill evenly: each has room for as many
as are expected and twelve standard deviations more, and the intersection is that of one bucket
after the other. Buckets follow each other in the order of their elements' bytes.

**Guarantee.** Memory follows the bucket and not the number of elements, where the scratch room has
a folder, also against a peer that deviates: a bucket that overflows is refused.

**Assumes.** Elements are canonical encodings, whose first bit is 0 [RFC9496]. Distinct ids of an
honest peer overflow a bucket with a probability below 1e-25.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from taciturn.arrays import IndexArray
from taciturn.crypto.group import ELEMENT_BYTES
from taciturn.errors import RemoteProtocolError
from taciturn.memmap import MEMORY, Scratch, drop_pages

ElementArray: TypeAlias = NDArray[np.bytes_]
_ELEMENT = np.dtype(f"S{ELEMENT_BYTES}")
_NUMBERED = np.dtype([("element", _ELEMENT), ("row", np.uint32)])
# Two bytes without their lowest bit, which is 0 in every element.
_PREFIX_BITS = 15
_DEVIATIONS, _LEAST_ROOM = 12, 64


def bits_for(count: int, bucket_size: int) -> int:
    """How many first bits name a bucket, so that each of them has at most so many of ``count``.

    >>> bits_for(10_000_000, 65_536), bits_for(5, 65_536)
    (8, 0)
    """
    return min(max(math.ceil(count / bucket_size) - 1, 0).bit_length(), _PREFIX_BITS)


class ElementBuckets:
    """The elements of one side, each with the number of its row.

    ``bits`` is how many first bits name a bucket. ``fault`` is the error text for a repeated
    element. ``scratch`` has room for the elements, in a file without a name: nothing is left of it,
    however the process ends.

    >>> buckets = ElementBuckets(2, 1, "the peer repeats itself")
    >>> buckets.add(bytes([254] * 32 + [2] * 32), np.array([7, 8]))
    >>> [rows.tolist() for _, rows in buckets]
    [[8], [7]]
    """

    def __init__(self, count: int, bits: int, fault: str, scratch: Scratch = MEMORY) -> None:
        mean = count / (1 << bits)
        room = min(count, math.ceil(mean + _DEVIATIONS * math.sqrt(mean)) + _LEAST_ROOM)
        self.count, self._bits, self._room, self._fault = count, bits, room, fault
        self._filled = np.zeros(1 << bits, np.int64)
        self._numbered = scratch.unnamed((room << bits,), _NUMBERED)

    def add(self, elements: bytes, rows: NDArray[np.integer]) -> None:
        """Puts some more elements, one after the other, into their buckets."""
        fresh = np.empty(len(rows), _NUMBERED)
        fresh["element"], fresh["row"] = np.frombuffer(elements, _ELEMENT), rows
        buckets = self._buckets(elements)
        counts = np.bincount(buckets, minlength=len(self._filled))
        if (self._filled + counts > self._room).any():
            raise RemoteProtocolError(
                "the peer's elements are not those of distinct ids: too many begin alike"
            )
        # The first free place of each bucket, then one place after the other.
        firsts = np.arange(len(counts)) * self._room + self._filled
        before = np.cumsum(counts) - counts
        places = np.repeat(firsts - before, counts) + np.arange(len(fresh))
        self._numbered[places] = fresh[np.argsort(buckets, kind="stable")]
        self._filled += counts
        drop_pages(self._numbered)

    def _buckets(self, elements: bytes) -> IndexArray:
        octets = np.frombuffer(elements, np.uint8).reshape(-1, ELEMENT_BYTES)
        first, second = octets[:, 0].astype(np.int64), octets[:, 1].astype(np.int64)
        return (first >> 1 << 8 | second) >> (_PREFIX_BITS - self._bits)

    def __iter__(self) -> Iterator[tuple[ElementArray, IndexArray]]:
        """Each bucket's elements in the order of their bytes, with their rows."""
        for number, filled in enumerate(self._filled.tolist()):
            start = number * self._room
            bucket = self._numbered[start : start + filled]
            order = np.argsort(bucket["element"])
            ranked = bucket["element"][order]
            if (ranked[1:] == ranked[:-1]).any():
                raise RemoteProtocolError(self._fault)
            yield ranked, bucket["row"][order].astype(np.int64)
            drop_pages(self._numbered)


def common_to(
    own: ElementBuckets, peers: ElementBuckets
) -> Iterator[tuple[IndexArray, ElementArray]]:
    """The rows of ``own`` that ``peers`` has too, with their elements, bucket by bucket."""
    for (theirs, _), (ours, rows) in zip(peers, own, strict=True):
        if not len(theirs):
            continue
        # Beyond the peer's last element there is no place to compare with.
        places = np.minimum(np.searchsorted(theirs, ours), len(theirs) - 1)
        common = theirs[places] == ours
        yield rows[common], ours[common]
