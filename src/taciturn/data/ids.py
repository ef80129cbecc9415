"""Row ids: which rows a table holds, in which order, and which of them are held out.

Two parties can train together only when row *i* is the same person on both sides. Every table
therefore carries its ids, and the order of two tables is compared by a digest: SHA-256 over the ids
in order, each in UTF-8 and followed by a NUL byte. Ids hold no control characters, so two different
lists never give the same bytes.

The hash of a row's id alone decides whether the row is held out, and its fold: both sides come to
the same without a message, the order of the rows does not matter, and it says nothing about a
label. The salt lets two trainings differ.

Which spellings of an id mean the same row is an explicit choice (``Normalisation``), none by
default: ``nfkc`` (Unicode's compatibility form), then ``case`` (folded), then ``trim`` (no blanks
at the ends), then ``zeros`` (numbers without leading zeros). Two parties must choose the same. Two
ids of one table that are one, as they stand or once normalised, are refused unless it is said which
row is meant (``Duplicates``).
"""

from __future__ import annotations

import hashlib
import unicodedata
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass, field
from typing import Literal, TypeAlias

import numpy as np
import polars as pl
from numpy.typing import NDArray

from taciturn.arrays import IndexArray
from taciturn.data.frames import as_series
from taciturn.errors import ConfigError, RowIdError, RowOrderError, ShapeError, nearest
from taciturn.files import canonical_json
from taciturn.memmap import BLOCK_ROWS
from taciturn.setting_syntax import Hint

Duplicates: TypeAlias = Literal["error", "first", "last"]
"""Which of several rows with one id is taken."""

# Ids per hashed block: bounds the memory of a digest over many millions of rows.
_BLOCK = 1 << 18
# Ids that are joined at a time.
_JOINED = 1 << 20
# Everything of Unicode's "other" and "separator" classes but the plain blank: not printable.
_UNPRINTABLE = r"[\p{C}\p{Z}&&[^ ]]"


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class RowIds:
    """An ordered list of distinct, printable row ids, as text."""

    series: pl.Series
    _digest: list[str] = field(default_factory=list, init=False)

    def __post_init__(self) -> None:
        _check(self.series)

    @classmethod
    def from_values(cls, values: object) -> RowIds:
        """Ids from a list, a NumPy array, or a pandas or polars series of text or whole numbers."""
        return values if isinstance(values, RowIds) else cls(_as_text(values))

    @classmethod
    def of_rows(cls, values: object, rows: int) -> RowIds:
        """Ids of so many rows; they are numbered where there are none."""
        return cls.numbered(rows) if values is None else cls.from_values(values)

    @classmethod
    def numbered(cls, rows: int) -> RowIds:
        """The ids "0", "1", … for rows that bring none."""
        return cls(pl.int_range(rows, eager=True).cast(pl.String))

    def __len__(self) -> int:
        return len(self.series)

    def __getitem__(self, index: int) -> str:
        return str(self.series[index])

    def __eq__(self, other: object) -> bool:
        return isinstance(other, RowIds) and self.series.equals(other.series)

    def __repr__(self) -> str:
        return f"RowIds({len(self)} rows)"

    def take(self, indices: NDArray[np.integer]) -> RowIds:
        """Ids at these positions, in this order."""
        chosen = checked_indices(indices, len(self))
        taken = self.series.gather(chosen)
        once = np.zeros(len(self), np.bool)
        once[chosen] = True
        # Ids that were checked need it again only where one is taken twice.
        return _checked(taken) if np.count_nonzero(once) == len(chosen) else RowIds(taken)

    def places_of(self, wanted: RowIds) -> IndexArray:
        """Positions of other ids among these; -1 for one that is not there."""
        if self == wanted:
            return np.arange(len(self))
        places = np.full(len(wanted), -1, np.int64)
        # Bucket by bucket: a join of all at once needs more memory than the ids themselves.
        buckets = 1 + max(len(self), len(wanted)) // _JOINED
        here, there = (ids.series.hash() % buckets for ids in (self, wanted))
        for bucket in range(buckets):
            own_at, at = (hashes.eq(bucket).arg_true() for hashes in (here, there))
            ids = pl.DataFrame({"id": self.series.gather(own_at), "place": own_at})
            joined = pl.DataFrame({"id": wanted.series.gather(at), "at": at}).join(ids, on="id")
            places[joined["at"].to_numpy()] = joined["place"].to_numpy()
        return places

    def rows_of(
        self, wanted: RowIds, *, where: str = "", hint: str = "name a table that has all of them"
    ) -> IndexArray:
        """Positions of other ids among these; ``RowIdError`` where one is not there."""
        rows = self.places_of(wanted)
        lacking = np.flatnonzero(rows < 0)
        if len(lacking):
            first = f"first id {wanted[int(lacking[0])]!r}"
            raise RowIdError(
                f"the table lacks {len(lacking):,} of {len(wanted):,} rows",
                where=f"{where}, {first}" if where else first,
                hint=hint,
            )
        return rows

    def digest(self) -> str:
        """SHA-256 over the ids in order, as hexadecimal text."""
        if not self._digest:
            # Both parties of a simulation ask, and hashing a million ids takes a while.
            sha = hashlib.sha256()
            for start in range(0, len(self), _BLOCK):
                # No printable id holds a zero byte, so that two lists never give the same text.
                block = self.series.slice(start, _BLOCK).str.join("\0").item()
                sha.update(block.encode() + b"\0")
            self._digest.append(sha.hexdigest())
        return self._digest[0]

    def require_same(self, other: RowIds, *, names: tuple[str, str] = ("alice", "bob")) -> None:
        """Raise ``RowOrderError`` unless both sides name the same rows in the same order."""
        if self is other or self == other:
            return
        here, there = (pl.DataFrame({"id": ids.series}) for ids in (self, other))
        lacking_there = here.join(there, on="id", how="anti").height
        lacking_here = there.join(here, on="id", how="anti").height
        if lacking_here == lacking_there == 0:
            place = int((self.series != other.series).arg_max() or 0)
            raise RowOrderError(
                f"{names[0]} and {names[1]} have the same {len(self)} ids in another order",
                where=f"first difference at row {place + 1}",
                hint="sort both tables by id, or take one's rows in the other's order",
            )
        raise RowOrderError(
            f"{names[0]} and {names[1]} do not have the same rows: "
            f"{lacking_there} of {names[0]}'s {len(self)} ids are missing at {names[1]}, "
            f"{lacking_here} of {names[1]}'s {len(other)} ids are missing at {names[0]}",
            hint="keep only the rows that both sides have, in the same order",
        )


