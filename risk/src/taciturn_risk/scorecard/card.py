"""Model card: coefficients by name, and the model's provenance.

A coefficient stands on two scales. *Prepared*: for the column as the model sees it, centred and
scaled; these can be compared with each other. *Original*: for one unit of the raw column, or for
having a category at all; within a clip, where there is one.

With Bob's prepared columns ``B`` and Alice's ``A``, the information of the joint model is ::

    I = [ A'WA  A'WB ]          errors^2 of Bob's columns = diag (B'WB - B'WA (A'WA)^-1 A'WB)^-1
        [ B'WA  B'WB ]

What Bob subtracts for her columns he cannot know. He does know ``a = A w_A``, her part of each
score, which is one direction among her columns. With it alone in their place ::

    bound^2 = diag (B'WB - B'Wa (a'Wa)^-1 a'WB)^-1   <=   errors^2

because a projection on fewer directions takes less away. Where newton centred her columns, his
intercept and ``a`` are those of centred ones, and so is the bound of its error. Errors are *at
least* the bound; z values are at most as large as they look, and p values at least.

**What is reported.** The information of the likelihood without the penalty, at the fitted weights.
For the penalties in use (scikit-learn's default) the two hardly differ; a large one holds weights
near zero, which no standard error tells.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import ClassVar

import numpy as np

from taciturn.arrays import BoolArray, FloatArray, LabelArray
from taciturn.data.rule_base import Bin
from taciturn.data.rules import CategoricalRule, NumericRule, Rule
from taciturn.data.tables import INTERCEPT, FeatureTable
from taciturn.families.binomial import sigmoid
from taciturn.memmap import over_blocks
from taciturn.model.share import ModelShare
from taciturn.model.whole import ModelPart
from taciturn.report import blocks as b
from taciturn.report.formatting import NONE, share
from taciturn.results.serialise import OMITTED, Result
from taciturn.results.training import FeatureParty
from taciturn_risk.scorecard.points import (
    Scale,
    covariance,
    errors_of,
    information,
    row_information,
    wald,
)
from taciturn_risk.scorecard.result import CoefficientTest, ColumnEffect, EffectLevel

OWN, SHARED, REVEALED, BOTH = "own", "shared", "revealed", "both"

_SAYS = {
    OWN: "the weights of this side's columns, in clear",
    REVEALED: "the weights of this side's columns: they were shared in the training, and revealed",
    SHARED: "a RANDOM SHARE of the weights of Alice's columns: its numbers mean nothing alone and "
    "are not shown",
    BOTH: "RANDOM SHARES of the weights of both sides' columns: their numbers mean nothing alone "
    "and are not shown",
}


@dataclass(frozen=True, slots=True)
class Coefficient:
    """A column's weight on the prepared scale and per original unit; None if not available."""

    column: str
    prepared: float
    original: float | None
    clipped: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class ModelCard(Result):
    """Summary of a share; leaves out the numbers of a random share.

    Metrics, ledger and agreement stand as the file has them: it may come from anywhere.
    """

    kind: ClassVar[str] = "model-show"
    known_by: ClassVar[str] = "coefficients"

    role: str
    name: str | None = field(default=None, metadata=OMITTED)
    parties: tuple[FeatureParty, ...] | None = field(default=None, metadata=OMITTED)
    weights: str
    holds: str
    coefficients: tuple[Coefficient, ...] | None = field(repr=False)
    intercept: float | None = field(repr=False)
    original_offset: float | None = field(repr=False)
    metrics: Mapping[str, object]
    mechanism: object
    epsilon: object
    ledger: Mapping[str, object]
    rows: int
    agreement: Mapping[str, object]
    study: Mapping[str, object] | None = field(default=None, metadata=OMITTED)
    session: str
    agreement_digest: str
    data_digest: str
    preparation: tuple[str, ...]
    notes: tuple[str, ...]
    taciturn: str

    def blocks(self, top: int = 30) -> list[b.Block]:
        """The card for a terminal: at most ``top`` coefficients and lines of the preparation."""
        lines = self.preparation[:top]
        blocks: list[b.Block] = [
            b.Paragraph(f"{self.name or self.role}'s share of a model", "strong"),
            self._facts(),
            *self._coefficients_table(top),
            *self._figures_table(),
            b.Heading("Preparation of each column"),
            *(b.Paragraph(line, "muted") for line in lines),
        ]
        hidden = len(self.preparation) - len(lines)
        if hidden:
            blocks.append(b.Paragraph(f"and {hidden:,} more columns (--top, --json)", "muted"))
        return [*blocks, *(b.Paragraph(f"note: {note}", "warning") for note in self.notes)]

    def _facts(self) -> b.Facts:
        epsilon = "" if self.epsilon is None else f", epsilon {self.epsilon}"
        facts: dict[str, b.Words] = {
            "holds": self.holds,
            "protected by": f"{self.mechanism}{epsilon}",
            "total label epsilon": _paid(self.ledger),
            "trained on": f"{self.rows:,} rows, session {self.session}",
            "agreement": self.agreement_digest,
            "data": self.data_digest,
            "written by": f"taciturn {self.taciturn}",
        }
        threshold, quality = (self.metrics.get(key) for key in ("threshold", "told_quality"))
        if isinstance(threshold, Mapping) and self.agreement.get("family") is None:
            probability, rule = threshold.get("probability"), str(threshold.get("rule"))[:20]
            above = share(probability) if isinstance(probability, float) else NONE
            facts["class 1"] = f"above a probability of {above} (rule: {rule})"
        if isinstance(quality, Mapping):
            figures = [
                f"{name} {share(value, 0)}"
                for key, name in (("accuracy", "accuracy"), ("auc", "AUC"))
                if isinstance(value := quality.get(key), float)
            ]
            facts["told to Alice"] = ", ".join(figures) or NONE
        return b.Facts(facts)

    def _coefficients_table(self, top: int) -> list[b.Block]:
        if self.coefficients is None:
            return []
        rows = []
        for coefficient in self.coefficients[:top]:
            original = (
                "says nothing" if coefficient.original is None else f"{coefficient.original:.6g}"
            )
            rows.append(
                (
                    coefficient.column,
                    f"{coefficient.prepared:.6f}",
                    f"{original}{' *' * coefficient.clipped}",
                )
            )
        name = "(this side's constant)" if self.intercept is None else "(intercept)"
        offset = self.original_offset or 0.0
        rows.append((name, f"{self.intercept or 0.0:.6f}", f"{offset:.6g}"))
        headings = ("column", "prepared", "original unit")
        blocks: list[b.Block] = [b.table(headings, rows, label="Coefficients")]
        if any(coefficient.clipped for coefficient in self.coefficients):
            blocks.append(
                b.Paragraph("* valid for values within the clipping range of the column", "muted")
            )
        hidden = len(self.coefficients) - top
        if hidden > 0:
            blocks.append(b.Paragraph(f"and {hidden:,} smaller ones (--top, --json)", "muted"))
        return blocks

    def _figures_table(self) -> list[b.Block]:
        rows: list[tuple[str, ...]] = []
        names = ("training rows", "held-out rows", "held-out rows, Bob alone")
        for key, name in zip(("train", "held_out", "bob_alone"), names, strict=True):
            metric = self.metrics.get(key)
            if isinstance(metric, Mapping) and "deviance" in metric:
                explained = metric.get("deviance_explained")
                written = [share(explained) if isinstance(explained, float) else NONE]
                rows.append((name, _number(metric.get("deviance"), ".6g"), *written))
            elif isinstance(metric, Mapping):
                shares = [metric.get(figure) for figure in ("accuracy", "auc")]
                written = [share(value) if isinstance(value, float) else NONE for value in shares]
                rows.append((name, *written, _number(metric.get("loss"), ".4f")))
        means = bool(rows) and len(rows[0]) == 3
        headings = ["", *(("mean deviance", "deviance explained") if means else _CLASS_FIGURES)]
        return [b.table(headings, rows, label="Figures of the model")] if rows else []


