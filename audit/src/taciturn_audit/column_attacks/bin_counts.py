"""What Bob can tell of Alice's binned columns from the counts of his own labels in their bins.

He knows each row's label and, of a column, how many rows of either label each bin has. So he knows
of a row of label y the exact distribution of its bin among the rows of that label, and nothing that
tells two rows of one label apart.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from taciturn.arrays import IntArray
from taciturn.jobs.woe.weights import mutual_bits


@dataclass(frozen=True, slots=True)
class BinKnowledge:
    """How well the counts determine the bins of rows.

    ``prior`` and ``posterior`` are the shares of rows whose bin a guess gets right, by the sizes
    alone and by the row's label too. ``bits`` is the mutual information of bin and label, per row.
    ``located`` counts the rows in a bin that their label settles. ``excluded`` is the mean number
    of bins per row that its label rules out.
    """

    prior: float
    posterior: float
    bits: float
    located: int
    excluded: float


def bin_knowledge(ones: IntArray, rows: IntArray) -> BinKnowledge:
    """What Bob learns of one column, from the ones and all rows in each bin.

    >>> known = bin_knowledge(np.array([0, 10]), np.array([60, 40]))
    >>> known.prior, known.posterior, known.located
    (0.6, 0.7, 10)
    """
    table = np.stack([rows - ones, ones])
    total = int(rows.sum())
    spread = np.count_nonzero(table, axis=1)
    located = int(table[spread == 1].sum())
    per_label = table.sum(axis=1)
    ruled_out = float(((len(rows) - spread) * per_label).sum() / total)
    return BinKnowledge(
        prior=float(rows.max() / total),
        posterior=float(table.max(axis=1).sum() / total),
        bits=mutual_bits(ones, rows),
        located=located,
        excluded=ruled_out,
    )
