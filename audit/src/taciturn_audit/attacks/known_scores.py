"""``known-scores``: where Alice knows a row's score, its residue is one of two or three values.

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

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from taciturn.arrays import BoolArray, FloatArray
from taciturn.engine.callbacks import ReportProgress
from taciturn.protocol.observations import GradientSeen, Signal
from taciturn_audit.attacks.base import Attack, LabelGuess
from taciturn_audit.attacks.integer_program import Search
from taciturn_audit.attacks.linear import gradients
from taciturn_audit.attacks.posterior import SWEEPS, Law, gather, hear, scores_exact
from taciturn_audit.attacks.recovery import (
    ProvenLabels,
    Recovered,
    System,
    evenly,
    on_cores,
    scattered,
)
from taciturn_audit.views.alice_view import AliceView

# Log-odds at which a label is taken as known while others are searched for; integers check it.
_SURE = 10.0
# Work of one sweep over the batches, rows times squared columns: half a minute at most.
_MOST_WORK = 2e10
# So many searches in a row that prove nothing, and the rest is not tried.
_PATIENCE = 48


@dataclass(frozen=True)
class KnownScoresAttack(Attack):
    """Evidence from every batch, then certified states of as many as its work allows.

    ``most_batches`` are spread evenly over the run. ``nodes`` bounds one search's tree. After
    ``work``, in the units of ``LabelGuess``, no further search begins.
    """

    name = "known-scores"
    reference = "linear estimate of least mean square and integer program on [Tan22] Eq. 3"
    needs = frozenset({Signal.FEATURES, Signal.GRADIENTS})

    most_batches: int = 65_536
    nodes: int = 100
    work: float = 300_000.0

    def _guess(self, view: AliceView, progress: ReportProgress) -> LabelGuess:
        every = gradients(view)
        batches = evenly(every, affordable(every, self.most_batches))
        exact = scattered([seen for seen in batches if scores_exact(view, seen)])
        heard, total = SWEEPS * len(batches), SWEEPS * len(batches) + len(exact)
        odds = gather(view, batches, progress=lambda done, _: progress(done, total))
        notes = ProvenLabels(view.features.rows)
        searched = certified = last = done = unsolved = 0
        work, left_out = 0.0, False

        def recover(seen: GradientSeen) -> Recovered | None:
            # No time limit: after this many searches without a result more would not help.
            over = work >= self.work or searched - last > _PATIENCE
            if over or not notes.may_prove(seen):
                return None
            return recover_states(view, seen, odds, notes.certain, self.nodes)

        for recovered in on_cores(recover, exact):
            done += 1
            progress(heard + done, total)
            if recovered is None:
                left_out |= work >= self.work
                continue
            searched += 1
            work += recovered.work
            unsolved += recovered.failed
            if recovered.certified:
                certified, last = certified + 1, searched
                notes.settle(recovered)
                rows = recovered.seen.rows[recovered.certain]
                odds[rows] = notes.signs[rows] * np.maximum(np.abs(odds[rows]), _SURE)
        heard_of = f"heard {len(batches)} of {len(every)} batches"
        proof = f"searched {searched}, of which {certified} are certified to the last bit"
        open_ends = f"; {unsolved} not solved within the limit" if unsolved else ""
        guessed = "" if view.scores_known else "; scores are estimated, as others have columns"
        remark = f"{heard_of}, {proof}{open_ends}{guessed}"
        return notes.guess(odds, remark, limited=left_out or unsolved > 0, work=work)


def affordable(every: Sequence[GradientSeen], most: int) -> int:
    """Number of batches that can be attacked with reasonable work, at most ``most``."""
    work = max((len(seen.rows) * len(seen.gradient) ** 2 for seen in every), default=1)
    return max(1, min(most, int(_MOST_WORK / work)))


def recover_states(
    view: AliceView,
    seen: GradientSeen,
    odds: FloatArray,
    certain: BoolArray,
    nodes: int,
) -> Recovered:
    """The states of a batch's rows, certified where they are found.

    Alice's scores of the batch must be exact. ``odds`` are log-odds of label 1 for all rows of the
    table, and ``certain`` says where their sign is proven.
    """
    system, likely = System.from_view(view, seen), odds[seen.rows]
    fixed = certain[seen.rows]
    if view.scores_known:
        # Odds from estimated scores may be wrong however large they are.
        fixed = fixed | (np.abs(likely) >= _SURE)
    one, zero = view.residues(seen.rows, seen.weights)
    member = hear(view, seen, likely).member
    search = Search(system, Law.from_view(view), one, zero, likely, member, fixed, nodes)
    states = search.find()
    steps = None if states is None else search.proven(states)
    if states is None or steps is None:
        return Recovered.nothing(seen, search.work, failed=search.unsolved)
    size = int(np.count_nonzero(states))
    proven = Recovered.proven(system, steps, size, search.unique(states))
    return replace(proven, work=search.work)
