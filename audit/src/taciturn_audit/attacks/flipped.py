"""What a guess at *flipped* labels is worth as a guess at the true ones.

Under ``label-rr`` and its like the equations speak of labels that were flipped at random before
anything else was done with them. An attack may recover each of them, with a proof; the true label
is the same with probability ``e^eps / (1 + e^eps)``, and no computation improves on that. The guess
stays as it is, but it is no longer certain.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from taciturn_audit.attacks.base import LabelGuess
from taciturn_audit.views.alice_view import AliceView


def about_labels(guess: LabelGuess, view: AliceView) -> LabelGuess:
    """The guess as one at the true labels: certain of none, where labels were flipped."""
    flips = view.mechanism.label_flips
    if flips is None:
        return guess
    sure = int(np.count_nonzero(guess.certain))
    proven = f"{sure} flipped labels proven" if sure else "flipped labels guessed"
    worth = f"{proven}: such a label is the true one with probability {flips.keep:.4f}"
    remark = f"{guess.remark}; {worth}" if guess.remark else worth
    return replace(guess, certain=np.zeros(len(guess.certain), dtype=bool), remark=remark)
