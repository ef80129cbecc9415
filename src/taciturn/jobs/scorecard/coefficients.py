"""A side's coefficients with Wald's tests and points, and what its bins and categories do."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

import numpy as np

from taciturn.arrays import BoolArray, FloatArray, LabelArray
from taciturn.data.rules import Bin, NumericRule, Rule
from taciturn.data.tables import INTERCEPT, FeatureTable
from taciturn.jobs.scorecard.card import columns_of, original_offset, prepared_columns
from taciturn.jobs.scorecard.result import CoefficientTest, ColumnEffect, EffectLevel
from taciturn.memmap import over_blocks
from taciturn.model.whole import Part
from taciturn.numerics.information import covariance, errors_of, information, row_information, wald
from taciturn.numerics.logistic import sigmoid
from taciturn.numerics.scorecard import Scale


@dataclass(frozen=True, slots=True)
class Fit:
    """Facts of the fit that standard errors depend on.

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
    undercuts. ``rows`` is how many rows the model was fitted to; where they are others than these,
    what these tell is taken as many times.
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
class SideWeights:
    """A side's weights; standard errors and prepared training rows are None where not known."""

    part: Part
    errors: FloatArray | None = None
    table: FeatureTable | None = None

    def error(self, place: int) -> float:
        """The standard error of a weight; NaN where it is not known."""
        return math.nan if self.errors is None else float(self.errors[place])


def coefficient_tests(side: SideWeights, scale: Scale) -> tuple[CoefficientTest, ...]:
    """The coefficients of a side, the largest on the prepared scale first, the intercept last."""
    model, weights = side.part.model, side.part.weights

    def test(name: str, place: int, unit: float, bounded: bool) -> CoefficientTest:
        weight = float(weights[place])
        tested, original = wald(weight, side.error(place)), weight / unit if unit else None
        return CoefficientTest(
            side=model.title,
            column=name,
            prepared=weight,
            original=original,
            clipped=bounded,
            error=tested.error,
            z=tested.z,
            p_value=tested.p_value,
            low=tested.low,
            high=tested.high,
            points=None if original is None else scale.worth(original),
        )

    rows = [
        test(name, place, unit, bounded)
        for place, (name, _, unit, bounded) in enumerate(prepared_columns(model))
    ]
    rows.sort(key=lambda one: -abs(one.prepared))
    if model.intercept:
        rows.append(test(INTERCEPT, len(weights) - 1, 0.0, False))
    return tuple(rows)


def constant_points(part: Part, scale: Scale, shift: float) -> float:
    """The points of a row whose raw columns of this side are 0, or at their reference levels."""
    known = replace(part.model, weights=part.weights)
    return float(scale.points(np.array([original_offset(known)]), shift)[0])


def column_effects(
    side: SideWeights, scale: Scale, labels: LabelArray | None
) -> tuple[ColumnEffect, ...]:
    """What each bin and each category of a side's columns does to the score."""
    model, effects, start = side.part.model, [], 0
    for rule in model.preparation.rules:
        if rule.outputs and not isinstance(rule, NumericRule):
            levels = tuple(_levels(rule, start, side, scale, labels))
            effects.append(ColumnEffect(side=model.title, column=rule.name, levels=levels))
        start += len(rule.outputs)
    return tuple(effects)


def _levels(
    rule: Rule, start: int, side: SideWeights, scale: Scale, labels: LabelArray | None
) -> Iterator[EffectLevel]:
    """All levels, in their order; columns of zeros that only hold a place are none.

    The columns of the rule begin at ``start``.
    """
    steps = [_step(rule, center, unit) for _, center, unit, _ in columns_of(rule)]
    masks: list[BoolArray] = []
    if side.table is not None:
        rows = side.table.values
        masks = [_above(rows, start + place, sum(ends) / 2) for place, ends in enumerate(steps)]
    places = {name: place for place, name in enumerate(rule.outputs)}
    for level in rule.bins:
        count = rate = None
        effect = error = 0.0
        place = None if level.output is None else places[level.output]
        if place is not None:
            step = steps[place][1] - steps[place][0]
            effect = float(side.part.weights[start + place]) * step
            error = side.error(start + place) * step
        if masks:
            # The reference is where no other level is.
            mask = ~np.logical_or.reduce(masks) if place is None else masks[place]
            count = int(np.count_nonzero(mask))
            if labels is not None and count:
                rate = int(np.count_nonzero(np.equal(labels, 1) & mask)) / count
        yield EffectLevel(
            level=_short(level, rule.name),
            reference=place is None,
            rows=count,
            rate=rate,
            effect=effect,
            error=error,
            points=scale.worth(effect),
        )


def _short(level: Bin, column: str) -> str:
    if level.output is not None:
        return level.output.removeprefix(f"{column}=")
    name = level.label.removeprefix(f"{column} ").removeprefix("= ")
    return f"below {name[2:]}" if name.startswith("< ") else name


def _step(rule: Rule, center: float, unit: float) -> tuple[float, float]:
    """What a prepared column is without its level, and with it."""
    if not unit:
        return 0.0, 0.0
    clip = math.inf if rule.clip is None else rule.clip
    low, high = (min(max((value - center) / unit, -clip), clip) for value in (0.0, 1.0))
    return low, high


def _above(rows: FloatArray, column: int, middle: float) -> BoolArray:
    """Mask of the rows that have a level."""
    mask = np.empty(len(rows), dtype=np.bool_)

    def part(place: slice) -> None:
        mask[place] = rows[place, column] > middle

    for _ in over_blocks(part, len(rows), rows):
        pass
    return mask
