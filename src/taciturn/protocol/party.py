"""A party's whole program: the held-out rows, the training, the scores.

::

    Alice                                            Bob
      Hello (held-out rows)                     <->  Hello
      HeldOutScoring (only in mutual)           ->
      the training (by its conversation)
      Hello, PartialScores (training rows)      ->   Hello
      Hello, PartialScores (held-out rows)      ->   Hello
                                                <-   HeldOutQuality
                                                     (only with agreed share-metrics)

Where weights are shared only the held-out rows are scored, from the shares; in a study of
``mutual`` none is, and the losses of a fold's rows are summed (``taciturn.protocol.row_sums``). In
``mutual`` Alice says first whether she opens scores: beyond her limit on models of a row she does
not.
The settings and the held-out rows are compared before the training, so that a difference shows
before the work and not after it. Only Bob learns scores; what they are worth he tells where that is
agreed, which is a release.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from importlib import import_module
from typing import TypeVar, cast

from taciturn.arrays import FloatArray
from taciturn.data.tables import FeatureTable
from taciturn.files import canonical_json
from taciturn.privacy.quality_release import ToldQuality
from taciturn.protocol.handshake import (
    ANY_TABLE,
    PeerTable,
    greeting,
    open_training,
    shake_hands,
)
from taciturn.protocol.messages import Hello, Role
from taciturn.protocol.outcome import Trained
from taciturn.protocol.steps import Program
from taciturn.protocol.terms import Terms

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class PartyResult:
    """A party's result; only Bob has scores, and both know the metrics that he sent.

    ``loss_share`` is this party's share of the sum of the held-out rows' losses, where these are
    summed and not scored. ``noise_key`` is Alice's, and is kept with her model. ``further`` are the
    results of the other penalties, where several share one search.
    """

    trained: Trained
    train_scores: FloatArray | None = field(default=None, repr=False)
    held_out_scores: FloatArray | None = field(default=None, repr=False)
    quality: ToldQuality | None = None
    loss_share: int | None = field(default=None, repr=False)
    noise_key: bytes = field(default=b"", repr=False)
    further: tuple[PartyResult, ...] = field(default=(), repr=False)

    @property
    def models(self) -> tuple[PartyResult, ...]:
        """The result of each model."""
        return (self, *self.further)


def dry_run(
    role: Role,
    terms: Terms,
    features: FeatureTable,
    held_out: FeatureTable | None,
    magnitude_bits: int,
    peer: PeerTable = ANY_TABLE,
) -> Program[Hello]:
    """The greetings of a training, without training; returns the peer's, if the two sides fit."""
    yield from compare_held_out(role, terms, held_out)
    return (yield from open_training(role, terms, features, magnitude_bits, peer))


def compare_held_out(role: Role, terms: Terms, held_out: FeatureTable | None) -> Program[None]:
    """Compares the settings, and then which rows are held out, where any are."""
    if held_out is not None:
        yield from shake_hands(greeting(role, held_out_terms(terms), held_out), "held-out rows")


def held_out_terms(terms: Terms) -> str:
    """The settings by which rows are held out and trained on, in canonical form.

    Without the penalty, whose default depends on the number of training rows: where that differs,
    the rows are the reason.
    """
    agreed = terms.agreement.model_dump()
    return canonical_json({name: value for name, value in agreed.items() if name != "l2"})


class Conversations(Mapping[str, T]):
    """One side's trainings by the name of their conversation, each loaded when it is asked for.

    So a party's process has the conversation that was agreed on, and no other.
    """

    def __init__(self, package: str, modules: Mapping[str, str]) -> None:
        self._package, self._modules = package, dict(modules)

    def __getitem__(self, name: str) -> T:
        return cast(T, import_module(f"{self._package}.{self._modules[name]}").train)

    def __iter__(self) -> Iterator[str]:
        return iter(self._modules)

    def __len__(self) -> int:
        return len(self._modules)
