"""The front door: ``align``, ``train``, ``check`` and ``audit``.

Options are the fields of ``Settings``, with the types of ``SettingsOptions``; each is also an
option of the commands and a key of their TOML file.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, Unpack, overload

import polars as pl

from taciturn.arrays import FloatArray
from taciturn.engine.callbacks import Callbacks, Observer, ReportProgress, noop
from taciturn.errors import ConfigError
from taciturn.extensions import function
from taciturn.extras import RISK
from taciturn.jobs.study.result import SimulatedStudy
from taciturn.jobs.train.simulation import Outcome, raise_if_diverged, simulate_training
from taciturn.jobs.train.simulation import estimate as calibrate
from taciturn.results.cost_preview import Estimate
from taciturn.results.runs import Runs
from taciturn.results.training import TrainingRun
from taciturn.settings.options import (
    given_options,
    per_seed,
    record_target,
    refusing_former_keywords,
)
from taciturn.settings.signatures import SettingsOptions
from taciturn.settings.table import Duplicates
from taciturn.simulation import in_cell, load_raw, settings_of

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.figure import Figure


@dataclass(frozen=True, slots=True)
class TrainResult:
    """One training, or several seeds of it.

    >>> result = train(dataset="breast-cancer", mechanism="none", scheme="clear", seed=1, epochs=2)
    >>> result.to_dict()["alice_columns"]
    30
    """

    outcomes: tuple[Outcome, ...] = field(repr=False)

    @property
    def weights(self) -> dict[str, FloatArray]:
        """Each party's weights (of the first seed)."""
        first = self.outcomes[0]
        return {"alice": first.alice_weights, "bob": first.bob_weights}

    @property
    def runs(self) -> Runs[TrainingRun]:
        """Result of each training, and their means."""
        return Runs(tuple(outcome.result for outcome in self.outcomes))

    def to_dict(self) -> dict[str, Any]:
        """The record of ``taciturn train --json``."""
        return self.runs.to_dict()

    def model_report(
        self,
        *,
        costs: tuple[float, float] | None = None,
        bands: int = 10,
        points: tuple[float, float, float] = (600.0, 50.0, 20.0),
    ) -> Any:  # noqa: ANN401 - the report's type is its distribution's
        """Model report of the first seed, with exact standard errors.

        Args:
            costs: What a false alarm and a miss cost.
            bands: How many score bands.
            points: Base score, base odds, and the points that double the odds.

        Raises:
            ConfigError: One of them is not fit for use.
        """
        # The distribution that has the report registers the function; the core imports none.
        return function("simulated_report", RISK, wanted="the model report")(
            self.outcomes[0], costs=costs, bands=bands, points=points
        )

    def __repr__(self) -> str:
        first, test = self.runs.first, self.runs.means.test
        figures = f"held-out AUC {test.get('auc', math.nan):.4f}, log loss {test['loss']:.4f}"
        if not first.agreement.kind.has_classes:
            figures = f"{first.agreement.family}, held-out deviance {test['deviance']:.4g}"
        return f"TrainResult({first.data.dataset}, {first.agreement.mechanism}: {figures})"

    def to_pandas(self) -> pd.DataFrame:
        """The figures as a pandas frame; ConfigError where pandas is not installed."""
        return self.runs.to_pandas()

    def plot(self) -> Figure:
        """Predictions against what happened; ConfigError where matplotlib is not installed."""
        return self.runs.plot()

    def _repr_html_(self) -> str | None:
        return self.runs._repr_html_()


@overload
def align(  # type: ignore[overload-overlap]  # a list is an object too, and comes first
    alice: list[Any],
    bob: object,
    *,
    id: str = ...,
    bob_id: str | None = ...,
    normalise_ids: str = ...,
    duplicates: Duplicates = ...,
) -> tuple[list[pl.DataFrame], pl.DataFrame]: ...


@overload
def align(
    alice: object,
    bob: object,
    *,
    id: str = ...,
    bob_id: str | None = ...,
    normalise_ids: str = ...,
    duplicates: Duplicates = ...,
) -> tuple[pl.DataFrame, pl.DataFrame]: ...


@refusing_former_keywords
def align(
    alice: object,
    bob: object,
    *,
    id: str = "id",
    bob_id: str | None = None,
    normalise_ids: str = "none",
    duplicates: Duplicates = "error",
) -> tuple[pl.DataFrame | list[pl.DataFrame], pl.DataFrame]:
    """The rows that tables have in common, found as the parties find them.

    Args:
        alice: A path to a CSV or Parquet file, or a pandas or polars frame; a list of them for
            several Alices.
        bob: A path or a frame.
        id: The column that names the rows.
        bob_id: Bob's, where it has another name.
        normalise_ids: none, or any of trim, case, nfkc and zeros, separated by commas.
        duplicates: error, or which of several rows with one id is taken: first or last.

    Returns:
        The common rows of Alice's table and of Bob's, in the same order; of a list of tables, a
        list of theirs.

    Raises:
        TaciturnError: With what is wrong, where, and the way out.

    >>> hers = pl.DataFrame({"id": [3, 1, 2], "age": [30, 40, 50]})
    >>> his = pl.DataFrame({"id": [2, 4, 3], "paid": [1, 0, 0]})
    >>> [table.rows() for table in align(hers, his)]
    [[(2, 50), (3, 30)], [(2, 1), (3, 0)]]
    >>> others = pl.DataFrame({"id": [3, 4], "wage": [7, 8]})
    >>> hers, his = align([hers, others], his)
    >>> [table.rows() for table in hers], his.rows()
    ([[(3, 30)], [(3, 7)]], [(3, 0)])
    """
    # Loaded here: the sides of a job know the party's files too.
    from taciturn.jobs.align.simulation import align_tables

    if isinstance(alice, list) and not alice:
        raise ConfigError("no table is given for Alice", where="alice=", hint="name one or more")
    alice_frames, bob_frame = align_tables(
        alice if isinstance(alice, list) else [alice],
        bob,
        alice_id=id,
        bob_id=id if bob_id is None else bob_id,
        normalise_ids=normalise_ids,
        duplicates=duplicates,
    )
    return (alice_frames if isinstance(alice, list) else alice_frames[0]), bob_frame


