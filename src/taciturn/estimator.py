"""``VerticalLogisticRegression``: the scikit-learn face of a simulated two-party training.

``fit`` runs Alice's and Bob's programs in this process, message by message, on the rows it is
given: all of them, with the numbers as they are. Nothing is held out, imputed, encoded or scaled;
that is a pipeline's business. It is a simulation: it has both tables, and ``coef_`` is put together
from what the two parties hold, which in ``sealed`` neither of them could do.

**Guarantee.** The ledger's, under its assumption (``ledger_``); the class has none of its own.

**Assumes.** Class weights are public. ``"balanced"`` computes them from the labels, which tells the
ratio of the classes: it is refused wherever the ledger claims anything.
"""

from __future__ import annotations

import math
import re
import warnings
from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace
from html import escape
from typing import Any, Self

import numpy as np
import polars as pl
from numpy.typing import NDArray
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils import check_random_state, column_or_1d
from sklearn.utils.class_weight import compute_class_weight
from sklearn.utils.multiclass import type_of_target
from sklearn.utils.validation import check_is_fitted, validate_data

from taciturn import extensions
from taciturn.arrays import ByteLabels, FloatArray
from taciturn.data.frames import collected
from taciturn.data.ids import RowIds
from taciturn.data.label_table import LabelTable
from taciturn.data.prepare import RawData
from taciturn.data.prepare_settings import PrepareSettings
from taciturn.engine.callbacks import SILENT
from taciturn.errors import ColumnError, ConfigError, DataError, DivergenceError, counted
from taciturn.families.binomial import sigmoid
from taciturn.jobs.train.simulation import Outcome, raise_if_diverged, simulate_training
from taciturn.privacy.registry import mechanism_class, require_class_weight_support
from taciturn.privacy.solvers import resolved
from taciturn.report.training import convergence_warning
from taciturn.results.serialise import record_of
from taciturn.results.training import TrainingRun
from taciturn.rng import KeyedEntropy
from taciturn.settings.schema import Settings
from taciturn.settings.signatures import ClassifierParameters
from taciturn.simulation import in_cell
from taciturn.version import __version__

# What scikit-learn calls otherwise than the commands do.
_OWN_NAMES = ("fit_intercept", "class_weight", "random_state")
# What Alice's columns are called where rows have no names.
_UNNAMED = re.compile(r"all|half|equal|x\d+|[+-]?\d+|")
_SEED_RANGE = 1 << 128
# How near the loss of a second run must come to that of the first to be the same run.
_SAME_RUN = 1e-9


class SimulatedModel(BaseEstimator):  # type: ignore[misc]
    """An estimator whose ``fit`` runs all parties in this process."""

    alice_columns: object

    def _simulate(self, settings: Settings, raw: RawData) -> Outcome:
        """Train, and set the attributes that every model has."""
        with in_cell(SILENT) as watching:
            outcome = simulate_training(settings, raw, observe=watching.observe)
        _warn_unless_converged(outcome.result)
        self.record_ = record_of(outcome.result)
        self.ledger_ = self.record_["ledger"]
        self.n_iter_ = outcome.result.cost.iterations
        return outcome

    def _given(self, own: Collection[str]) -> dict[str, Any]:
        """Parameters that are settings of the same name, without those left to their defaults."""
        return {
            name: _native(value)
            for name, value in self.get_params(deep=False).items()
            if name not in own and value is not None
        }

    def _rows(self, X: FloatArray, labels: LabelTable) -> RawData:  # noqa: N803, RUF100
        """All rows as they are: none is held out, none is prepared."""
        names = getattr(self, "feature_names_in_", None)
        columns = [f"x{j}" for j in range(X.shape[1])] if names is None else [*map(str, names)]
        if names is None:
            self._require_unnamed(columns)
        return RawData(
            name="own data",
            frame=pl.from_numpy(np.ascontiguousarray(X), schema=columns),
            ids=labels.ids,
            labels=labels,
            settings=PrepareSettings(impute="none", scale="none"),
            whole=True,
        )

    def _require_unnamed(self, columns: list[str]) -> None:
        """Refuse names of columns where the rows have none, as after a scaler."""
        given = self.alice_columns
        names = re.split("[,;]", given) if isinstance(given, str) else given
        for name in names if isinstance(names, Sequence) else ():
            if isinstance(name, str) and not _UNNAMED.fullmatch(name.strip()):
                raise ColumnError(
                    f"Alice's column {name.strip()!r} is named, and the rows have no column names",
                    setting="alice_columns",
                    hint="a step before this one drops them: the pipeline's "
                    '.set_output(transform="pandas") keeps them; or give a number of columns, or '
                    f"{columns[0]} to {columns[-1]}",
                )

    def _audited(self, raw: RawData, settings: Settings, canary: bool) -> dict[str, Any]:
        """Record of an audit of the fitted training; DataError where it is another one."""
        audit_rows = extensions.function("audit_rows", wanted="the audit of an estimator")
        audited = audit_rows(raw, settings, canary=canary)
        first, again = float(self.record_["train"]["loss"]), audited.first.metrics.train.loss
        if not math.isclose(first, again, rel_tol=_SAME_RUN):
            raise DataError(
                "the rows and labels are not those of the fit: the training gives another model",
                hint="give audit what fit was given; in a pipeline, after its earlier steps",
            )
        command = f"{' '.join(repr(self).split())}.audit(X, y)"
        record: dict[str, Any] = replace(audited, version=__version__, command=command).to_dict()
        return record

    def _repr_html_inner(self) -> str:
        return str(super()._repr_html_inner()) + self._protection_html()

    def _repr_mimebundle_(self, **kwargs: object) -> dict[str, str]:
        bundle: dict[str, str] = super()._repr_mimebundle_(**kwargs)
        if "text/html" in bundle:
            bundle["text/html"] += self._protection_html()
        return bundle

    def _protection_html(self) -> str:
        """Short HTML summary of what the run protected; empty before ``fit``."""
        if not hasattr(self, "ledger_"):
            return ""
        items = "".join(f"<li>{escape(line)}</li>" for line in _protection(self.record_))
        return f'<div class="taciturn-protection"><ul>{items}</ul></div>'


