"""A whole model as a scikit-learn pipeline: raw columns of both sides in, predictions out."""

from __future__ import annotations

from typing import Any

import numpy as np
from sklearn.base import BaseEstimator, RegressorMixin, TransformerMixin
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import Pipeline

from taciturn.arrays import FloatArray, IntArray
from taciturn.data.frames import as_frame
from taciturn.data.prepare import Preparation
from taciturn.families.binomial import sigmoid
from taciturn.families.registry import FAMILIES
from taciturn.model.share import ModelShare
from taciturn.model.whole import input_names, whole_model


class StoredPreparation(TransformerMixin, BaseEstimator):  # type: ignore[misc]
    """Transformer of raw columns by the preparation in model files; nothing is fitted.

    ``names`` says for each side what its raw columns are called in the frame that is given.
    """

    def __init__(
        self, plans: tuple[Preparation, ...] = (), names: tuple[dict[str, str], ...] = ()
    ) -> None:
        self.plans = plans
        self.names = names

    def fit(self, X: object, y: object = None) -> StoredPreparation:
        """Do nothing: the preparation was fitted in the training."""
        return self

    def transform(self, X: object) -> FloatArray:
        """Prepared columns of a pandas or polars frame, Alice's before Bob's."""
        frame = as_frame(X)
        parts = []
        for plan, names in zip(self.plans, self.names, strict=True):
            there = {new: old for old, new in names.items() if new in frame.columns}
            renamed = frame.select(list(there)).rename(there)
            parts.append(plan.apply(renamed) if plan.columns else np.empty((frame.height, 0)))
        return np.hstack(parts)

    def __sklearn_is_fitted__(self) -> bool:
        return True


class CorrectedRegression(LogisticRegression):  # type: ignore[misc]
    """A logistic regression whose probabilities are corrected for the class weights of its fit.

    ``decision_function`` leaves ``log_odds_shift`` in the scores; ``predict`` says 1 above the
    score ``threshold``.
    """

    def __init__(self, log_odds_shift: float = 0.0, threshold: float = 0.0) -> None:
        super().__init__()
        self.log_odds_shift = log_odds_shift
        self.threshold = threshold

    def predict(self, X: object) -> IntArray:
        """Class of each row, by the threshold that the training chose."""
        above: IntArray = (self.decision_function(X) > self.threshold).astype(np.int64)
        return above

    def predict_proba(self, X: object) -> FloatArray:
        """Probability of each class, one column for each."""
        scores = self.decision_function(X) - self.log_odds_shift
        return np.column_stack([sigmoid(-scores), sigmoid(scores)])


class MeanRegression(RegressorMixin, BaseEstimator):  # type: ignore[misc]
    """A generalised linear model with the weights of model files; it is not fitted again."""

    def __init__(self, family: str = "gaussian") -> None:
        self.family = family

    def fit(self, X: object, y: object = None) -> MeanRegression:
        """Do nothing: the model was trained by the parties."""
        return self

    def predict(self, X: FloatArray) -> FloatArray:
        """Mean of each row, of one unit of exposure."""
        return FAMILIES[self.family].mean(X @ self.coef_ + self.intercept_)


def to_sklearn(*shares: ModelShare) -> Any:  # noqa: ANN401 - scikit-learn has no types
    """A fitted pipeline from all shares of one model, in any order.

    It takes a pandas or polars frame with the raw columns of all sides (``alice/name`` and
    ``bob/name`` where both have one of that name) and predicts as scikit-learn does: ``predict``,
    ``predict_proba``, ``decision_function``; ``predict`` says 1 above the threshold that the
    training chose. Of other families than ``binomial``, ``predict`` gives means of one unit of
    exposure. Fitting it again fits the regression anew, and not the preparation.
    """
    whole = whole_model(*shares)
    parts = whole.parts
    plans = tuple(part.model.preparation for part in parts)
    counts = [len(plan.columns) for plan in plans]
    bob = whole.bob.model
    taken = [part.weights[:count] for part, count in zip(parts, counts, strict=True)]
    stored = StoredPreparation(plans, input_names(parts))
    if not bob.family.has_classes:
        model = MeanRegression(bob.family.name)
        model.coef_, model.intercept_ = np.concatenate(taken), sum(part.constant for part in parts)
        return Pipeline([("preparation", stored), ("regression", model)])
    regression = CorrectedRegression(bob.log_odds_shift, bob.threshold.score)
    regression.coef_ = np.concatenate(taken).reshape(1, -1)
    regression.intercept_ = np.array([sum(part.constant for part in parts)])
    regression.classes_ = np.array([0, 1])
    regression.n_features_in_ = sum(counts)
    regression.n_iter_ = np.array([0], dtype=np.int32)
    return Pipeline([("preparation", stored), ("regression", regression)])
