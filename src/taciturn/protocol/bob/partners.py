"""Bob's partners: one Alice, or several that he asks at once.

What is said to one Alice stands in the files of the conversations; here is what it means to say it
to all. Scores of several Alices come under masks (``taciturn.protocol.party_group``) and add up:
only their sum is a score.

Bob's half of ``X_A^T r`` under his key: encrypt, wait, decrypt, release.

Bob's look at held-out rows. The chart stands in ``taciturn.protocol.outcome``.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TypeVar

import numpy as np

from taciturn.arrays import EVERY_ROW, FloatArray, IndexArray, IntArray
from taciturn.crypto.base import EncryptedAnswer, SecretKey
from taciturn.errors import RemoteProtocolError
from taciturn.numerics.fixedpoint import FixedPoint
from taciturn.numerics.regression_metrics import evaluate_labels
from taciturn.privacy.base import GradientMechanism, MaskedProduct, Mechanism, Released
from taciturn.protocol.bob.inputs import BobInputs
from taciturn.protocol.events import HeldOutSeen
from taciturn.protocol.messages import (
    EncryptedResidues,
    EpochVerdict,
    MaskedGradient,
    MaskedScores,
    Message,
    RevealedGradient,
)
from taciturn.protocol.outcome import out_of_patience
from taciturn.protocol.scores import receive_scores, require_finite
from taciturn.protocol.state import TrainingState
from taciturn.protocol.steps import (
    ONLY,
    Program,
    emit,
    gather,
    receive,
    require_turn,
    send,
    with_peer,
)
from taciturn.rng import Entropy

R = TypeVar("R")


@dataclass(frozen=True, slots=True)
class Partner:
    """One Alice, with the ``place`` of her columns among those of all Alices."""

    name: str
    place: slice

    @property
    def columns(self) -> int:
        """Number of her columns."""
        width: int = self.place.stop - self.place.start
        return width

    def entropy(self, entropy: Entropy) -> Entropy:
        """Bob's entropy for what he sends to her: no two vectors are encrypted with the same."""
        return entropy if self.name == ONLY else entropy.fork(f"for {self.name}")


@dataclass(frozen=True, slots=True)
class Partners:
    """All Alices, in the agreement's order."""

    all: tuple[Partner, ...]

    @classmethod
    def from_widths(cls, names: Sequence[str], widths: Sequence[int]) -> Partners:
        """Partners with these names and numbers of columns.

        >>> [partner.place for partner in Partners.from_widths(["alice-1", "alice-2"], [3, 2]).all]
        [slice(0, 3, None), slice(3, 5, None)]
        """
        stops = np.cumsum(widths).tolist()
        starts = [0, *stops[:-1]]
        places = (slice(start, stop) for start, stop in zip(starts, stops, strict=True))
        return cls(tuple(Partner(*pair) for pair in zip(names, places, strict=True)))

    @classmethod
    def for_training(cls, names: Sequence[str], state: TrainingState) -> Partners:
        """Partners of a training, after the greetings."""
        return cls.from_widths(names, state.widths or (state.columns,))

    @property
    def names(self) -> tuple[str, ...]:
        """Under which Bob speaks to them."""
        return tuple(partner.name for partner in self.all)

    @property
    def widest(self) -> int:
        """The most columns that one of them has."""
        return max(partner.columns for partner in self.all)

    def ask(self, question: Callable[[Partner], Program[R]]) -> Program[list[R]]:
        """The answers of all Alices to the same conversation, held with all at once."""
        programs = {partner.name: question(partner) for partner in self.all}
        return [*(yield from gather(programs)).values()]


def send_all(names: Sequence[str], message: Message) -> Program[None]:
    """The same message to each."""
    for name in names:
        yield from with_peer(name, send(message))


def receive_all_scores(
    names: Sequence[str], iteration: int, rows: int, grid: FixedPoint
) -> Program[FloatArray]:
    """The Alices' part of the scores of this many rows; ``grid`` is the scale of masked scores."""
    if [*names] == [ONLY]:
        return (yield from receive_scores(iteration, rows))
    return grid.decode((yield from _masked_sum(names, iteration, rows)))


