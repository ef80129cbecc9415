"""A side's coefficients with standard errors, Wald's tests and points, and the effects of its bins.

Errors are exact where all columns are at hand, and a bound at Bob alone. With Bob's prepared
columns ``B`` and Alice's ``A``, the information of the joint model is ::

    I = [ A'WA  A'WB ]          errors^2 of Bob's columns = diag (B'WB - B'WA (A'WA)^-1 A'WB)^-1
        [ B'WA  B'WB ]

What Bob subtracts for her columns he cannot know. He does know ``a = A w_A``, her part of each
score, which is one direction among her columns. With it alone in their place ::

    bound^2 = diag (B'WB - B'Wa (a'Wa)^-1 a'WB)^-1   <=   errors^2

because a projection on fewer directions takes less away. Errors are *at least* the bound; z values
are at most as large as they look, and p values at least.

**What is reported.** The information of the likelihood without the penalty, at the fitted weights.
For the penalties in use (scikit-learn's default) the two hardly differ; a large one holds weights
near zero, which no standard error tells.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

import numpy as np

from taciturn.arrays import BoolArray, FloatArray, LabelArray
from taciturn.data.rules import Bin, NumericRule, Rule
from taciturn.data.tables import INTERCEPT
from taciturn.memmap import over_blocks
from taciturn.model.card import columns_of, original_offset, prepared_columns
from taciturn.model.whole import Part
from taciturn.numerics.information import covariance, errors_of, information, row_information, wald
from taciturn.numerics.logistic import sigmoid
from taciturn.numerics.scorecard import Scale
from taciturn.results.model_report import CoefficientTest, ColumnEffect, EffectLevel


@dataclass(frozen=True, slots=True)
class Fit:
    """How the model was fitted, as far as errors depend on it.

    ``shift`` is by how much class weights have moved the logits; ``flip_epsilon`` is None where no
    labels were flipped.
    """

    shift: float = 0.0
    class_weight: tuple[float, float] | None = None
    flip_epsilon: float | None = None


def bound_errors(
    own: FloatArray, weights: FloatArray, scores: FloatArray, fit: Fit, rows: int
) -> FloatArray:
    """Lower bounds of one side's standard errors; NaN where the rows do not determine a weight.

    With class weights the bound is that of the likelihood without them, which no weighted fit
    undercuts. ``rows`` is the number of rows that the model was fitted to; where they are others
    than these, the information of these is scaled to them.
    """
    others = scores - _product(own, weights)
    matrix = information(own, row_information(scores - fit.shift, fit.flip_epsilon), others)
    return errors_of(covariance(matrix * (rows / len(scores))))[: own.shape[1]]


def exact_errors(
    columns: Sequence[FloatArray], scores: FloatArray, labels: LabelArray, fit: Fit
) -> FloatArray:
    """Standard errors of all sides' columns, side by side; NaN where rows determine no weight."""
    joined = np.concatenate(columns, axis=1)
    if fit.class_weight is None:
        weights = row_information(scores - fit.shift, fit.flip_epsilon)
        return errors_of(covariance(information(joined, weights)))
    counted = np.where(np.equal(labels, 1), fit.class_weight[1], fit.class_weight[0])
    probabilities = sigmoid(scores)
    bread = information(joined, counted * probabilities * (1 - probabilities))
    meat = information(joined, np.square(counted * (labels - probabilities)))
    return errors_of(covariance(bread, meat))


def _product(columns: FloatArray, weights: FloatArray) -> FloatArray:
    product = np.empty(len(columns))

    def part(place: slice) -> None:
        product[place] = columns[place] @ weights

    for _ in over_blocks(part, len(columns), columns):
        pass
    return product


@dataclass(frozen=True, slots=True)
class SideRows:
    """A side's prepared training rows."""

    values: FloatArray
    labels: LabelArray | None = None


def coefficient_tests(
    part: Part, errors: FloatArray | None, scale: Scale
) -> tuple[CoefficientTest, ...]:
    """Coefficients of a side, the largest on the prepared scale first, the intercept last."""
    model, known = part.model, _errors(part, errors)
    rows = [
        _coefficient(part, name, place, known, unit, bounded, scale)
        for place, (name, _, unit, bounded) in enumerate(prepared_columns(model))
    ]
    rows.sort(key=lambda one: -abs(one.prepared))
    if model.intercept:
        last = len(part.weights) - 1
        rows.append(_coefficient(part, INTERCEPT, last, known, 0.0, False, scale))
    return tuple(rows)


