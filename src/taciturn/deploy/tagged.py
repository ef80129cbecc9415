"""Rows by tags of 64 bits: what a book counts of each, for ten million rows as for ten.

A book tells rows apart by keyed hashes of their ids. As arrays they take sixteen bytes a row, and
in the book's file sixteen hexadecimal digits; as texts in a dictionary they would take two hundred.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from taciturn.data.ids import RowIds
from taciturn.mapped import BLOCK_ROWS

TAG_BYTES = 8
# Sums of two of them are still numbers of a row's.
_LARGEST = 1 << 61

Tags: TypeAlias = NDArray[np.uint64]
Codes: TypeAlias = NDArray[np.int64]


def tags_of(ids: RowIds, *, key: bytes, person: bytes = b"", head: bytes = b"") -> Tags:
    """A keyed hash of each id, in the order of the hashes; ``head`` stands before each id.

    >>> len(tags_of(RowIds.of(["a", "b"]), key=b"key"))
    2
    """
    keyed = hashlib.blake2b(head, digest_size=TAG_BYTES, key=key, person=person)
    tags = np.empty(len(ids), np.uint64)
    # By blocks: ten million ids as objects would need more memory than all the rest.
    for start in range(0, len(ids), BLOCK_ROWS):
        texts = ids.series.slice(start, BLOCK_ROWS).to_list()
        digests = b"".join([_digest(keyed, text) for text in texts])
        tags[start : start + len(texts)] = np.frombuffer(digests, ">u8")
    tags.sort()
    return tags[np.append(True, tags[1:] != tags[:-1])] if _repeated(tags) else tags


def _repeated(tags: Tags) -> bool:
    """Whether two of them, which come in order, are the same."""
    return bool((tags[1:] == tags[:-1]).any())


def _digest(keyed: hashlib.blake2b, text: str) -> bytes:
    hasher = keyed.copy()
    hasher.update(text.encode())
    return hasher.digest()


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class TaggedRows:
    """Rows with a number each; a row that is not there has 0. Tags are rising.

    >>> rows = TaggedRows().with_codes(np.array([7, 9], np.uint64), np.array([1, 2]))
    >>> rows.codes_of(np.array([8, 9], np.uint64)).tolist()
    [0, 2]
    """

    tags: Tags = field(default_factory=lambda: np.empty(0, np.uint64))
    codes: Codes = field(default_factory=lambda: np.empty(0, np.int64))

    def __len__(self) -> int:
        return len(self.tags)

    @classmethod
    def of_groups(cls, groups: Iterable[tuple[int, str]]) -> TaggedRows:
        """Rows as a file has them: for each number its tags in hexadecimal, one after the other.

        ValueError where they are not tags, or one is there twice.
        """
        tags, codes = [np.empty(0, np.uint64)], [np.empty(0, np.int64)]
        for code, text in groups:
            if not 0 <= code < _LARGEST:
                raise ValueError("no number of a row's")
            part = np.frombuffer(bytes.fromhex(text), ">u8").astype(np.uint64)
            tags.append(part)
            codes.append(np.full(len(part), code, np.int64))
        return cls._sorted(np.concatenate(tags), np.concatenate(codes))

    def groups(self) -> Iterator[tuple[int, str]]:
        """The numbers, each with the tags of its rows in hexadecimal."""
        for code in np.unique(self.codes).tolist():
            yield code, self.tags[self.codes == code].astype(">u8").tobytes().hex()

    def codes_of(self, tags: Tags) -> Codes:
        """The numbers of some rows, which come in the order of their tags."""
        codes = np.zeros(len(tags), np.int64)
        places, known = self._places(tags)
        codes[known] = self.codes[places[known]]
        return codes

    def with_codes(self, tags: Tags, codes: Codes) -> TaggedRows:
        """The rows with other numbers for some of them, which come in the order of their tags."""
        if not len(self):
            return TaggedRows(tags, codes)
        places, known = self._places(tags)
        former = self.codes.copy()
        former[places[known]] = codes[known]
        if known.all():
            return TaggedRows(self.tags, former)
        return self._sorted(
            np.concatenate([self.tags, tags[~known]]), np.concatenate([former, codes[~known]])
        )

    def _places(self, tags: Tags) -> tuple[NDArray[np.int64], NDArray[np.bool]]:
        places = np.searchsorted(self.tags, tags)
        known = places < len(self.tags)
        known[known] = self.tags[places[known]] == tags[known]
        return places, known

    @classmethod
    def _sorted(cls, tags: Tags, codes: Codes) -> TaggedRows:
        order = np.argsort(tags)
        tags = tags[order]
        if _repeated(tags):
            raise ValueError("a row is there twice")
        return cls(tags, codes[order])
