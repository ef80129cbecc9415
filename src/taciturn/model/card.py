"""What a model's file says: coefficients by name, and where they come from.

A coefficient stands on two scales. *Prepared*: for the column as the model sees it, centred and
scaled; these can be compared with each other. *Original*: for one unit of the raw column, or for
having a category at all; within a clip, where there is one.
"""

from __future__ import annotations

from collections.abc import Iterator

from taciturn.data.rules import CategoricalRule, NumericRule, Rule
from taciturn.model.share import ModelShare
from taciturn.results.model import Coefficient, ModelCard
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


def card(model: ModelShare) -> ModelCard:
    """Model card of a share; a random share's numbers are not in it."""
    weights = _kind(model)
    agreed = model.agreement
    return ModelCard(
        role=model.role,
        name=model.name or None,
        parties=tuple(FeatureParty(*pair) for pair in model.parties.items()) or None,
        weights=weights,
        holds=_holds(model, weights),
        coefficients=None if weights == SHARED else coefficients(model),
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
        notes=(*model.notes, *_weighing(model)),
        taciturn=model.taciturn,
    )


def _weighing(model: ModelShare) -> tuple[str, ...]:
    shift = model.log_odds_shift
    if not shift:
        return ()
    return (
        f"class weights have moved the scores by {shift:.4g}: a probability is that of the score "
        "less as much",
    )


def coefficients(model: ModelShare) -> tuple[Coefficient, ...]:
    """Named coefficients without the intercept, the largest on the prepared scale first."""
    named = [
        Coefficient(name, weight, weight / scale if scale else None, bounded)
        for (name, _, scale, bounded), weight in zip(
            prepared_columns(model), model.weights.tolist(), strict=False
        )
    ]
    return tuple(sorted(named, key=lambda coefficient: -abs(coefficient.prepared)))


def _kind(model: ModelShare) -> str:
    if not model.sealed or (model.role == "bob" and not model.bob_share):
        return OWN
    return REVEALED if len(model.weights) else SHARED


def _holds(model: ModelShare, weights: str) -> str:
    if model.bob_share:
        return _SAYS[BOTH] if weights == SHARED else f"{_SAYS[weights]}; and {_SAYS[BOTH]}"
    if model.sealed and model.role == "bob":
        return f"{_SAYS[OWN]}; and {_SAYS[SHARED]}"
    return _SAYS[weights]


def original_offset(model: ModelShare) -> float:
    """This side's constant on the original scale: the intercept less what centring takes off."""
    start = float(model.weights[-1]) if model.intercept else 0.0
    weights: list[float] = model.weights.tolist()
    taken = [
        weight * center / scale
        for (_, center, scale, _), weight in zip(prepared_columns(model), weights, strict=False)
        if scale
    ]
    return start - sum(taken)


def prepared_columns(model: ModelShare) -> Iterator[tuple[str, float, float, bool]]:
    """Name, centre and scale of each prepared column, and whether its values are bounded.

    A scale of 0 is that of a column which has no original unit: it is constant, or transformed.
    """
    for rule in model.preparation.rules:
        yield from columns_of(rule)


def columns_of(rule: Rule) -> Iterator[tuple[str, float, float, bool]]:
    """``prepared_columns`` of one rule."""
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
