"""When two spellings of an id mean the same row: an explicit choice, none by default.

``nfkc`` (Unicode's compatibility form), then ``case`` (folded), then ``trim`` (no blanks at the
ends), as far as they are chosen. Two parties must choose the same. Two ids of one table that become
one are refused: nobody could say which row is meant.
"""

from __future__ import annotations

import unicodedata
from collections.abc import Iterator
from dataclasses import asdict, dataclass

import polars as pl

from taciturn.data.ids import RowIds
from taciturn.errors import ConfigError, RowIdError, nearest
from taciturn.files import canonical_json

NONE = "none"
STEPS = ("trim", "case", "nfkc")
# Ids that are Python objects at a time: bounds the memory of many millions.
_BLOCK = 1 << 16


@dataclass(frozen=True, slots=True)
class Normalisation:
    """What is done to each id before it is compared.

    >>> Normalisation.of("trim,case").one(" Ann")
    'ann'
    >>> str(Normalisation.of("none"))
    'none'
    """

    trim: bool = False
    case: bool = False
    nfkc: bool = False

    @classmethod
    def of(cls, text: str) -> Normalisation:
        """From names separated by commas, or none.

        Raises:
            ConfigError: A name is not known, or none stands beside another.
        """
        names = [name.strip() for name in text.split(",")]
        if names == [NONE]:
            return cls()
        for name in names:
            if name == NONE:
                raise ConfigError(
                    "none cannot be combined with other names",
                    setting="normalise",
                    hint="leave the other names out",
                )
            if name not in STEPS:
                raise ConfigError(
                    f"ids cannot be normalised by {name!r}",
                    setting="normalise",
                    hint=nearest(name, (NONE, *STEPS)),
                )
        return cls(**dict.fromkeys(names, True))

    def __str__(self) -> str:
        return ",".join(name for name in STEPS if getattr(self, name)) or NONE

    def canonical(self) -> str:
        """What two parties compare.

        >>> Normalisation.of("trim").canonical()
        '{"case":false,"nfkc":false,"trim":true}'
        """
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
        return text.strip() if self.trim else text

    def apply(self, ids: RowIds) -> RowIds:
        """The ids of a table, normalised, in their order.

        Raises:
            RowIdError: Two of them become one, or one becomes empty or not printable.

        >>> Normalisation.of("case").apply(RowIds.of(["Ann", "BEA"])) == RowIds.of(["ann", "bea"])
        True
        """
        if self == Normalisation():
            return ids
        blocks = [pl.Series(block, dtype=pl.String) for block in self._blocks(ids)]
        normalised = pl.concat(blocks) if blocks else ids.series
        self._refuse_collisions(ids, normalised)
        return RowIds(normalised)

    def _blocks(self, ids: RowIds) -> Iterator[list[str]]:
        for start in range(0, len(ids), _BLOCK):
            yield [self.one(identifier) for identifier in ids.series.slice(start, _BLOCK).to_list()]

    def _refuse_collisions(self, ids: RowIds, normalised: pl.Series) -> None:
        if normalised.n_unique() == len(normalised):
            return
        again = int((~normalised.is_first_distinct()).arg_max() or 0)
        first = int((normalised == normalised[again]).arg_max() or 0)
        raise RowIdError(
            f"the ids {ids[first]!r} and {ids[again]!r} are the same once normalised ({self})",
            where=f"rows {first + 1} and {again + 1}",
            hint="keep one of the two rows, or normalise less",
        )
