"""Python functions about models and runs."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from taciturn.extras import explained
from taciturn_risk.runs.collection import RunFilter, collect
from taciturn_risk.runs.result import RunList

if TYPE_CHECKING:
    from taciturn.jobs.train.simulation import Outcome
    from taciturn_risk.scorecard.result import ModelReport


def simulated_report(
    outcome: Outcome,
    *,
    costs: tuple[float, float] | None = None,
    bands: int = 10,
    points: tuple[float, float, float] = (600.0, 50.0, 20.0),
) -> ModelReport:
    """Model report of a simulated training, as ``TrainResult.model_report`` returns it."""
    with explained():
        from taciturn.numerics.sorted_scores import Costs
        from taciturn_risk.scorecard.build import ReportRequest
        from taciturn_risk.scorecard.build import simulated_report as built
        from taciturn_risk.scorecard.points import Scale

        known, scale = None if costs is None else Costs(*costs), Scale(*points)
        return built(outcome, ReportRequest(costs=known, bands=bands, scale=scale))


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
