"""Regressors of scikit-learn's kind for counts, amounts and numbers, on a simulated training.

``fit`` runs Alice's and Bob's programs in this process, as that of ``VerticalLogisticRegression``
does. ``sample_weight`` and ``exposure`` are Bob's, as the labels are.

**Guarantee.** The ledger's, under its assumption (``ledger_``); the classes have none of their own.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar, Self

import numpy as np
from sklearn.base import RegressorMixin
from sklearn.utils.validation import _check_sample_weight, check_is_fitted, validate_data

from taciturn.arrays import FloatArray
from taciturn.data.frames import collected
from taciturn.data.ids import RowIds
from taciturn.data.label_table import LabelTable
from taciturn.errors import LabelValueError
from taciturn.estimator import SimulatedModel, columns_weights, seed_of
from taciturn.families.base import Family
from taciturn.families.registry import FAMILIES
from taciturn.numerics.label_metrics import null_score
from taciturn.privacy.solvers import resolved
from taciturn.settings.schema import Settings
from taciturn.settings.signatures import RegressorParameters

# What scikit-learn calls otherwise than the commands do.
_OWN_NAMES = ("fit_intercept", "random_state")


class VerticalRegressor(RegressorParameters, RegressorMixin, SimulatedModel):  # type: ignore[misc]
    """A generalised linear model, trained by simulated parties.

    Every parameter but the last two is the setting of the same name, with its default for own
    data. Columns are taken as they come: put a ``StandardScaler`` before it.

    Args:
        {settings}
        fit_intercept: Fit an intercept, at Bob and without penalty.
        random_state: An int is the seed of a simulated run (``seed`` of ``train``); None draws one.

    Attributes:
        coef_: The weights, one for each column. In "sealed" they exist only here: neither party
            has Alice's part.
        intercept_: 0 without ``fit_intercept``.
        n_iter_: How many passes were trained on.
        n_features_in_: How many columns there were.
        feature_names_in_: Their names, where all were text.
        ledger_: What the run cost, with the keys of the commands' ``ledger``.
        record_: The run's record, as ``taciturn train --json`` prints it.
        seed_: The seed of the run. It determines all randomness of the run.
    """

    family: ClassVar[str]
    texts: ClassVar[Mapping[str, str]] = {
        "mechanism": "How the labels are protected: `mutual` (default; gaussian only), `sealed` or "
        "`none`. The other families, and several Alices, need one of the last two.",
        "scheme": "Encryption scheme: `bfv`, or `clear` (no encryption).",
        "passes": "Number of passes over the rows (default: with `mutual` 28, or 56 below 8,192 "
        "training rows; else 12, with several Alices 20).",
        "l2": "L2 penalty on all weights except the intercept, half of which times their squares "
        "is added to half of the mean deviance (default: 1 / training rows). scikit-learn's "
        "``alpha`` of ``PoissonRegressor`` and ``GammaRegressor``; times the rows, of ``Ridge``.",
    }

    @property
    def _kind(self) -> Family:
        return FAMILIES[self.family]

    # scikit-learn's name for the columns is a capital letter.
    def fit(
        self,
        X: Any,  # noqa: ANN401, N803, RUF100
        y: Any,  # noqa: ANN401
        sample_weight: Any = None,  # noqa: ANN401
        *,
        exposure: Any = None,  # noqa: ANN401
    ) -> Self:
        """Train both parties on all rows.

        Args:
            X: Numbers, rows by columns: an array, or a pandas or polars frame.
            y: The labels, such as the family can have.
            sample_weight: How much each row counts; all alike where None.
            exposure: With a log link, how long or how much each row was observed.

        Raises:
            ValueError: The rows or labels are not fit for use.
            TaciturnError: A parameter is not possible.
        """
        X, y = validate_data(
            self, collected(X), y, dtype=np.float64, ensure_min_samples=2, y_numeric=True
        )
        labels = self._labels(X, y, sample_weight, exposure)
        self.seed_ = seed_of(self.random_state)
        outcome = self._simulate(self._settings(), self._rows(X, labels))
        self.coef_, self.intercept_ = columns_weights(outcome)
        return self

    def linear_predictor(self, X: Any) -> FloatArray:  # noqa: ANN401, N803, RUF100
        """Linear predictor of each row, without exposure."""
        check_is_fitted(self)
        X = validate_data(self, collected(X), dtype=np.float64, reset=False)
        predictor: FloatArray = X @ self.coef_ + self.intercept_
        return predictor

    def predict(self, X: Any, exposure: Any = None) -> FloatArray:  # noqa: ANN401, N803, RUF100
        """Mean of each row; of one unit of exposure where none is given."""
        means = self._kind.mean(self.linear_predictor(X))
        return means if exposure is None else means * np.asarray(exposure, dtype=np.float64)

    def score(
        self,
        X: Any,  # noqa: ANN401, N803, RUF100
        y: Any,  # noqa: ANN401
        sample_weight: Any = None,  # noqa: ANN401
        *,
        exposure: Any = None,  # noqa: ANN401
    ) -> float:
        """Deviance explained: 1 for a perfect model, 0 for the best constant one."""
        means = self.predict(X, exposure)
        labels = self._labels(means.reshape(-1, 1), np.asarray(y), sample_weight, exposure)
        weights = np.ones(len(means)) if labels.weights is None else labels.weights
        constant = self._kind.mean(np.full(len(means), null_score(labels)))
        constant = constant if labels.exposure is None else constant * labels.exposure
        model, null = (weights @ self._kind.deviance(labels.values, m) for m in (means, constant))
        return float(1.0 - model / null) if null else float(model == 0)

    def audit(
        self,
        X: Any,  # noqa: ANN401, N803, RUF100
        y: Any,  # noqa: ANN401
        sample_weight: Any = None,  # noqa: ANN401
        *,
        exposure: Any = None,  # noqa: ANN401
        canary: bool = True,
    ) -> dict[str, Any]:
        """Repeat the fitted training and attack what Alice received in it.

        The estimator keeps no rows and no labels, so it is given those of ``fit`` once more.

        Returns:
            The record that ``taciturn audit --json`` prints.

        Raises:
            DataError: The rows or labels are not those of the fit.
        """
        check_is_fitted(self)
        X = validate_data(self, collected(X), dtype=np.float64, reset=False)
        raw = self._rows(X, self._labels(X, np.asarray(y), sample_weight, exposure))
        return self._audited(raw, self._settings(), canary)

    def __sklearn_tags__(self) -> Any:  # noqa: ANN401 - scikit-learn's own type
        tags = super().__sklearn_tags__()
        tags.target_tags.positive_only = not bool(self._kind.possible(np.array([-1.0])))
        return tags

    def _labels(
        self,
        X: FloatArray,  # noqa: N803, RUF100
        y: object,
        sample_weight: object,
        exposure: object,
    ) -> LabelTable:
        weights = None if sample_weight is None else _check_sample_weight(sample_weight, X)
        ids = RowIds.numbered(len(X))
        try:
            return LabelTable.from_data(
                np.asarray(y, dtype=np.float64),
                ids=ids,
                family=self.family,
                exposure=exposure,
                weights=weights,
            )
        except LabelValueError as problem:
            # As scikit-learn's own models have it.
            raise ValueError(
                f"Some value(s) of y are out of the valid range of {self.family}: {problem.message}"
            ) from None

    def _settings(self) -> Settings:
        """The parameters as settings of a simulated run."""
        own = {
            "family": self.family,
            "intercept": bool(self.fit_intercept),
            "seed": self.seed_,
        }
        return resolved(Settings.from_mapping({**self._given(_OWN_NAMES), **own}))


class VerticalPoissonRegressor(VerticalRegressor):
    """A Poisson regression of counts; ``VerticalRegressor`` has its parameters."""

    family = "poisson"


class VerticalGammaRegressor(VerticalRegressor):
    """A gamma regression of amounts; ``VerticalRegressor`` has its parameters."""

    family = "gamma"


class VerticalRidge(VerticalRegressor):
    """A ridge regression; ``VerticalRegressor`` has its parameters."""

    family = "gaussian"