class VerticalLogisticRegression(ClassifierParameters, ClassifierMixin, SimulatedModel):  # type: ignore[misc]
    """A binary logistic regression, trained by simulated parties.

    Every parameter but the last three is the setting of the same name, with its default for own
    data. Columns are taken as they come: put a ``StandardScaler`` before it.

    Args:
        {settings}
        fit_intercept: Fit an intercept, at Bob and without penalty.
        class_weight: None, a mapping from class to weight, or "balanced". Weights are public, and
            only their ratio counts: the largest becomes 1, so that the learning rate is that of the
            heavier class. `none`, `hybrid`, `sealed` and `mutual` accept them; "balanced" is
            computed from the labels, so `sealed` and `mutual`, whose ledgers claim that nothing
            about them leaks, refuse it.
        random_state: An int is the seed of a simulated run (``seed`` of ``train``); None draws one.

    Attributes:
        classes_: The two labels; the second is the one that ``predict_proba`` gives last.
        coef_: The weights, of shape (1, columns), in the order of the columns. In "sealed" they
            exist only here: neither party has Alice's part.
        intercept_: Of shape (1,); 0 without ``fit_intercept``.
        log_odds_shift_: By how much class weights have moved the scores away from the log-odds;
            0 without them. ``predict_proba`` takes it off, ``decision_function`` does not.
        n_iter_: How many passes or batches were trained on.
        n_features_in_: How many columns there were.
        feature_names_in_: Their names, where all were text.
        ledger_: What the run cost, with the keys of the commands' ``ledger``.
        record_: The run's record, as ``taciturn train --json`` prints it.
        seed_: The seed of the run. It determines all randomness of the run.

    >>> from sklearn.datasets import load_breast_cancer
    >>> from sklearn.pipeline import make_pipeline
    >>> from sklearn.preprocessing import StandardScaler
    >>> X, y = load_breast_cancer(return_X_y=True)
    >>> model = VerticalLogisticRegression(scheme="clear", random_state=1)
    >>> fitted = make_pipeline(StandardScaler(), model).fit(X, y)
    >>> fitted.score(X, y) > 0.95, model.ledger_["label_epsilon_total"]
    (True, 0.0)
    """

    # scikit-learn's name for the columns is a capital letter.
    def fit(self, X: Any, y: Any, **unsupported: object) -> Self:  # noqa: ANN401, N803, RUF100
        """Train both parties on all rows.

        Args:
            X: Numbers, rows by columns: an array, or a pandas or polars frame.
            y: The labels, of two classes; the greater one is the positive class.
            unsupported: Anything else is refused by name.

        Raises:
            ValueError: The rows or labels are not fit for use, or not of two classes.
            TypeError: ``sample_weight`` or another keyword is given.
            TaciturnError: A parameter is not possible.
        """
        if unsupported:
            raise TypeError(_refusal(*unsupported))
        try:
            X, y = validate_data(self, collected(X), y, dtype=np.float64, ensure_min_samples=2)
        except ValueError as problem:
            if "could not convert" in str(problem):
                advice = "encode text columns before, with a OneHotEncoder, say"
                raise ValueError(f"{problem}; {advice}") from None
            raise
        labels = self._learn_classes(y)
        self.seed_ = seed_of(self.random_state)
        settings, raw = self._settings(labels), self._raw(X, labels)
        outcome = self._simulate(settings, raw)
        weights, intercept = columns_weights(outcome)
        self.coef_, self.intercept_ = weights.reshape(1, -1), np.array([intercept])
        self.log_odds_shift_ = outcome.terms.log_odds_shift
        return self

    def decision_function(self, X: Any) -> FloatArray:  # noqa: ANN401, N803, RUF100
        """The score (logit) of each row: above 0 for the second class."""
        check_is_fitted(self)
        X = validate_data(self, collected(X), dtype=np.float64, reset=False)
        scores: FloatArray = X @ self.coef_[0] + self.intercept_[0]
        return scores

    def predict_proba(self, X: Any) -> FloatArray:  # noqa: ANN401, N803, RUF100
        """The probability of each class, one column for each; corrected for class weights."""
        scores = self.decision_function(X) - self.log_odds_shift_
        return np.column_stack([sigmoid(-scores), sigmoid(scores)])

    def predict(self, X: Any) -> NDArray[Any]:  # noqa: ANN401, N803, RUF100
        """The class of each row: the likelier one, as class weights have it."""
        positive = self.decision_function(X) > 0
        chosen: NDArray[Any] = self.classes_[positive.astype(np.intp)]
        return chosen

    def audit(self, X: Any, y: Any, *, canary: bool = True) -> dict[str, Any]:  # noqa: ANN401, N803, RUF100
        """Repeat the fitted training and attack what Alice received in it.

        The estimator keeps no rows and no labels, so it is given those of ``fit`` once more.

        Args:
            X: The rows that ``fit`` was given.
            y: Their labels.
            canary: Also attack a run on shuffled labels, and set guesses against the ledger's
                claim, where it makes any.

        Returns:
            The record that ``taciturn audit --json`` prints.

        Raises:
            DataError: The rows or labels are not those of the fit.
        """
        check_is_fitted(self)
        X = validate_data(self, collected(X), dtype=np.float64, reset=False)
        labels = self._known_classes(column_or_1d(y))
        if len(labels) != len(X):
            raise ValueError(f"there are {len(X)} rows and {len(labels)} labels")
        return self._audited(self._raw(X, labels), self._settings(labels), canary)

    def __sklearn_tags__(self) -> Any:  # noqa: ANN401 - scikit-learn's own type
        tags = super().__sklearn_tags__()
        tags.classifier_tags.multi_class = False
        return tags

    def _learn_classes(self, y: NDArray[Any]) -> ByteLabels:
        """The labels as 0 and 1; sets ``classes_``."""
        kind = type_of_target(y, input_name="y", raise_unknown=True)
        classes = np.unique(y)
        if kind != "binary":
            raise ValueError(
                f"Only binary classification is supported. The type of the target is {kind}."
            )
        if len(classes) < 2:
            raise ValueError("all rows are of one class: a classifier needs rows of two classes")
        self.classes_ = classes
        return self._known_classes(y)

    def _known_classes(self, y: NDArray[Any]) -> ByteLabels:
        if not np.isin(y, self.classes_).all():
            raise ValueError("y has a label that is not one of the two classes of the fit")
        positive: ByteLabels = (y == self.classes_[1]).astype(np.int8)
        return positive

    def _settings(self, labels: ByteLabels) -> Settings:
        """The parameters as settings of a simulated run."""
        own = {
            "intercept": bool(self.fit_intercept),
            "class_weight": self._class_weight(labels),
            "seed": self.seed_,
        }
        return resolved(Settings.from_mapping({**self._given(_OWN_NAMES), **own}))

    def _class_weight(self, labels: ByteLabels) -> tuple[float, float] | None:
        """Weights of both classes, the larger 1; None where they are equal."""
        if self.class_weight is None:
            return None
        if self.class_weight == "balanced":
            self._require_no_claim()
        elif not isinstance(self.class_weight, Mapping):
            raise ConfigError(
                f"class_weight is {self.class_weight!r}",
                setting="class_weight",
                hint='use None, "balanced" or a mapping such as {0: 1, 1: 5}',
            )
        weights = compute_class_weight(
            self.class_weight, classes=self.classes_, y=self.classes_[labels]
        )
        if not (np.isfinite(weights).all() and weights.min() >= 0 and weights.max() > 0):
            raise ConfigError(
                "a class weight is negative or not finite, or all are 0",
                setting="class_weight",
                hint="use numbers of 0 or more",
            )
        if weights[0] == weights[1]:
            return None
        require_class_weight_support(self.mechanism)
        first, second = (weights / weights.max()).tolist()
        return first, second

    def _require_no_claim(self) -> None:
        if "bob" not in mechanism_class(self.mechanism).unprotected:
            raise ConfigError(
                f'class_weight="balanced" reveals the ratio of the classes, and the ledger of '
                f"{self.mechanism} has no price for that",
                setting="class_weight",
                hint="give weights that may be public, such as {0: 1, 1: 5}",
            )

    def _raw(self, X: FloatArray, labels: ByteLabels) -> RawData:  # noqa: N803, RUF100
        return self._rows(X, LabelTable(RowIds.numbered(len(X)), labels))


