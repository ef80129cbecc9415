"""An alignment with all sides in one process."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import polars as pl

from taciturn.data.csv_files import Dialect
from taciturn.data.ids import NONE, Duplicates, Normalisation, RowIds
from taciturn.data.source import TableSource
from taciturn.engine.callbacks import Observer, noop
from taciturn.engine.driver import Tap
from taciturn.engine.pair import StarTap
from taciturn.jobs.align.intersection import IntersectionTask, MatchRequirement, terms_among
from taciturn.jobs.align.pairwise import Alignment, Spread
from taciturn.jobs.base import simulate_job
from taciturn.protocol.messages import Role
from taciturn.protocol.steps import ONLY
from taciturn.rng import Entropy, KeyedEntropy


@dataclass(frozen=True, slots=True)
class AlignedPair:
    """Aligned rows of both sides, in the same order of common ids."""

    alice: Alignment = field(repr=False)
    bob: Alignment = field(repr=False)
    ids: RowIds

    @property
    def rows(self) -> int:
        """Number of common rows."""
        return len(self.ids)


def align_ids(
    alice: RowIds,
    bob: RowIds,
    *,
    normalisation: Normalisation | None = None,
    entropy: Entropy | None = None,
    spread: Spread = map,
    tap: Tap | None = None,
    observe: Observer = noop,
) -> AlignedPair:
    """Align two lists of ids.

    ``normalisation`` does nothing by default. ``tap`` is called with the sender and the bytes of
    each frame. Raises ``RowIdError`` where two normalised ids of one side are the same.

    >>> alice = RowIds.from_values(["cy", "ann", "bea"])
    >>> aligned = align_ids(alice, RowIds.from_values(["bea", "dan", "cy"]))
    >>> aligned.ids.series.to_list(), aligned.alice.rows.tolist(), aligned.bob.rows.tolist()
    (['bea', 'cy'], [2, 0], [0, 2])
    """
    chosen, root = normalisation or Normalisation(), entropy or KeyedEntropy.from_system()
    listen = None if tap is None else (lambda _, sender, frame: tap(sender, frame))
    alice_task, bob_task = (
        _task("alice", (), alice, chosen, spread),
        _task("bob", (), bob, chosen, spread),
    )
    end = simulate_job(
        {ONLY: alice_task.program(root.fork("alice"))},
        bob_task.program(root.fork("bob")),
        tap=listen,
        observe=observe,
    )
    alice_match, bob_match = end.alices[ONLY].ends[ONLY], end.bob.ends[ONLY]
    return AlignedPair(alice_match, bob_match, alice_task.requirement.ids.take(alice_match.rows))


@dataclass(frozen=True, slots=True)
class AlignedStar:
    """Aligned rows of all sides, in the same order of common ids."""

    alices: Mapping[str, Alignment] = field(repr=False)
    bob: Mapping[str, Alignment] = field(repr=False)
    ids: RowIds


def align_lists(
    alices: Mapping[str, RowIds],
    bob: RowIds,
    *,
    normalisation: Normalisation | None = None,
    entropy: Entropy | None = None,
    spread: Spread = map,
    tap: StarTap | None = None,
    observe: Observer = noop,
) -> AlignedStar:
    """Align the lists of several Alices with Bob's.

    ``tap`` is called with the link, the sender and the bytes of each frame; the rest is as in
    ``align_ids``.

    >>> lists = {"alice-1": RowIds.from_values(["cy", "ann", "bea"])}
    >>> lists["alice-2"] = RowIds.from_values(["bea", "ann"])
    >>> aligned = align_lists(lists, RowIds.from_values(["dan", "bea", "cy"]))
    >>> aligned.ids.series.to_list(), [one.rows.tolist() for one in aligned.alices.values()]
    (['bea'], [[2], [0]])
    """
    chosen, root = normalisation or Normalisation(), entropy or KeyedEntropy.from_system()
    names = tuple(alices)
    tasks = {name: _task("alice", names, ids, chosen, spread) for name, ids in alices.items()}
    bob_task = _task("bob", names, bob, chosen, spread)
    end = simulate_job(
        {name: task.program(root.fork(name)) for name, task in tasks.items()},
        bob_task.program(root.fork("bob")),
        tap=tap,
        observe=observe,
    )
    matches = {name: alice_end.ends[ONLY] for name, alice_end in end.alices.items()}
    return AlignedStar(matches, end.bob.ends, bob_task.requirement.ids.take(end.bob.rows))


def _task(
    role: Role, alices: Sequence[str], ids: RowIds, chosen: Normalisation, spread: Spread
) -> IntersectionTask:
    terms = terms_among(chosen, dict.fromkeys(alices, "")) if alices else chosen.canonical()
    requirement = MatchRequirement(chosen.apply(ids), chosen, least=None)
    return IntersectionTask(role, alices, requirement, terms, spread)


def align_tables(
    alices: Sequence[object],
    bob: object,
    *,
    alice_id: str,
    bob_id: str,
    normalise_ids: str = NONE,
    duplicates: Duplicates = "error",
) -> tuple[list[pl.DataFrame], pl.DataFrame]:
    """The rows that all tables have in common, in the same order.

    A table is a path to a CSV or Parquet file, or a pandas or polars frame. ``normalise_ids`` is
    none, or any of trim, case, nfkc and zeros, separated by commas; ``duplicates`` which of several
    rows with one id is taken.

    >>> hers = pl.DataFrame({"id": ["cy", "ann", "bea"], "age": [30, 40, 50]})
    >>> his = pl.DataFrame({"who": ["bea", "dan", "cy"], "paid": [1, 0, 0]})
    >>> (one,), two = align_tables([hers], his, alice_id="id", bob_id="who")
    >>> one.rows(), two.rows()
    ([('bea', 50), ('cy', 30)], [('bea', 1), ('cy', 0)])
    """
    chosen = Normalisation.parse(normalise_ids)
    dialect = Dialect(duplicates=duplicates)
    alice_rows = [_once(TableSource.at(table, dialect), alice_id, chosen) for table in alices]
    bob_frame, bobs = _once(TableSource.at(bob, dialect), bob_id, chosen)
    lists = [ids for _, ids in alice_rows]
    if len(lists) == 1:
        pair = align_ids(lists[0], bobs, normalisation=chosen)
        return [alice_rows[0][0][pair.alice.rows]], bob_frame[pair.bob.rows]
    named = {f"alice-{number}": ids for number, ids in enumerate(lists, start=1)}
    aligned = align_lists(named, bobs, normalisation=chosen)
    ends = zip(alice_rows, aligned.alices.values(), strict=True)
    return [frame[end.rows] for (frame, _), end in ends], bob_frame[aligned.bob["alice-1"].rows]


def _once(
    source: TableSource, id_column: str, normalisation: Normalisation
) -> tuple[pl.DataFrame, RowIds]:
    frame = source.frame(text=[id_column])
    distinct = source.distinct(frame, id_column, normalisation)
    return distinct.taken_from(frame), distinct.own_ids