def _masked_sum(names: Sequence[str], iteration: int, rows: int) -> Program[IntArray]:
    """Scores modulo 2^64: the masks of all Alices cancel."""
    answers = yield from gather({name: _one_masked(iteration, rows) for name in names})
    total = np.zeros(rows, dtype=np.int64)
    for numbers in answers.values():
        total += numbers
    return total


def _one_masked(iteration: int, rows: int) -> Program[IntArray]:
    message = yield from receive(MaskedScores)
    require_turn("MaskedScores", message.iteration, iteration)
    if len(message.scores) != rows:
        raise RemoteProtocolError(
            f"the peer scored {len(message.scores)} rows where {rows} are expected"
        )
    return message.scores


def released_product(
    inputs: BobInputs[GradientMechanism],
    partners: Partners,
    key: SecretKey,
    encoded: IntArray,
    rows: IndexArray,
    iteration: int,
) -> Program[None]:
    """One encrypted round trip; what Bob decrypts is charged, released and sent.

    ``encoded`` are the residues on their grid, and ``rows`` those whose labels the product depends
    on.
    """
    entropy = inputs.entropy.fork(f"encryption {iteration}")

    def ask_product(partner: Partner) -> Program[MaskedProduct]:
        partner_entropy = partner.entropy(entropy)
        vector = key.encrypt(encoded, partner.columns, partner_entropy)
        yield from send(EncryptedResidues(iteration, vector))
        # Before waiting, not after: Alice is at work on her product meanwhile.
        key.stock(partner.columns, len(encoded), partner_entropy)
        answer = yield from masked_answer(iteration, partner.columns)
        return key.decrypt(answer, len(encoded))

    products = yield from partners.ask(ask_product)
    yield from release_products(inputs, partners, products, rows, iteration)


def release_products(
    inputs: BobInputs[GradientMechanism],
    partners: Partners,
    products: Sequence[MaskedProduct],
    rows: IndexArray | slice,
    iteration: int,
) -> Program[None]:
    """Returns to each Alice what is hers, as one release."""
    noise = inputs.entropy.fork(f"noise {iteration}")
    released = [
        inputs.mechanism.release(masked, partner.entropy(noise))
        for partner, masked in zip(partners.all, products, strict=True)
    ]
    # Exactly what leaves is what is charged, and before it leaves: together they tell of each row
    # what one product of all columns would.
    inputs.ledger.charge(released[0].event, rows)
    for partner, gradient in zip(partners.all, released, strict=True):
        yield from with_peer(partner.name, send(RevealedGradient(iteration, gradient)))


def masked_answer(iteration: int, columns: int) -> Program[EncryptedAnswer]:
    """Waits for Alice's masked product."""
    message = yield from receive(MaskedGradient)
    require_turn("MaskedGradient", message.iteration, iteration)
    if message.answer.length != columns:
        raise RemoteProtocolError(
            f"the peer answers with {message.answer.length} entries for {columns} columns"
        )
    return message.answer


STOPS_BY_LABELS = (
    "no protection: when Bob ends the training depends on labels, and Alice sees when he does"
)


def watch(
    inputs: BobInputs[Mechanism], weights: FloatArray, losses: FloatArray, iteration: int
) -> Program[tuple[FloatArray, bool]]:
    """The held-out losses so far, and whether to stop, at the end of an epoch."""
    held_out, patience = inputs.scored_each_epoch, inputs.terms.agreement.patience
    if held_out is None:
        return losses, False
    names, grid, rows = inputs.partners, inputs.terms.score_grid, held_out.features.rows
    alice_scores = yield from receive_all_scores(names, iteration, rows, grid)
    scores = require_finite(alice_scores + held_out.features.values @ weights)
    metrics = evaluate_labels(scores, held_out.labels, inputs.terms.log_odds_shift)
    yield from emit(HeldOutSeen(iteration, metrics))
    losses = np.append(losses, metrics.loss)
    if patience is None:
        return losses, False
    stop = out_of_patience(losses, patience)
    verdict = Released.unprotected(np.array([int(stop)]))
    inputs.ledger.taint(STOPS_BY_LABELS)
    inputs.ledger.charge(verdict.event, EVERY_ROW)
    yield from send_all(names, EpochVerdict(iteration, verdict))
    return losses, stop
