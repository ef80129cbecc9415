"""Python functions about models and runs."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Unpack

from taciturn.engine.callbacks import Callbacks, Observer, noop
from taciturn.extras import explained
from taciturn.settings.options import given_options
from taciturn.settings.signatures import SettingsOptions
from taciturn.simulation import in_cell, load_raw, settings_of
from taciturn_risk.runs.collection import RunFilter, collect
from taciturn_risk.runs.result import RunList
from taciturn_risk.woe.result import WoeResult

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
    """Model report of a simulated training, as ``TrainResult.model_report`` returns it.

    >>> import taciturn
    >>> result = taciturn.train(dataset="breast-cancer", mechanism="none", seed=1)
    >>> [(rows.name, rows.metrics.rows) for rows in result.model_report().judged]
    [('training', 455), ('held-out', 114)]
    """
    with explained():
        from taciturn_risk.scorecard.build import ReportRequest
        from taciturn_risk.scorecard.build import simulated_report as built
        from taciturn_risk.scorecard.gains import Costs
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


def woe(
    data: object = None,
    labels: object = None,
    *,
    smoothing: float = 0.5,
    min_rows: int | None = None,
    share_names: bool = True,
    observe: Observer = noop,
    **options: Unpack[SettingsOptions],
) -> WoeResult:
    """Weight of evidence and information value of Alice's columns, for Bob.

    His labels are counted in her bins under his key: she learns nothing of them.

    Args:
        data: As for ``train``.
        labels: As for ``train``.
        smoothing: What is added to the ones and to the zeros of every bin.
        min_rows: Alice merges bins of fewer rows; None for 50, or one in a hundred rows.
        share_names: Whether Bob learns what columns and bins are called, and their order.
        observe: Called with each event.
        options: Settings, as for ``train``; ``bins`` says into how many bins numbers are cut (10).

    Raises:
        TaciturnError: With what is wrong, where, and the way out.

    >>> result = woe(dataset="breast-cancer", mechanism="none", seed=1)
    >>> result.ranked[0].name, round(result.ranked[0].iv, 2)
    ('worst perimeter', 6.19)
    """
    # Loaded here: the sides of a job know the party's files too.
    from taciturn_risk.woe.job import WoeOptions
    from taciturn_risk.woe.simulation import simulate_woe

    chosen = WoeOptions(smoothing, min_rows, share_names)
    settings, table = settings_of(data, given_options(options, woe))
    raw = load_raw(settings, table, labels)
    with in_cell(Callbacks(observe=observe)) as watching:
        return simulate_woe(settings, raw, chosen, watching.observe)