def train(
    data: object = None,
    labels: object = None,
    *,
    record: str | Path | None = None,
    observe: Observer = noop,
    **options: Unpack[SettingsOptions],
) -> TrainResult:
    """Train a logistic regression between two simulated parties.

    Args:
        data: A path, or a pandas or polars frame with a ``label`` column; or columns alone (also a
            NumPy array or a ``FeatureTable``) with ``labels`` beside them; or nothing, and
            ``dataset`` names one.
        labels: The 0/1 labels of the rows (an array, a series or a ``LabelTable``).
        record: Write the transcript to this file (one seed only).
        observe: Called with each event of the run.
        options: Settings: mechanism, scheme, epochs, alice_columns, seed, …

    Returns:
        Metrics, weights, ledger and traffic.

    Raises:
        DivergenceError: The model is worse than none, and not by noise that protects labels.
        TaciturnError: With what is wrong, where, and the way out.

    >>> train(dataset="breast-cancr", mechanism="none")
    Traceback (most recent call last):
        ...
    taciturn.errors.ConfigError: unknown dataset breast-cancr
      where: dataset=
      try:   did you mean breast-cancer? ...
    """
    settings, table = settings_of(data, given_options(options, train))
    target = record_target(record, settings)
    raw = load_raw(settings, table, labels)
    outcomes = []
    with in_cell(Callbacks(observe=observe)) as watching:
        for run in per_seed(settings):
            outcomes.append(simulate_training(run, raw, record=target, observe=watching.observe))
            raise_if_diverged(outcomes[-1].result)
    return TrainResult(tuple(outcomes))


def study(
    data: object = None,
    labels: object = None,
    *,
    vary: Mapping[str, Sequence[object]],
    folds: int = 0,
    rank_by: str = "loss",
    open_scores: bool = False,
    processes: int | None = None,
    progress: ReportProgress = noop,
    **options: Unpack[SettingsOptions],
) -> SimulatedStudy:
    """Train a model for each combination of some settings' values, on all cores.

    Args:
        data: As for ``train``.
        labels: As for ``train``.
        vary: For each setting that varies its values: ``{"l2": [1e-5, 1e-4], "passes": [12, 24]}``.
        folds: How many folds judge each combination; 0 for the held-out rows.
        rank_by: ``loss`` or ``auc``.
        open_scores: In ``mutual``, judge by scores of rows, and not by one noisy sum for each
            combination.
        processes: How many train at a time; None for one a core.
        progress: Called with how many models are trained, and of how many.
        options: Settings, as for ``train``.

    Raises:
        TaciturnError: With what is wrong, where, and the way out.

    >>> study(dataset="breast-cancer", vary={"l3": [1, 2]})
    Traceback (most recent call last):
        ...
    taciturn.errors.ConfigError: unknown setting l3
      where: l3=
      try:   ...
    """
    from taciturn.jobs.study.simulation import simulate_study
    from taciturn.settings.study import Study

    settings, table = settings_of(data, given_options(options, study))
    listed = {name: list(values) for name, values in vary.items()}
    wanted = Study.from_mapping(
        {"folds": folds, "rank_by": rank_by, "open_scores": open_scores, **listed}
    )
    raw = load_raw(settings, table, labels)
    with in_cell(Callbacks(progress=progress)) as watching:
        return simulate_study(
            settings,
            wanted,
            raw,
            workers=processes,
            progress=watching.progress,
        )


def estimate(
    data: object = None, labels: object = None, **options: Unpack[SettingsOptions]
) -> Estimate:
    """Estimated duration and traffic of a training with these settings.

    The training runs for a few seconds, on a sample of its rows or for its first iterations. The
    estimate is for one seed, both parties in one process, from the first message to the last:
    preparing the tables, and comparing with the optimum (``compare_optimum``), come on top.

    Args:
        data: As for ``train``.
        labels: As for ``train``.
        options: Settings, as for ``train``.

    >>> estimate(dataset="breast-cancer", mechanism="none", scheme="clear", epochs=2).iterations
    58
    """
    settings, table = settings_of(data, given_options(options, estimate))
    return calibrate(settings, load_raw(settings, table, labels))
