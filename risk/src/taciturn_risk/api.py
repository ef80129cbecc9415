"""Python functions about models and runs."""

from __future__ import annotations

from pathlib import Path

from taciturn_risk.runs.collection import RunFilter, collect
from taciturn_risk.runs.result import RunList


def runs(
    folder: str | Path = "runs",
    *,
    mechanism: str | None = None,
    dataset: str | None = None,
    kind: str | None = None,
    sort: str | None = None,
) -> RunList:
    """The runs that commands left in a folder with ``--out``.

    Args:
        folder: A folder of result folders, or a result folder itself.
        mechanism: Only runs with this mechanism.
        dataset: Only runs of these data.
        kind: Only results of this kind, such as ``train`` or ``audit``.
        sort: By ``time`` (as without it), ``name``, ``auc``, ``epsilon``, ``leakage``, ``seconds``
            or ``bytes``.

    Returns:
        What each was, how good its model is, what it told and cost; ``to_pandas()`` has a row for
        each.

    Raises:
        TaciturnError: There is no such folder, or no such order.

    >>> runs("no-such-folder")
    Traceback (most recent call last):
        ...
    taciturn.errors.FileError: there is no folder of runs here
      where: no-such-folder
      try:   ...
    """
    return collect(Path(folder), RunFilter(mechanism, dataset, kind, sort)).list
