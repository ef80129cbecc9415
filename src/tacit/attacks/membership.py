"""Who is in a hidden batch, and how many: what ``hybrid``'s randomised response claims to hide.

The rows that basis pursuit gives a residue (``sparse``) are taken for the true batch. Where it
finds none to the last bit, and Alice knows the scores, the integer program of ``known-scores`` is
tried as well.
"""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np

from tacit.arrays import IndexArray
from tacit.attacks.base import Announce, quietly
from tacit.attacks.known_scores import recover_states
from tacit.attacks.linear import gradients
from tacit.attacks.posterior import gather, scores_exact
from tacit.attacks.recovery import Recovered, evenly, on_cores
from tacit.attacks.sparse import recover_sparse
from tacit.protocol.events import GradientSeen
from tacit.view.alice_view import AliceView

MOST_ITERATIONS = 200
_SECONDS = 0.5


@dataclass(frozen=True, slots=True)
class MembershipGuess:
    """One iteration: the rows that Alice scored, and those she takes for the batch.

    ``certified`` says that the guess satisfies the gradient's integers to the last bit.
    """

    iteration: int
    asked: IndexArray = field(repr=False)
    members: IndexArray = field(repr=False)
    certified: bool


def guess_membership(
    view: AliceView, most: int = MOST_ITERATIONS, progress: Announce = quietly
) -> list[MembershipGuess]:
    """A guess for at most so many iterations, spread evenly over the run.

    Args:
        view: What Alice knows; batches must be hidden.
        most: How many iterations to look at.
        progress: Called with how many are done, and of how many.
    """
    batches = evenly(gradients(view), most)
    odds = gather(view, batches)
    nothing = np.zeros(view.features.rows, dtype=bool)

    def recover(seen: GradientSeen) -> Recovered:
        found = recover_sparse(view, seen, _SECONDS)
        if found.certified or not scores_exact(view, seen):
            return found
        proven = recover_states(view, seen, odds, nothing, _SECONDS)
        return proven if proven.certified else found

    guesses = []
    for found in on_cores(recover, batches):
        members = found.seen.rows[found.members]
        guesses.append(
            MembershipGuess(found.seen.iteration, found.seen.rows, members, found.certified)
        )
        progress(len(guesses), len(batches))
    return guesses