def _checked(series: pl.Series) -> RowIds:
    """Row ids without a second check, which takes long for ten million of them."""
    ids = object.__new__(RowIds)
    object.__setattr__(ids, "series", series)
    object.__setattr__(ids, "_digest", [])
    return ids


def checked_indices(indices: NDArray[np.integer], rows: int) -> NDArray[np.int64]:
    """Row positions as int64, refused when not whole numbers in 0..rows-1."""
    array = np.asarray(indices)
    if array.ndim != 1 or (array.size and array.dtype.kind not in "iu"):
        raise ShapeError(
            f"row positions must be a 1-D array of whole numbers, not {array.ndim}-D {array.dtype}",
            hint="turn a boolean mask into positions with numpy.flatnonzero",
        )
    # Negative positions would silently count from the end.
    if array.size and (array.min() < 0 or array.max() >= rows):
        raise ShapeError(
            f"row positions {array.min()}..{array.max()} do not fit a table of {rows} rows",
            hint=f"use positions from 0 to {rows - 1}",
        )
    return array.astype(np.int64, copy=False)


def _as_text(values: object) -> pl.Series:
    series = as_series(values, name="ids", error=RowIdError)
    kind = series.dtype
    if kind.is_integer() or kind in (pl.String, pl.Categorical, pl.Enum):
        return series.cast(pl.String)
    if kind == pl.Null:
        raise RowIdError(f"all {len(series)} row ids are missing", hint="give every row an id")
    raise RowIdError(
        f"row ids are {kind}, not text or whole numbers",
        hint="ids of floating point do not survive rounding: write them as text",
    )


def _check(series: pl.Series) -> None:
    if series.dtype != pl.String:
        raise RowIdError(
            f"row ids are {series.dtype}, not text", hint="use RowIds.from_values(values)"
        )
    if missing := series.null_count():
        raise _refusal("missing", missing, series.is_null(), hint="give every row an id")
    empty = series.str.strip_chars() == ""
    if empty.any():
        raise _refusal("empty", int(empty.sum()), empty, hint="give every row an id")
    hidden = series.str.contains(_UNPRINTABLE)
    if hidden.any():
        raise _refusal(
            "not printable",
            int(hidden.sum()),
            hidden,
            hint="remove control characters and unusual blanks",
        )
    if _repeats(series):
        again = ~series.is_first_distinct()
        place = int(again.arg_max() or 0)
        raise RowIdError(
            f"{again.sum()} of {len(series)} row ids repeat an earlier one",
            where=f"row {place + 1}, id {series[place]!r}",
            hint=Hint(
                "keep one row of each id: {duplicates}; or choose another id column",
                duplicates=("first", "last"),
            ),
        )


