"""What a party says from the first word to the last: the held-out rows, the training, the scores.

::

    Alice                                            Bob
      Hello (held-out rows)                     <->  Hello
      the training (by its conversation)
      Hello, PartialScores (training rows)      ->   Hello
      Hello, PartialScores (held-out rows)      ->   Hello

Where weights are shared only the held-out rows are scored, from the shares.
The held-out rows are compared before the training, so that a difference shows before the work and
not after it. Only Bob learns scores, and what they are worth.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import cast

from taciturn.arrays import FloatArray
from taciturn.data.tables import FeatureTable, LabelTable
from taciturn.deploy.tables import PartyTables
from taciturn.errors import ConfigError
from taciturn.faces import Hint
from taciturn.privacy.ledger import Ledger
from taciturn.privacy.registry import mechanism
from taciturn.protocol.alice.predict import predict as alice_predict
from taciturn.protocol.alice.predict_sealed import predict as alice_sealed
from taciturn.protocol.alice.registry import TRAININGS as ALICE
from taciturn.protocol.bob.predict import predict as bob_predict
from taciturn.protocol.bob.predict_sealed import predict as bob_sealed
from taciturn.protocol.bob.registry import TRAININGS as BOB
from taciturn.protocol.events import ShareKept
from taciturn.protocol.handshake import greeting, shake_hands
from taciturn.protocol.held_out import HeldOut
from taciturn.protocol.messages import Hello, Message, Role
from taciturn.protocol.state import TrainingState
from taciturn.protocol.steps import Emit, Program
from taciturn.protocol.terms import Terms
from taciturn.rng import Entropy

HELD_OUT_TERMS = '{"purpose":"held out"}'


@dataclass(frozen=True, slots=True)
class Result:
    """What a party has at the end; scores are Bob's alone."""

    weights: FloatArray = field(repr=False)
    kept: ShareKept | None = field(default=None, repr=False)
    train_scores: FloatArray | None = field(default=None, repr=False)
    held_out_scores: FloatArray | None = field(default=None, repr=False)


def alice_program(
    tables: PartyTables, terms: Terms, entropy: Entropy, resume: TrainingState | None = None
) -> Program[Result]:
    """Alice's whole part."""
    if resume is None:
        yield from compare_held_out("alice", tables.held_out)
    shares: list[ShareKept] = []
    training = ALICE[mechanism(terms.agreement).conversation](
        tables.train,
        terms,
        entropy,
        resume=resume,
        held_out=tables.held_out if terms.agreement.evaluate == "epoch" else None,
    )
    weights = yield from _noting(training, shares)
    if shares:
        (kept,) = shares
        if tables.held_out is not None:
            coins = entropy.fork("held out")
            yield from alice_sealed(tables.held_out, kept.share, terms, kept.scales, coins)
        return Result(weights, kept)
    yield from alice_predict(tables.train, weights)
    if tables.held_out is not None:
        yield from alice_predict(tables.held_out, weights)
    return Result(weights)


def bob_program(
    tables: PartyTables,
    labels: LabelTable,
    terms: Terms,
    ledger: Ledger,
    entropy: Entropy,
    resume: TrainingState | None = None,
) -> Program[Result]:
    """Bob's whole part.

    Args:
        tables: His rows.
        labels: What the training may use of their labels: true or flipped.
        terms: The agreement in use.
        ledger: Charged before every release.
        entropy: His coins.
        resume: Where to go on; None to begin.

    Raises:
        ConfigError: Held-out rows are to be looked at, and there are none.
    """
    if resume is None:
        yield from compare_held_out("bob", tables.held_out)
    method = mechanism(terms.agreement)
    shares: list[ShareKept] = []
    training = BOB[method.conversation](
        tables.train,
        labels,
        terms,
        method,
        ledger,
        entropy,
        resume=resume,
        held_out=_watched(tables, terms),
    )
    weights = yield from _noting(training, shares)
    if shares:
        return (yield from _sealed_result(tables, weights, shares[0], terms, entropy))
    train = yield from bob_predict(tables.train, weights)
    if tables.held_out is None:
        return Result(weights, None, train)
    return Result(weights, None, train, (yield from bob_predict(tables.held_out, weights)))


def _sealed_result(
    tables: PartyTables, weights: FloatArray, kept: ShareKept, terms: Terms, entropy: Entropy
) -> Program[Result]:
    """Scores from shares, of held-out rows alone: each costs an encrypted product."""
    if tables.held_out is None:
        return Result(weights, kept)
    scores = yield from bob_sealed(
        tables.held_out, weights, kept.share, terms, kept.scales, entropy.fork("held out")
    )
    return Result(weights, kept, None, scores)


def _noting(program: Program[FloatArray], shares: list[ShareKept]) -> Program[FloatArray]:
    """The same program; a share that it leaves is noted."""
    answer: Message | bytes | None = None
    while True:
        try:
            step = program.send(answer)
        except StopIteration as done:
            return cast(FloatArray, done.value)
        if isinstance(step, Emit) and isinstance(step.event, ShareKept):
            shares.append(step.event)
        answer = yield step


def dry_run(role: Role, tables: PartyTables, terms: Terms, magnitude_bits: int) -> Program[Hello]:
    """The first words of a training, and nothing more: do the two sides fit?"""
    yield from compare_held_out(role, tables.held_out)
    hello = greeting(role, terms.agreement.canonical(), tables.train, magnitude_bits)
    return (yield from shake_hands(hello))


def compare_held_out(role: Role, held_out: FeatureTable | None) -> Program[None]:
    """Compares which rows are held out, where any are."""
    if held_out is not None:
        yield from shake_hands(greeting(role, HELD_OUT_TERMS, held_out))


def _watched(tables: PartyTables, terms: Terms) -> HeldOut | None:
    if terms.agreement.evaluate != "epoch":
        return None
    if tables.held_out is None or tables.held_out_labels is None:
        raise ConfigError(
            "held-out rows are to be looked at after each epoch, and there are none",
            setting="evaluate",
            hint=Hint("raise {held_out}, or use {evaluate}", evaluate="end"),
        )
    return HeldOut(tables.held_out, tables.held_out_labels)