def constant_points(part: Part, scale: Scale, shift: float) -> float:
    """Points of a row whose raw columns of this side are 0, or at their reference levels."""
    known = replace(part.model, weights=part.weights)
    return float(scale.points(np.array([original_offset(known)]), shift)[0])


def column_effects(
    part: Part, errors: FloatArray | None, scale: Scale, rows: SideRows | None
) -> tuple[ColumnEffect, ...]:
    """Effect of each bin and category of a side's columns on the score."""
    known, effects, start = _errors(part, errors), [], 0
    for rule in part.model.preparation.rules:
        count = len(rule.outputs)
        if not isinstance(rule, NumericRule) and count:
            place = slice(start, start + count)
            levels = tuple(_levels(rule, part.weights[place], known[place], scale, rows, start))
            effects.append(ColumnEffect(side=part.model.title, column=rule.name, levels=levels))
        start += count
    return tuple(effects)


def _errors(part: Part, errors: FloatArray | None) -> FloatArray:
    return np.full(len(part.weights), math.nan) if errors is None else errors


def _coefficient(
    part: Part,
    name: str,
    place: int,
    errors: FloatArray,
    unit: float,
    bounded: bool,
    scale: Scale,
) -> CoefficientTest:
    weight = float(part.weights[place])
    test = wald(weight, float(errors[place]))
    original = weight / unit if unit else None
    return CoefficientTest(
        side=part.model.title,
        column=name,
        prepared=weight,
        original=original,
        clipped=bounded,
        error=test.error,
        z=test.z,
        p_value=test.p_value,
        low=test.low,
        high=test.high,
        points=None if original is None else scale.worth(original),
    )


def _levels(
    rule: Rule,
    weights: FloatArray,
    errors: FloatArray,
    scale: Scale,
    rows: SideRows | None,
    start: int,
) -> Iterator[EffectLevel]:
    """All levels, in their order; columns of zeros that only hold a place are none."""
    steps = [_step(rule, center, unit) for _, center, unit, _ in columns_of(rule)]
    held = (
        None
        if rows is None
        else [_where(rows, start + place, sum(ends) / 2) for place, ends in enumerate(steps)]
    )
    places = {name: place for place, name in enumerate(rule.outputs)}
    for level in rule.bins:
        place = None if level.output is None else places[level.output]
        # The reference is where no other level is.
        mask = None
        if held is not None:
            mask = ~np.logical_or.reduce(held) if place is None else held[place]
        count, rate = _counted(mask, rows)
        step = 0.0 if place is None else steps[place][1] - steps[place][0]
        effect = 0.0 if place is None else float(weights[place]) * step
        yield EffectLevel(
            level=_short(level, rule.name),
            reference=place is None,
            rows=count,
            rate=rate,
            effect=effect,
            error=0.0 if place is None else float(errors[place]) * step,
            points=scale.worth(effect),
        )


def _short(level: Bin, column: str) -> str:
    if level.output is not None:
        return level.output.removeprefix(f"{column}=")
    name = level.label.removeprefix(f"{column} ").removeprefix("= ")
    return f"below {name[2:]}" if name.startswith("< ") else name


def _step(rule: Rule, center: float, unit: float) -> tuple[float, float]:
    """Values of a prepared column without its level, and with it."""
    if not unit:
        return 0.0, 0.0
    clip = math.inf if rule.clip is None else rule.clip
    low, high = (min(max((value - center) / unit, -clip), clip) for value in (0.0, 1.0))
    return low, high


def _where(rows: SideRows, column: int, middle: float) -> BoolArray:
    """Mask of the rows that have a level, by the middle between its column's two values."""
    mask = np.empty(len(rows.values), dtype=np.bool_)

    def part(place: slice) -> None:
        mask[place] = rows.values[place, column] > middle

    for _ in over_blocks(part, len(rows.values), rows.values):
        pass
    return mask


def _counted(mask: BoolArray | None, rows: SideRows | None) -> tuple[int | None, float | None]:
    if mask is None or rows is None:
        return None, None
    count = int(np.count_nonzero(mask))
    if rows.labels is None or not count:
        return count, None
    return count, int(np.count_nonzero(np.equal(rows.labels, 1) & mask)) / count