def _repeats(series: pl.Series) -> bool:
    """Whether a value is there twice; by their hashes first, which need a fifth of the memory."""
    hashes = series.hash().to_numpy(writable=True)
    hashes.sort()
    return bool((hashes[1:] == hashes[:-1]).any()) and series.n_unique() < len(series)


def _refusal(defect: str, count: int, mask: pl.Series, *, hint: str) -> RowIdError:
    place = int(mask.arg_max() or 0)
    verb = "is" if count == 1 else "are"
    return RowIdError(
        f"{count} of {len(mask)} row ids {verb} {defect}", where=f"row {place + 1}", hint=hint
    )


def row_name(index: int, ids: RowIds | Sequence[str] | None) -> str:
    """Name of a row in errors: its id where there is one, else its number from 1."""
    return f"row {index + 1}" if ids is None else f"row id {ids[index]!r}"


def held_out_rows(ids: RowIds, share: float | None, salt: str) -> NDArray[np.bool]:
    """Mask of the rows whose hashed id falls below the share; of none without a share."""
    held = np.zeros(len(ids), dtype=np.bool)
    if share is not None:
        limit = np.uint64(int(share * 2**64))
        for place, words in _hashed(ids, f"taciturn held out\0{salt}\0", 8):
            held[place] = np.frombuffer(words, ">u8") < limit
    return held


def fold_numbers(ids: RowIds, folds: int, salt: str) -> IndexArray:
    """Fold of each row, from 0 on."""
    numbers = np.empty(len(ids), dtype=np.int64)
    for place, words in _hashed(ids, f"taciturn fold\0{salt}\0", 4):
        numbers[place] = np.frombuffer(words, ">u4").astype(np.int64) * folds >> 32
    return numbers


def _hashed(ids: RowIds, prefix: str, size: int) -> Iterator[tuple[slice, bytes]]:
    """First bytes of the hash of each id, concatenated, in blocks of rows."""
    salted = prefix.encode()
    # By blocks: ten million ids as objects would need more memory than the rest of the work.
    for start in range(0, len(ids), BLOCK_ROWS):
        texts = ids.series.slice(start, BLOCK_ROWS).to_list()
        words = b"".join([hashlib.sha256(salted + text.encode()).digest()[:size] for text in texts])
        yield slice(start, start + len(texts)), words


def filled_folds(ids: RowIds, folds: int, salt: str) -> IndexArray:
    """Fold of each row, where every fold has some; all in one where there are no folds."""
    if not folds:
        return np.zeros(len(ids), dtype=np.int64)
    numbers = fold_numbers(ids, folds, salt)
    if not np.bincount(numbers, minlength=folds).min():
        raise ShapeError(
            f"{len(ids)} training rows are too few for {folds} folds: one has no rows",
            hint="use fewer folds, or 0 to judge by held-out rows",
        )
    return numbers


NONE = "none"
STEPS = ("trim", "case", "nfkc", "zeros")
_BEYOND_ASCII = r"[^\x00-\x7F]"
# Only ids with such a character can be changed by a step: the rest need not be looked at.
CHANGEABLE = {
    "trim": r"^[\s\x1c-\x1f]|[\s\x1c-\x1f]$",
    # Also numerals and signs of other scripts have capitals: Ⅷ, Ⓐ.
    "case": f"[A-Z]|{_BEYOND_ASCII}",
    "nfkc": _BEYOND_ASCII,
    "zeros": r"^0[0-9]+$",
}
# Ids that are worked on at a time: bounds the memory of many millions.
_SPELLING_BLOCK = 1 << 16
# What Python calls blanks, within ASCII.
_BLANKS = " \t\n\r\x0b\x0c\x1c\x1d\x1e\x1f"