def columns_weights(outcome: Outcome) -> tuple[FloatArray, float]:
    """Both parties' weights in the order of the columns, and the intercept."""
    data = outcome.data
    weights = dict(zip(data.alice_train.columns, outcome.alice_weights, strict=True))
    weights |= dict(zip(data.bob_train.columns, outcome.bob_weights, strict=True))
    ordered = np.array([weights[name] for name in data.preparation.columns], dtype=np.float64)
    response = data.labels_train.response
    last = float(outcome.bob_weights[-1]) if data.intercept else 0.0
    return response.scale * ordered, response.location + response.scale * last


def _refusal(first: str, *others: str) -> str:
    if "sample_weight" in (first, *others):
        return (
            "sample_weight is not supported: all rows of a class have the same weight; "
            "class_weight weighs the classes"
        )
    return f"fit takes X and y, not {first}"


def seed_of(random_state: Any) -> int:  # noqa: ANN401 - an int, None or a generator of NumPy's
    """Seed of a run, from scikit-learn's ``random_state``."""
    if random_state is None:
        return KeyedEntropy.from_system().below(_SEED_RANGE)
    if isinstance(random_state, int | np.integer) and not isinstance(random_state, bool):
        return int(random_state)
    return int(check_random_state(random_state).randint(np.iinfo(np.int32).max))


