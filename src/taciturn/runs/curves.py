"""Curves that a result has: a figure of the model, or of an attack, step by step."""

from __future__ import annotations

import math
from collections.abc import Iterable

from taciturn.results.parties import CurvePoint, PartyRun
from taciturn.results.runs import AuditResult
from taciturn.results.serialise import Result

Curve = tuple[tuple[int, float], ...]
"""Steps, each with the figure there."""

LOSS, HELD_OUT_LOSS, HELD_OUT_AUC = "training loss", "held-out loss", "held-out AUC"
ATTACK = "best attack on shuffled labels"


def curves_of(result: Result) -> dict[str, Curve]:
    """The curves of a result by name; a party's by iteration, an audit's by number of epochs.

    Of several seeds they are the first run's.
    """
    if isinstance(result, PartyRun):
        # Bob's metrics have the held-out figures; the run has what either side sees.
        return _of_points(result.metrics.curve or result.run.curve)
    if isinstance(result, AuditResult):
        steps = result.runs[0].over_epochs
        best = [
            (row.epochs, max(one.accuracy for one in row.attacks)) for row in steps if row.attacks
        ]
        return {ATTACK: tuple(best)} if best else {}
    return {}


def _of_points(points: Iterable[CurvePoint]) -> dict[str, Curve]:
    curves: dict[str, list[tuple[int, float]]] = {}
    for point in points:
        values = {
            LOSS: point.train_loss,
            HELD_OUT_LOSS: point.held_out_loss,
            HELD_OUT_AUC: point.held_out_auc,
        }
        for name, value in values.items():
            if value is not None and not math.isnan(value):
                curves.setdefault(name, []).append((point.iteration, value))
    return {name: tuple(steps) for name, steps in curves.items()}