@dataclass(frozen=True, slots=True)
class Normalisation:
    """Normalisation of ids before they are compared."""

    trim: bool = False
    case: bool = False
    nfkc: bool = False
    zeros: bool = False

    @classmethod
    def parse(cls, text: str) -> Normalisation:
        """Parse names separated by commas, or none."""
        names = [name.strip() for name in text.split(",")]
        if names == [NONE]:
            return cls()
        for name in names:
            if name == NONE:
                raise ConfigError(
                    "none cannot be combined with other names",
                    setting="normalise_ids",
                    hint="leave the other names out",
                )
            if name not in STEPS:
                raise ConfigError(
                    f"ids cannot be normalised by {name!r}",
                    setting="normalise_ids",
                    hint=nearest(name, (NONE, *STEPS)),
                )
        return cls(**dict.fromkeys(names, True))

    def __str__(self) -> str:
        return ",".join(name for name in STEPS if getattr(self, name)) or NONE

    def canonical(self) -> str:
        """Canonical JSON, which two parties compare."""
        return canonical_json(asdict(self))

    def one(self, text: str) -> str:
        """One id, normalised."""
        if self.nfkc:
            text = unicodedata.normalize("NFKC", text)
        if self.case:
            text = text.casefold()
            if self.nfkc:
                # Folding can undo the form.
                text = unicodedata.normalize("NFKC", text)
        if self.trim:
            text = text.strip()
        # Of a number alone: in a word such as 0x1f the zero is no filling.
        if self.zeros and text.isascii() and text.isdigit():
            text = text.lstrip("0") or "0"
        return text

    def apply(self, ids: RowIds) -> RowIds:
        """Ids of a table, normalised, in their order."""
        if self == Normalisation():
            return ids
        normalised = self.series(ids.series)
        self._refuse_collisions(ids, normalised)
        return RowIds(normalised)

    def series(self, texts: pl.Series) -> pl.Series:
        """Many texts, normalised as ``one`` does."""
        blocks = [self._block(block) for block in texts.to_frame().iter_slices(_SPELLING_BLOCK)]
        return pl.concat(blocks) if blocks else texts

    def _block(self, frame: pl.DataFrame) -> pl.Series:
        texts = frame.to_series()
        chosen = [CHANGEABLE[step] for step in STEPS if getattr(self, step)]
        if not texts.str.contains("|".join([_BEYOND_ASCII, *chosen])).any():
            return texts
        unusual = texts.str.contains(_BEYOND_ASCII).arg_true()
        # What lies beyond ASCII is a matter of Unicode's tables: those of Python, on both sides.
        others = [self.one(text) for text in texts.gather(unusual).to_list()]
        return self._ascii(texts).scatter(unusual, pl.Series(others, dtype=pl.String))

    def _ascii(self, texts: pl.Series) -> pl.Series:
        """``one`` for each text of ASCII alone; the result for others is undefined."""
        if self.case:
            texts = texts.str.to_lowercase()
        if self.trim:
            texts = texts.str.strip_chars(_BLANKS)
        return texts.str.replace(r"^0+([0-9]+)$", "$1") if self.zeros else texts

    def _refuse_collisions(self, ids: RowIds, normalised: pl.Series) -> None:
        if normalised.n_unique() == len(normalised):
            return
        repeated = ~normalised.is_first_distinct()
        again, others = int(repeated.arg_max() or 0), int(repeated.sum()) - 1
        first = int((normalised == normalised[again]).arg_max() or 0)
        more = f", and so are {others:,} more with an earlier one" if others else ""
        raise RowIdError(
            f"the ids {ids[first]!r} and {ids[again]!r} are the same once normalised "
            f"({self}){more}",
            where=f"rows {first + 1} and {again + 1}",
            hint=Hint(
                "keep one row of each id: {duplicates}; or normalise less",
                duplicates=("first", "last"),
            ),
        )


AS_THEY_ARE = Normalisation()


@dataclass(frozen=True, slots=True)
class DistinctIds:
    """Ids of a table's rows, one row of each.

    ``own_ids`` has them as the table spells them, ``common`` normalised. ``rows`` are the positions
    of the rows in the table; None for all of them.
    """

    own_ids: RowIds
    common: RowIds
    rows: IndexArray | None = None

    @classmethod
    def from_values(
        cls,
        values: object,
        duplicates: Duplicates | None = None,
        normalisation: Normalisation = AS_THEY_ARE,
    ) -> DistinctIds:
        """Ids of a column; ``RowIdError`` where two rows have one id and none is to be dropped."""
        if duplicates in (None, "error"):
            own_ids = RowIds.from_values(values)
            return cls(own_ids, normalisation.apply(own_ids))
        series = _as_text(values)
        keys = series if series.null_count() else normalisation.series(series)
        if not _repeats(keys):
            own_ids = RowIds(series)
            return cls(own_ids, normalisation.apply(own_ids))
        once = keys.is_first_distinct() if duplicates == "first" else keys.is_last_distinct()
        # Ids that are missing are refused, and not taken for one another.
        once |= series.is_null()
        own_ids = RowIds(series.filter(once))
        rows = once.arg_true().to_numpy().astype(np.int64)
        return cls(own_ids, normalisation.apply(own_ids), rows)

    def taken_from(self, frame: pl.DataFrame) -> pl.DataFrame:
        """These rows of the table."""
        return frame if self.rows is None else frame[self.rows]