def _native(value: Any) -> Any:  # noqa: ANN401 - any parameter
    """Numbers of NumPy's as Python's; a sequence of names as a tuple."""
    if isinstance(value, np.generic):
        return value.item()
    if isinstance(value, list | np.ndarray | pl.Series):
        return tuple(str(name) for name in value)
    return value


def _warn_unless_converged(result: TrainingRun) -> None:
    """Emit one ConvergenceWarning, as scikit-learn does, where the model is not to be relied on."""
    try:
        raise_if_diverged(result)
        text = convergence_warning(result)
    except DivergenceError as problem:
        rate = ", or lower the learning rate" if result.by_batches else ""
        text = f"{problem.message}. Scale or clip the columns{rate}."
    if text is not None:
        warnings.warn(text, ConvergenceWarning, stacklevel=4)


def _protection(record: dict[str, Any]) -> list[str]:
    """A few lines on what the run protected, from its own ledger."""
    ledger, mechanism = record["ledger"], record["mechanism"]
    total = ledger["label_epsilon_total"]
    claim = {
        "inf": "the ledger bounds nothing, a label's epsilon is infinite",
        0.0: "by the ledger nothing about a label is released",
    }.get(total, f"by the ledger a label's epsilon is {total} in all")
    hidden = (
        f"messages under {record['scheme']}"
        if record["encrypted"]
        else "nothing was encrypted in this run"
    )
    alices = f"{len(record['parties'])} Alices" if "parties" in record else "Alice"
    return [
        f"All parties were simulated in this process: "
        f"{counted(record['alice_columns'], 'column')} at {alices}, "
        f"{record['bob_columns']} and the labels at Bob; {hidden}.",
        f"{mechanism}: {claim}. It rests on: {ledger['assumption']}.",
        "Not protected: what the model itself reveals, and Alice's scores from Bob. "
        "audit(X, y) runs the attacks; that none succeeds proves nothing.",
    ]
