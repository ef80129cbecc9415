"""The steps of a whole-table training that nobody searches: which rows each uses, and its momentum.

Few rows: ``passes`` steps of the optimised gradient method, each over all rows (``momentum``).

Many rows: the gradient of a block of rows is nearly that of all of them, and what it lacks is known
from a step over all rows a while ago (variance reduction [JohnsonZhang13]). With the rows in a
public random order, cut into B blocks, rounds of 17 steps each are

    g  = X^T r(y_0) / n                             over all rows, at the round's first point
    g' = g + (B/n) X_b^T (r_b(y) - r_b(y_0))        16 steps, over one block after the other

with Nesterov's momentum throughout, which no round starts anew; the last two steps are over all
rows. The mean of g' over the blocks is the gradient at y, whatever their sizes. With B blocks four
rounds use ``5 + 64/B`` times as many rows as there are, where 28 passes use 27 times as many: the
first step starts from zero, and needs no sigmoid.

B is at most 32, and a block has at least 48 rows for each column of either side and 768 in all: in
smaller ones the steps are too noisy. Below 8 blocks the passes are cheaper. All of it follows from
the rows, the columns and the agreed passes, of which a round replaces seven.

**No proof.** Steps over all rows are of safe length, and so is each block's alone
(``Whitening.bounding``); that their sequence ends near the optimum is measured, not proven
(docs/performance.md).
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

from taciturn.numerics.shared_fraction import Momentum, momentum

MOST_BLOCKS, LEAST_BLOCKS = 32, 8
LEAST_ROWS, ROWS_PER_COLUMN = 768, 48
BLOCK_STEPS = 16
"""The steps over a block after each over all rows."""
PASSES_PER_ROUND = 7
_LAST = 2


@dataclass(frozen=True)
class TableSchedule:
    """Steps of a table of ``rows`` with the ``columns`` of both sides, for the agreed ``passes``.

    >>> TableSchedule(455, 31, 28).steps, TableSchedule(120_000, 13, 28).steps
    (28, 70)
    >>> schedule = TableSchedule(120_000, 13, 28)
    >>> schedule.rows_of(0), schedule.rows_of(2), schedule.row_passes
    (slice(0, 120000, None), slice(3750, 7500, None), 7.0)
    """

    rows: int
    columns: int
    passes: int

    @cached_property
    def blocks(self) -> tuple[slice, ...]:
        """Places of the blocks in the rows' public order; none where all steps use all rows."""
        most = min(self.rows // LEAST_ROWS, self.rows // (ROWS_PER_COLUMN * max(1, self.columns)))
        count = min(MOST_BLOCKS, most)
        if count < LEAST_BLOCKS or self.passes < PASSES_PER_ROUND:
            return ()
        ends = [self.rows * at // count for at in range(count + 1)]
        return tuple(map(slice, ends, ends[1:]))

    @property
    def steps(self) -> int:
        """How many there are."""
        if not self.blocks:
            return self.passes
        return self.passes // PASSES_PER_ROUND * (BLOCK_STEPS + 1) + _LAST

    def block(self, number: int) -> int | None:
        """The block of a step; None where it uses all rows."""
        turn, at = divmod(number, BLOCK_STEPS + 1)
        if not self.blocks or not at or number >= self.steps - _LAST:
            return None
        return (turn * BLOCK_STEPS + at - 1) % len(self.blocks)

    def rows_of(self, number: int) -> slice:
        """The rows of a step, in their public order."""
        block = self.block(number)
        return slice(0, self.rows) if block is None else self.blocks[block]

    def first_step(self, passes: int) -> int:
        """The step with which a training resumes that has done so many of the agreed passes."""
        return passes // PASSES_PER_ROUND * (BLOCK_STEPS + 1) if self.blocks else passes

    def resumes_after(self, number: int) -> int | None:
        """The agreed passes done before a step, where a training can resume with it.

        A step over a block cannot be the first: it needs the residues of all rows.
        """
        if not self.blocks:
            return number
        turn, at = divmod(number, BLOCK_STEPS + 1)
        return None if at or number >= self.steps - _LAST else turn * PASSES_PER_ROUND

    def passes_done(self, steps: int) -> int:
        """The agreed passes that so many steps stand for."""
        return steps * self.passes // self.steps

    def momentum(self, number: int) -> Momentum:
        """The momentum after a step."""
        if not self.blocks:
            return momentum(number, self.passes)
        return momentum(number, 0)._replace(by_point=0)

    @property
    def row_passes(self) -> float:
        """How often the sigmoid of a row is computed, on average: not in the first step."""
        places = map(self.rows_of, range(1, self.steps))
        return float(sum(place.stop - place.start for place in places) / self.rows)
