"""What a model's file says: coefficients by name, and where they come from.

A coefficient stands on two scales. *Prepared*: for the column as the model sees it, centred and
scaled; these can be compared with each other. *Original*: for one unit of the raw column, or for
having a category at all; within a clip, where there is one.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import ClassVar

from taciturn.data.rules import CategoricalRule, NumericRule, Rule
from taciturn.model.share import ModelShare
from taciturn.report import blocks as b
from taciturn.report.words import NONE, share
from taciturn.results.serialise import OMITTED, Result
from taciturn.results.training import FeatureParty

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
    """A column's weight on the prepared scale and for one original unit; None says nothing."""

    column: str
    prepared: float
    original: float | None
    clipped: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class ModelCard(Result):
    """Everything worth knowing about a share; a random share's numbers are not in it.

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
            b.Heading("preparation"),
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
            "a label's epsilon in all": _paid(self.ledger),
            "trained on": f"{self.rows:,} rows, session {self.session}",
            "agreement": self.agreement_digest,
            "data": self.data_digest,
            "written by": f"taciturn {self.taciturn}",
        }
        threshold, quality = (self.metrics.get(key) for key in ("threshold", "told_quality"))
        if isinstance(threshold, Mapping):
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
        for one in self.coefficients[:top]:
            original = "says nothing" if one.original is None else f"{one.original:.6g}"
            rows.append((one.column, f"{one.prepared:.6f}", f"{original}{' *' * one.clipped}"))
        name = "(this side's constant)" if self.intercept is None else "(intercept)"
        offset = self.original_offset or 0.0
        rows.append((name, f"{self.intercept or 0.0:.6f}", f"{offset:.6g}"))
        headings = ("column", "prepared", "original unit")
        blocks: list[b.Block] = [b.table(headings, rows, label="Coefficients")]
        if any(one.clipped for one in self.coefficients):
            blocks.append(b.Paragraph("* while the prepared value is within its clip", "muted"))
        hidden = len(self.coefficients) - top
        if hidden > 0:
            blocks.append(b.Paragraph(f"and {hidden:,} smaller ones (--top, --json)", "muted"))
        return blocks

    def _figures_table(self) -> list[b.Block]:
        rows = []
        names = ("training rows", "held-out rows", "the same, Bob alone")
        for key, name in zip(("train", "held_out", "bob_alone"), names, strict=True):
            part = self.metrics.get(key)
            if isinstance(part, Mapping):
                shares = [part.get(figure) for figure in ("accuracy", "auc")]
                written = [share(value) if isinstance(value, float) else NONE for value in shares]
                rows.append((name, *written, _number(part.get("loss"), ".4f")))
        headings = ("", "accuracy", "AUC", "log loss")
        return [b.table(headings, rows, label="Figures of the model")] if rows else []


def _paid(ledger: Mapping[str, object]) -> str:
    if not ledger:
        return "the ledger is in Bob's file"
    total = ledger.get("label_epsilon_total")
    paid = "infinite: no protection" if total == "inf" else _number(total)
    return f"{paid} ({ledger.get('assumption', 'the file does not say what that rests on')})"


def _number(value: object, digits: str = "g") -> str:
    """A number in short; a dash for what is none: the file may come from anywhere."""
    if isinstance(value, int | float) and not isinstance(value, bool) and math.isfinite(value):
        return f"{value:{digits}}"
    return NONE


def card(model: ModelShare) -> ModelCard:
    """Everything worth knowing about a share; a random share's numbers are not in it."""
    agreed, weights, shift = model.agreement, OWN, model.log_odds_shift
    if model.sealed and (model.role == "alice" or model.bob_share):
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
    if model.sealed and model.role == "bob":
        return f"{_SAYS[OWN]}; and {_SAYS[SHARED]}"
    return _SAYS[weights]


def original_offset(model: ModelShare) -> float:
    """This side's constant on the original scale: the intercept less what centring takes off."""
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
