"""Both sides of an alignment in one process: the same programs, every frame through the codec."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path

import polars as pl

from taciturn.data.files import read_frame
from taciturn.data.frames import as_frame
from taciturn.data.ids import RowIds
from taciturn.data.normalisation import NONE, Normalisation
from taciturn.data.own import ids_alone
from taciturn.engine.callbacks import Observer, ignore
from taciturn.engine.driver import Tap
from taciturn.engine.pair import run_pair
from taciturn.protocol.align import Alignment, Spread, align
from taciturn.rng import Entropy, KeyedEntropy


@dataclass(frozen=True, slots=True)
class AlignedPair:
    """What both sides have at the end: each its own rows, in the same order of common ids."""

    alice: Alignment = field(repr=False)
    bob: Alignment = field(repr=False)
    ids: RowIds

    @property
    def rows(self) -> int:
        """How many are common."""
        return len(self.ids)


def align_ids(
    alice: RowIds,
    bob: RowIds,
    *,
    normalisation: Normalisation | None = None,
    entropy: Entropy | None = None,
    spread: Spread = map,
    tap: Tap | None = None,
    observe: Observer = ignore,
) -> AlignedPair:
    """Aligns two lists of ids.

    Args:
        alice: Alice's ids.
        bob: Bob's ids.
        normalisation: What is done to each id before it is compared; nothing by default.
        entropy: Both sides' coins; the operating system's by default.
        spread: How work is done on parts.
        tap: Called with the sender and the bytes of each frame.
        observe: Called with each event of either side.

    Raises:
        RowIdError: Two ids of one side are the same once normalised.

    >>> aligned = align_ids(RowIds.of(["cy", "ann", "bea"]), RowIds.of(["bea", "dan", "cy"]))
    >>> aligned.ids.series.to_list(), aligned.alice.rows.tolist(), aligned.bob.rows.tolist()
    (['bea', 'cy'], [2, 0], [0, 2])
    """
    chosen = normalisation or Normalisation()
    coins = entropy or KeyedEntropy.from_system()
    hers, his = chosen.apply(alice), chosen.apply(bob)
    terms = chosen.canonical()
    one, two = run_pair(
        align("alice", hers, terms, coins.fork("alice"), spread),
        align("bob", his, terms, coins.fork("bob"), spread),
        tap=tap,
        observe=observe,
    )
    return AlignedPair(one, two, hers.take(one.rows))


def align_tables(
    alice: object, bob: object, *, alice_id: str, bob_id: str, normalise: str = NONE
) -> tuple[pl.DataFrame, pl.DataFrame]:
    """The rows that two tables have in common, in the same order.

    Args:
        alice: A path to a CSV or Parquet file, or a pandas or polars frame.
        bob: The same.
        alice_id: The column that names Alice's rows.
        bob_id: The column that names Bob's rows.
        normalise: none, or any of trim, case, nfkc and zeros, separated by commas.

    Raises:
        DataError: A table or its ids are not fit for use.
        ConfigError: There is no such way to normalise.

    >>> hers = pl.DataFrame({"id": ["cy", "ann", "bea"], "age": [30, 40, 50]})
    >>> his = pl.DataFrame({"who": ["bea", "dan", "cy"], "paid": [1, 0, 0]})
    >>> one, two = align_tables(hers, his, alice_id="id", bob_id="who")
    >>> one.rows(), two.rows()
    ([('bea', 50), ('cy', 30)], [('bea', 1), ('cy', 0)])
    """
    frames = [_frame(alice, alice_id), _frame(bob, bob_id)]
    names = (alice_id, bob_id)
    ids = [ids_alone(frame, id_column=name) for frame, name in zip(frames, names, strict=True)]
    matched = align_ids(ids[0], ids[1], normalisation=Normalisation.of(normalise))
    return frames[0][matched.alice.rows], frames[1][matched.bob.rows]


def _frame(source: object, id_column: str) -> pl.DataFrame:
    if isinstance(source, str | Path):
        return read_frame(source, text=[id_column])
    return as_frame(source)
