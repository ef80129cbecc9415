"""The figures of a result by name, for exports. A figure's name is ``group/name``.

A folder has one part, or one for each mechanism that its command set side by side.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from taciturn.numerics.label_metrics import Added, ModelMetrics
from taciturn.numerics.regression_metrics import AddedDeviance
from taciturn.privacy.events import Statement
from taciturn.results.folder import Manifest, ResultFolder
from taciturn.results.run_entry import RunEntry
from taciturn.results.serialise import Result, record_of

_SHARES = {
    "auc": "AUC",
    "accuracy": "accuracy",
    "balanced_accuracy": "balanced accuracy",
    "pr_auc": "PR-AUC",
    "ks": "KS",
}
_LOSSES = {"loss": "log loss", "brier": "Brier score", "calibration_error": "calibration error"}
_MEANS = {
    "deviance": "deviance",
    "deviance_explained": "deviance explained",
    "rmse": "RMSE",
    "calibration_ratio": "observed / expected",
    "lift": "lift",
    "gini": "Gini",
}


HELD_OUT, TRAINING = "held-out", "training"

Values = dict[str, float]
Curve = tuple[tuple[int, float], ...]
"""Steps, each with the figure there."""

LOSS, HELD_OUT_LOSS, HELD_OUT_AUC = "training loss", "held-out loss", "held-out AUC"
ATTACK = "best attack on shuffled labels"


def auc_values(metrics: ModelMetrics | None) -> dict[str, Any]:
    """AUC with its interval for a list of runs; None where the labels have no classes."""
    names = ("auc", "auc_low", "auc_high")
    return {name: known(getattr(metrics, name, math.nan)) for name in names}


def metric_values(metrics: ModelMetrics | Mapping[str, float] | None, rows: str) -> Values:
    """The figures of a model on a set of rows; those that are not numbers are left out."""
    if metrics is None:
        return {}
    values: Values = {}
    known = metrics if isinstance(metrics, Mapping) else record_of(metrics)
    for name, words in (_MEANS if "deviance" in known else _SHARES | _LOSSES).items():
        value = known.get(name)
        if value is not None and not math.isnan(value):
            values[f"model/{words}, {rows}"] = float(value)
    return values


def ledger_values(ledger: Statement | None) -> Values:
    """Totals of a ledger."""
    if ledger is None:
        return {}
    values = {
        "label epsilon, total": ledger.label_epsilon_total,
        "label epsilon, total at delta": ledger.label_epsilon_total_delta,
        "label epsilon, one release": ledger.label_epsilon_per_release,
        "residue epsilon, one release": ledger.residue_epsilon_per_release,
        "claimed epsilon, one release": ledger.claimed_epsilon_per_release,
        "releases of a row": float(ledger.releases_per_row),
    }
    if ledger.columns is not None:
        values["scores of a row that Bob gets"] = float(ledger.columns.scores_per_row)
    return {f"ledger/{name}": value for name, value in values.items()}


def cost_values(
    seconds: float | None = None,
    iterations: float | None = None,
    to_alice: float | None = None,
    to_bob: float | None = None,
) -> Values:
    """Cost of a training."""
    parts = {
        "time": seconds,
        "iterations": iterations,
        "bytes to Alice": to_alice,
        "bytes to Bob": to_bob,
    }
    return {f"cost/{name}": float(value) for name, value in parts.items() if value is not None}


def reference_values(
    alone: Mapping[str, float] | None, adds: Added | None, centralised: Mapping[str, float]
) -> Values:
    """Baselines of the model: Bob's columns alone, and centralised training."""
    key, words, added = "auc", "AUC", None if adds is None else getattr(adds, "auc", None)
    if isinstance(adds, AddedDeviance):
        key, words, added = "deviance_explained", "deviance explained", adds.explained
    parts = {
        f"{words}, Bob alone": (alone or {}).get(key),
        f"the partner adds to the {words}": added,
        f"{words}, centralised": centralised.get(key),
    }
    known = {name: value for name, value in parts.items() if value is not None}
    return {f"model/{name}": value for name, value in known.items() if not math.isnan(value)}


def known(value: float) -> float | None:
    """A figure, or None where it is not a number."""
    return None if math.isnan(value) else value


@dataclass(frozen=True, slots=True)
class Part:
    """One run: its line, its figures by name, its settings, the result, and what made that."""

    entry: RunEntry
    values: Values = field(repr=False)
    settings: Mapping[str, object] = field(repr=False)
    result: Result = field(repr=False)
    manifest: Manifest = field(repr=False)


def parts_of(folder: ResultFolder) -> tuple[Part, ...]:
    """The runs of a result folder."""
    made = folder.manifest
    return folder.result.parts(Part(_bare(folder), {}, made.settings, folder.result, made))


def _bare(folder: ResultFolder) -> RunEntry:
    made = folder.manifest
    return RunEntry(
        name=folder.name,
        path=str(folder.path),
        part="",
        started=made.started,
        kind=made.kind,
        private=made.private,
        version=made.version,
        dataset=made.data.name,
        mechanism=_text(made.settings.get("mechanism")),
        epsilon=_number(made.settings.get("epsilon")),
        solver=_text(made.settings.get("solver")),
        scheme=_text(made.settings.get("scheme")),
        seed=_whole(made.settings.get("seed")),
        seeds=_whole(made.settings.get("seeds")) or 1,
        rows=made.data.rows,
        held_out_rows=made.data.held_out_rows,
        auc=None,
        auc_low=None,
        auc_high=None,
        label_epsilon=None,
        leakage=None,
        verdict=None,
        seconds=made.seconds,
        bytes=None,
        forecast=False,
    )


def _text(value: object) -> str | None:
    return value if isinstance(value, str) else None


def _number(value: object) -> float | None:
    plain = isinstance(value, int | float) and not isinstance(value, bool)
    return float(value) if plain else None  # type: ignore[arg-type]


def _whole(value: object) -> int | None:
    return value if isinstance(value, int) and not isinstance(value, bool) else None
