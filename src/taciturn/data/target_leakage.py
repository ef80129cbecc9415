"""Target leakage: notes about columns that nearly equal the label, or have its name."""

from __future__ import annotations

import re
from typing import Any

import numpy as np
import polars as pl
from numpy.typing import NDArray

from taciturn.arrays import FloatArray
from taciturn.data.label_table import LabelTable
from taciturn.data.lazy_table import Columns
from taciturn.data.tables import FeatureTable
from taciturn.errors import advised, spelled
from taciturn.memmap import drop_pages
from taciturn.setting_syntax import Hint

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
    step, classes = -(-table.rows // _MOST), labels.kind.has_classes
    truth, sample = np.asarray(labels.values[::step]), np.array(table.values[::step])
    drop_pages(table.values)
    enough = min(int(truth.sum()), int((1 - truth).sum())) if classes else len(truth)
    if enough < _FEWEST or np.ptp(truth) == 0:
        return ()
    notes = []
    for name, values in zip(table.columns, sample.T, strict=True):
        if np.ptp(values) == 0:
            continue
        near = _auc(values, truth) if classes else abs(float(np.corrcoef(values, truth)[0, 1]))
        if near >= _NEAR:
            shown = f"AUC {near:.1%} alone" if classes else f"correlation {near:.3f}"
            drop = spelled(Hint("{drop}", drop=[name.partition("=")[0]]))
            notes.append(
                f"column {name} nearly equals the label ({shown}): is it known when you predict? "
                f"If not, leave it out: {drop}"
            )
    return tuple(notes)


def _auc(values: FloatArray, truth: NDArray[Any]) -> float:
    """Area under the ROC curve of one column alone, in its better direction."""
    ranks, ones = pl.Series(values).rank("average").to_numpy(), int(truth.sum())
    wins = float(ranks[truth == 1].sum()) - ones * (ones + 1) / 2
    auc = wins / (ones * (len(truth) - ones))
    return max(auc, 1 - auc)


def width_notes(columns: int, rows: int) -> tuple[str, ...]:
    """Note for a table with more prepared columns than training rows; empty for others."""
    if columns <= rows:
        return ()
    return (
        f"there are more columns ({columns:,}) than training rows ({rows:,}): a model can fit any "
        f"labels of these rows. {advised('Raise {l2}, or leave columns out')}",
    )


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
