"""All shares of one model, put together: for a holder of both files, or of all of several Alices.

Where Alice's weights were shared, putting the shares together gives them: the result is what
the training kept from both sides, and from then on Bob's labels are protected no better than by a
revealed model.
"""

from __future__ import annotations

import operator
from dataclasses import dataclass, replace
from functools import reduce

import numpy as np
import polars as pl

from taciturn.arrays import FloatArray
from taciturn.errors import ConfigError
from taciturn.model.share import ModelShare
from taciturn.protocol.scales import Scales


@dataclass(frozen=True, slots=True)
class ModelPart:
    """One side's columns with their weights in clear, an intercept's included.

    ``offset`` is what centring adds to a score, where the weights have no intercept for it.
    """

    model: ModelShare
    weights: FloatArray
    offset: float = 0.0

    @property
    def constant(self) -> float:
        """Constant term: the intercept, if any, and the offset."""
        return self.offset + (float(self.weights[-1]) if self.model.intercept else 0.0)

    def scores(self, frame: pl.DataFrame) -> FloatArray:
        """This side's partial scores, from raw columns."""
        plan = self.model.preparation
        if plan.columns:
            partial: FloatArray = plan.apply(frame) @ self.weights[: len(plan.columns)]
        else:
            partial = np.zeros(frame.height)
        return partial + self.constant


@dataclass(frozen=True, slots=True)
class WholeModel:
    """A whole model: a part of each Alice, and Bob's."""

    alices: tuple[ModelPart, ...]
    bob: ModelPart

    @property
    def parts(self) -> tuple[ModelPart, ...]:
        """All parts, Bob's last."""
        return (*self.alices, self.bob)

    def scores(self, *frames: pl.DataFrame) -> FloatArray:
        """Linear predictor of each row, from the raw columns of all sides in one order, Bob's last.

        Of labels of two classes it is the log-odds.
        """
        parts = zip(self.parts, frames, strict=True)
        return reduce(operator.add, (part.scores(frame) for part, frame in parts))


def input_names(parts: tuple[ModelPart, ...]) -> tuple[dict[str, str], ...]:
    """Per part, the name of each of its raw columns in a table of all sides.

    A column keeps its name; where several sides have one of that name it is ``alice/name`` and
    ``bob/name``, or ``alice-2/name`` of one of several Alices.
    """
    # A date and its parts come from one column.
    names = [
        list(dict.fromkeys(rule.column for rule in part.model.preparation.rules)) for part in parts
    ]
    seen = [name for columns in names for name in columns]
    return tuple(
        {name: name if seen.count(name) == 1 else f"{part.model.title}/{name}" for name in columns}
        for part, columns in zip(parts, names, strict=True)
    )


def own_part(model: ModelShare) -> ModelPart:
    """A side's own part, where its file has weights."""
    if not len(model.weights) and model.columns:
        raise ConfigError(
            "this file holds a random share of the weights, which reveals nothing about them",
            where=f"{model.role}'s model",
            hint="joint scores come from taciturn predict; a whole model needs both files",
        )
    return ModelPart(model, model.weights, model.offset)


def whole_model(*shares: ModelShare) -> WholeModel:
    """Put the shares of all sides together, given in any order."""
    alices = {share.name: share for share in shares if not share.is_bob}
    bobs = [share for share in shares if share.is_bob]
    if len(bobs) != 1 or not alices or len(alices) + 1 != len(shares):
        sides = [share.title for share in shares]
        alike = len(sides) == 2 and sides[0] == sides[1]
        raise ConfigError(
            f"both files are {sides[0]}'s" if alike else f"the files are of {', '.join(sides)}",
            where="the model files",
            hint="name one file of alice's, or of each alice's, and one of bob's",
        )
    (bob,) = bobs
    absent = [name for name in bob.parties if name not in alices]
    for alice in alices.values():
        if (alice.session, alice.agreement) != (bob.session, bob.agreement):
            raise ConfigError(
                "the files do not come from the same training: "
                f"session {alice.session} and session {bob.session}",
                hint="name the files that one training wrote (taciturn model show says which)",
            )
    if absent:
        raise ConfigError(
            f"the model has parts of {', '.join(bob.parties)} too, and no file of "
            f"{', '.join(absent)} is named",
            hint="name one file of bob's, and one of each alice's",
        )
    ordered = [alices[name] for name in bob.parties or alices]
    alice_parts = tuple(ModelPart(alice, _alices_weights(alice, bob)) for alice in ordered)
    bob_weights = _bobs_weights(ordered[0], bob)
    if bob.intercept:
        # In the whole model Bob's intercept absorbs the means of all sides.
        bob_weights = bob_weights.copy()
        bob_weights[-1] += sum(
            replace(part.model, weights=part.weights).offset for part in alice_parts
        )
    response = bob.coordinates_of_scores
    if bob.response:
        # The whole model's scores are linear predictors, whatever the coordinates of the training.
        alice_parts = tuple(
            replace(part, weights=response.scale * part.weights) for part in alice_parts
        )
        bob_weights = response.scale * bob_weights
        if bob.intercept:
            bob_weights[-1] += response.location
    return WholeModel(alice_parts, ModelPart(bob, bob_weights))


def _alices_weights(alice: ModelShare, bob: ModelShare) -> FloatArray:
    if not alice.sealed:
        return alice.weights
    bob_share = bob.share_with(alice.name)
    if len(alice.share) != len(bob_share) or alice.scales != bob.scales:
        raise ConfigError("the two shares do not fit each other", hint="name whole files")
    alice_numbers, bob_numbers = (
        np.array(numbers, dtype=np.int64) for numbers in (alice.share, bob_share)
    )
    return _in_columns(alice, Scales.from_json(alice.scales).weights(alice_numbers + bob_numbers))


def _bobs_weights(alice: ModelShare, bob: ModelShare) -> FloatArray:
    if len(bob.weights) == len(bob.columns):
        return bob.weights
    if len(alice.bob_share) != len(bob.bob_share):
        raise ConfigError("the two shares do not fit each other", hint="name whole files")
    alice_numbers, bob_numbers = (np.array(side.bob_share, dtype=np.int64) for side in (alice, bob))
    return _in_columns(bob, Scales.from_json(alice.scales).weights(alice_numbers + bob_numbers))


def _in_columns(owner: ModelShare, weights: FloatArray) -> FloatArray:
    """Weights of a side's columns, from those in the coordinates that its file has."""
    return weights if owner.coordinates is None else owner.coordinates.weights(weights)