_CLASS_FIGURES = ("accuracy", "AUC", "log loss")


def _paid(ledger: Mapping[str, object]) -> str:
    if not ledger:
        return "the ledger is in Bob's file"
    total = ledger.get("label_epsilon_total")
    paid = "infinite: no protection" if total == "inf" else _number(total)
    return f"{paid} ({ledger.get('assumption', 'the file states no assumption')})"


def _number(value: object, digits: str = "g") -> str:
    """A number in short; a dash for what is none: the file may come from anywhere."""
    if isinstance(value, int | float) and not isinstance(value, bool) and math.isfinite(value):
        return f"{value:{digits}}"
    return NONE


def card(model: ModelShare) -> ModelCard:
    """Summary of a share; leaves out the numbers of a random share."""
    agreed, weights, shift = model.agreement, OWN, model.log_odds_shift
    if model.own_share:
        weights = REVEALED if len(model.weights) else SHARED
    weighing = (
        [
            f"class weights have moved the scores by {shift:.4g}: a probability is that of the "
            "score less as much"
        ]
        if shift
        else []
    )
    return ModelCard(
        role=model.role,
        name=model.name or None,
        parties=tuple(FeatureParty(*pair) for pair in model.parties.items()) or None,
        weights=weights,
        holds=_holds(model, weights),
        coefficients=None if weights == SHARED else named_coefficients(model),
        intercept=float(model.weights[-1]) if model.intercept and len(model.weights) else None,
        original_offset=None if weights == SHARED else original_offset(model),
        metrics=model.metrics,
        mechanism=agreed.get("mechanism"),
        epsilon=agreed.get("epsilon"),
        ledger=model.ledger,
        rows=model.rows,
        agreement=agreed,
        study=model.study or None,
        session=model.session,
        agreement_digest=model.agreement_digest,
        data_digest=model.data_digest,
        preparation=tuple(model.preparation.describe()),
        notes=(*model.notes, *weighing),
        taciturn=model.taciturn,
    )


