"""Target leakage: columns that give the label away, or look as if they were one.

Only the party with the labels can compare columns with them: Bob, for his own columns, and a
simulation. Of Alice's columns only names and values are looked at, by her.
"""

from __future__ import annotations

import re

import numpy as np
import polars as pl

from taciturn.data.parquet import Columns
from taciturn.data.tables import INTERCEPT, FeatureTable, LabelTable
from taciturn.errors import spelled
from taciturn.faces import Hint
from taciturn.memmap import drop_pages

# Beyond this AUC, of the column alone, it is the label or made from it; fewer rows prove nothing.
_NEAR, _FEWEST = 0.995, 12
# So many rows are enough, and keep the look short.
_MOST = 20_000
_NAMES = re.compile(
    r"(?:^|[_ .-])(?:label|target|outcome|class|y|response|default|defaulted|churn|churned|fraud|"
    r"bad|delinquent|event)(?:$|[_ .-])"
)
_TWO_WORDS = ({"0", "1"}, {"no", "yes"}, {"n", "y"}, {"false", "true"}, {"f", "t"})


def leakage_notes(table: FeatureTable, labels: LabelTable) -> tuple[str, ...]:
    """A remark on each prepared column that alone predicts the labels nearly perfectly."""
    step = -(-table.rows // _MOST)
    truth, sample = labels.values[::step], np.array(table.values[::step])
    drop_pages(table.values)
    ones = int(truth.sum())
    if min(ones, len(truth) - ones) < _FEWEST:
        return ()
    notes = []
    for place, name in enumerate(table.columns):
        values = sample[:, place]
        if name == INTERCEPT or values[0] == values[-1] == values.mean():
            continue
        ranks = pl.Series(values).rank("average").to_numpy()
        zeros = len(truth) - ones
        auc = (float(ranks[truth == 1].sum()) - ones * (ones + 1) / 2) / (ones * zeros)
        if max(auc, 1 - auc) >= _NEAR:
            source = name.partition("=")[0]
            notes.append(
                f"column {name} nearly equals the label (AUC {max(auc, 1 - auc):.1%} alone): is it "
                f"known when you predict? If not, leave it out: "
                f"{spelled(Hint('{drop}', drop=[source]))}"
            )
    return tuple(notes)


def label_name_notes(frame: Columns) -> tuple[str, ...]:
    """A remark on each raw column of two values whose name is that of a label."""
    return tuple(
        f"column {name} has two values and the name of a label, and Alice's columns hold none: if "
        f"it is one, leave it out: {spelled(Hint('{drop}', drop=[name]))}"
        for name in frame.columns
        if _NAMES.search(name.lower()) and _has_two_values(frame[name])
    )


def _has_two_values(series: pl.Series) -> bool:
    if series.dtype == pl.Boolean:
        return True
    if not (series.dtype in (pl.String, pl.Categorical, pl.Enum) or series.dtype.is_numeric()):
        return False
    values = series.drop_nulls().unique()
    if len(values) != 2:
        return False
    if values.dtype.is_numeric():
        return set(values.to_list()) == {0, 1}
    return set(values.cast(pl.String).str.to_lowercase().to_list()) in _TWO_WORDS
