"""Members and size of a hidden batch, which ``hybrid``'s randomised response should hide.

The response tells Alice which rows to score, and claims epsilon for each bit of whether a row is
meant. The gradient of the same iteration then tells the rest.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

import numpy as np

from taciturn.arrays import FloatArray, IndexArray
from taciturn.engine.callbacks import ReportProgress, noop
from taciturn.parallel import one_thread
from taciturn.protocol.observations import GradientSeen, Signal
from taciturn_audit.attacks.known_scores import affordable, recover_states
from taciturn_audit.attacks.linear import gradients
from taciturn_audit.attacks.posterior import SWEEPS, gather, hear, scores_exact
from taciturn_audit.attacks.recovery import Recovered, evenly, on_cores
from taciturn_audit.attacks.sparse import recover_sparse
from taciturn_audit.views.alice_view import AliceView

NEEDS = frozenset({Signal.FEATURES, Signal.GRADIENTS, Signal.RESPONSE})
# How many batches are heard for the labels, which help to tell the members.
_MOST_HEARD = 16_384


@dataclass(frozen=True, slots=True)
class MembershipGuess:
    """The true batch of one iteration, guessed.

    ``asked`` are the rows that Alice scored. ``certified``: the integers hold to the last bit.
    Members whose residue rounds to zero are counted in ``size``, but nobody can tell which rows
    they are.
    """

    iteration: int
    asked: IndexArray = field(repr=False)
    members: IndexArray = field(repr=False)
    size: int
    certified: bool


def guess_membership(
    view: AliceView, most: int = 200, nodes: int = 100, progress: ReportProgress = noop
) -> tuple[MembershipGuess, ...]:
    """Guesses at the true batch of ``most`` iterations, spread evenly over the run.

    Empty where the view lacks a signal of ``NEEDS``: batches are not hidden.
    """
    if not view.signals >= NEEDS:
        return ()
    with one_thread():
        return _guesses(view, most, nodes, progress)


def _guesses(
    view: AliceView, most: int, nodes: int, progress: ReportProgress
) -> tuple[MembershipGuess, ...]:
    every = gradients(view)
    heard = evenly(every, affordable(every, _MOST_HEARD))
    chosen = evenly(every, most)
    total = SWEEPS * len(heard) + len(chosen)
    odds = gather(view, heard, progress=lambda done, _: progress(done, total))
    unproven = np.zeros(len(odds), dtype=bool)

    def recover(seen: GradientSeen) -> Recovered:
        if not scores_exact(view, seen):
            return recover_sparse(view, seen)
        return recover_states(view, seen, odds, unproven, nodes)

    guesses: list[MembershipGuess] = []
    for recovered in on_cores(recover, chosen):
        guesses.append(_guess(recovered, lambda seen: hear(view, seen, odds[seen.rows]).member))
        progress(SWEEPS * len(heard) + len(guesses), total)
    return tuple(guesses)


def _guess(recovered: Recovered, likely: Callable[[GradientSeen], FloatArray]) -> MembershipGuess:
    seen = recovered.seen
    if recovered.certified:
        members, size = recovered.members, recovered.size
    else:
        chances = likely(seen)
        members = chances > 0
        # The expected number, which is nearer than the number of rows above one half.
        size = round(float(np.sum(1.0 / (1.0 + np.exp(-np.clip(chances, -30.0, 30.0))))))
    return MembershipGuess(seen.iteration, seen.rows, seen.rows[members], size, recovered.certified)
