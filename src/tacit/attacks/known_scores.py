"""``known-scores``: where Alice knows the score of a row, its residue is one of two or three values.

With all columns at Alice (as in the paper) her score is the model's, so that ``r_i`` is ``1 - f_i``
or ``-f_i``, in ``hybrid`` times ``s = batch_size / k`` or else 0, and there is nothing else to find
out than which. That is used twice. First each batch's evidence about its labels is summed over the
run (``posterior``): fast, and right for almost every row, but never certain. Then batches are
searched for the states that fit (``states``), with the likely ones first, and what is found is
certified in integers: such rows are certain.

Where Bob has columns the scores are only estimated from Alice's part, and evidence is weighed
accordingly; the first iteration, in which all weights are zero, is exact even then.
"""

from __future__ import annotations

import time
from collections.abc import Sequence

import numpy as np

from tacit.arrays import BoolArray, FloatArray
from tacit.attacks.base import Announce, Attack, LabelGuess, quietly
from tacit.attacks.linear import gradients
from tacit.attacks.posterior import SWEEPS, Law, gather, scores_exact
from tacit.attacks.recovery import Notebook, Recovered, System, evenly, on_cores
from tacit.attacks.states import Search
from tacit.protocol.events import GradientSeen
from tacit.view.alice_view import AliceView
from tacit.view.signals import Signal

# Log-odds at which a label is taken as known while others are searched for; integers check it.
SURE_ODDS = 12.0
# A few at a time, so that what is proven helps the next ones, and the budget is kept.
_CHUNK = 8
# So many searches in a row that prove nothing, and the rest is not tried.
_PATIENCE = 48


class KnownScoresAttack(Attack):
    """Evidence from every batch, then certified states of as many as time allows.

    Args:
        most_batches: How many batches are looked at, spread evenly over the run.
        seconds: The most that one search may take.
        budget: Seconds after which no further search begins.
    """

    name = "known-scores"
    reference = "linear estimate of least mean square and integer program on [Tan22] Eq. 3"
    needs = frozenset({Signal.FEATURES, Signal.GRADIENTS})

    def __init__(
        self, most_batches: int = 16_384, seconds: float = 1.0, budget: float = 90.0
    ) -> None:
        self.most_batches = most_batches
        self.seconds = seconds
        self.budget = budget

    def infer(self, view: AliceView, progress: Announce = quietly) -> LabelGuess:
        """Hears every batch, then proves what it can."""
        every = gradients(view)
        batches = evenly(every, self.most_batches)
        exact = [seen for seen in batches if scores_exact(view, seen)]
        heard, total = SWEEPS * len(batches), SWEEPS * len(batches) + len(exact)
        odds = gather(view, batches, progress=lambda done, _: progress(done, total))
        notes = Notebook(view.features.rows)
        searched = certified = done = 0
        start, last = time.perf_counter(), 0

        def recover(seen: GradientSeen) -> Recovered | None:
            spent = time.perf_counter() - start > self.budget or searched - last > _PATIENCE
            if spent or not notes.open(seen):
                return None
            return recover_states(view, seen, odds, notes.certain, self.seconds)

        for found in on_cores(recover, exact, _CHUNK):
            done += 1
            progress(heard + done, total)
            if found is None:
                continue
            searched += 1
            if found.certified:
                certified, last = certified + 1, searched
                notes.settle(found)
                rows = found.seen.rows[found.certain]
                odds[rows] = notes.signs[rows] * np.maximum(np.abs(odds[rows]), SURE_ODDS)
        remark = _remark(batches, every, searched, certified, view.scores_known)
        return notes.guess(odds, remark)


def recover_states(
    view: AliceView,
    seen: GradientSeen,
    odds: FloatArray,
    certain: BoolArray,
    seconds: float,
) -> Recovered:
    """The states of a batch's rows, certified where they are found.

    Args:
        view: What Alice knows; her scores of this batch must be exact.
        seen: The batch.
        odds: Log-odds of label 1 for every row there is.
        certain: Where their sign is proven.
        seconds: The most that a search may take.
    """
    system, likely = System.of(view, seen), odds[seen.rows]
    f = view.probabilities(seen.rows, seen.weights)
    proven = certain[seen.rows]
    for fixed in (proven | (np.abs(likely) >= SURE_ODDS), proven):
        search = Search(system, Law.of(view), f, likely, fixed, seconds)
        states = search.find()
        steps = None if states is None else search.proven(states)
        if states is not None and steps is not None:
            return Recovered.proven(system, steps, states != 0, search.unique(states))
        if (fixed == proven).all():
            break
    return Recovered.nothing(seen)


def _remark(
    batches: Sequence[GradientSeen],
    every: Sequence[GradientSeen],
    searched: int,
    certified: int,
    known: bool,
) -> str:
    heard = f"heard {len(batches)} of {len(every)} batches"
    proof = f"searched {searched}, of which {certified} certified to the last bit"
    guessed = "" if known else "; Bob has columns, so scores are estimated after the first batch"
    return f"{heard}, {proof}{guessed}"