def named_coefficients(model: ModelShare) -> tuple[Coefficient, ...]:
    """The named coefficients without the intercept, the largest on the prepared scale first."""
    named = [
        Coefficient(name, weight, weight / scale if scale else None, bounded)
        for (name, _, scale, bounded), weight in zip(
            prepared_columns(model), model.weights.tolist(), strict=False
        )
    ]
    return tuple(sorted(named, key=lambda coefficient: -abs(coefficient.prepared)))


def _holds(model: ModelShare, weights: str) -> str:
    if model.bob_share:
        return _SAYS[BOTH] if weights == SHARED else f"{_SAYS[weights]}; and {_SAYS[BOTH]}"
    if model.sealed and model.is_bob:
        return f"{_SAYS[OWN]}; and {_SAYS[SHARED]}"
    return _SAYS[weights]


def original_offset(model: ModelShare) -> float:
    """This side's constant on the original scale: the intercept less the centring."""
    start = float(model.weights[-1]) if model.intercept else model.offset
    weights: list[float] = model.weights.tolist()
    taken = [
        weight * center / scale
        for (_, center, scale, _), weight in zip(prepared_columns(model), weights, strict=False)
        if scale
    ]
    return start - sum(taken)


def prepared_columns(model: ModelShare) -> Iterator[tuple[str, float, float, bool]]:
    """Each prepared column's name, centre and scale, and whether its values are held within bounds.

    A scale of 0 is that of a column which has no original unit: it is constant, or transformed.
    """
    for rule in model.preparation.rules:
        yield from columns_of(rule)


def columns_of(rule: Rule) -> Iterator[tuple[str, float, float, bool]]:
    """The same of one rule."""
    if isinstance(rule, NumericRule):
        name, *marks = rule.outputs
        bounded = not (rule.clip is None and rule.lower is None and rule.upper is None)
        yield name, rule.center, 0.0 if rule.transform else rule.scale, bounded
        yield from ((mark, 0.0, 1.0, False) for mark in marks)
        return
    count, clipped = len(rule.outputs), rule.clip is not None
    centers, scales = (0.0,) * count, (1.0,) * count
    if isinstance(rule, CategoricalRule):
        centers, scales = rule.centers or centers, rule.scales or scales
    for name, center, scale in zip(rule.outputs, centers, scales, strict=True):
        yield name, center, scale, clipped


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
    columns: FloatArray, weights: FloatArray, scores: FloatArray, fit: Fit, rows: int
) -> FloatArray:
    """Lower bounds of one side's standard errors; NaN where the rows do not determine a weight.

    With class weights the bound is that of the likelihood without them, which no weighted fit
    undercuts. ``rows`` is how many rows the model was fitted to; where they are others than these,
    what these tell is taken as many times.
    """
    other_scores = scores - _product(columns, weights)
    matrix = information(
        columns, row_information(scores - fit.shift, fit.flip_epsilon), other_scores
    )
    return errors_of(covariance(matrix * (rows / len(scores))))[: columns.shape[1]]


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

    part: ModelPart
    errors: FloatArray | None = None
    table: FeatureTable | None = None

    def error(self, place: int) -> float:
        """The standard error of a weight; NaN where it is not known."""
        return math.nan if self.errors is None else float(self.errors[place])


def coefficient_tests(side: SideWeights, scale: Scale | None) -> tuple[CoefficientTest, ...]:
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
            points=None if original is None or scale is None else scale.worth(original),
        )

    rows = [
        test(name, place, unit, bounded)
        for place, (name, _, unit, bounded) in enumerate(prepared_columns(model))
    ]
    rows.sort(key=lambda row: -abs(row.prepared))
    if model.intercept:
        rows.append(test(INTERCEPT, len(weights) - 1, 0.0, False))
    return tuple(rows)


def constant_points(model_part: ModelPart, scale: Scale, shift: float) -> float:
    """The points of a row whose raw columns of this side are 0, or at their reference levels."""
    known = replace(model_part.model, weights=model_part.weights)
    return float(scale.points(np.array([original_offset(known)]), shift)[0])


def column_effects(
    side: SideWeights, scale: Scale, labels: LabelArray | None
) -> tuple[ColumnEffect, ...]:
    """Effect of each bin and category of a side's columns on the score."""
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
    """Values of a prepared column without a level, and with it."""
    if not unit:
        return 0.0, 0.0
    clip = math.inf if rule.clip is None else rule.clip
    low, high = (min(max((value - center) / unit, -clip), clip) for value in (0.0, 1.0))
    return low, high


def _above(rows: FloatArray, column: int, middle: float) -> BoolArray:
    """Mask of the rows that have a level: their value in its column exceeds ``middle``."""
    mask = np.empty(len(rows), dtype=np.bool_)

    def part(place: slice) -> None:
        mask[place] = rows[place, column] > middle

    for _ in over_blocks(part, len(rows), rows):
        pass
    return mask
