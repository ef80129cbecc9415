"""Release of the model's quality to Alice, if agreed (``share-metrics``), in whole per cent.

Bob tells the accuracy on the held-out rows, at a score of 0, and the AUC. Both depend on labels: on
those of the held-out rows, and through the model on those of the training rows. As they are, they
cost infinity. What they can tell is little all the same: of 101 accuracies and 102 AUCs (one of
them "a class is absent") one pair is released, which is less than 13.4 bits about all labels
together.

With ``metrics-epsilon`` the accuracy alone is released, with discrete Laplace noise. It is the
count of right rows, which one held-out label moves by 1, so that noise of scale ``1/epsilon`` on
the count makes it epsilon-private; rounding to per cent and cutting at 0 and 100 only forget. One
training label can move the count by any number of rows, through the model: so this is for a model
which is itself made of nothing but what was paid for (``PaidModel``), where training
labels pay nothing more. The AUC has no such simple bound: one label moves it by up to one divided
by the rows of the rarer class, whose number is itself a secret.

**Guarantee.** With an epsilon, the release is epsilon-private in each held-out label, and costs
training labels nothing. The ledger charges it to every row, which is no less than the truth.

**Assumes.** The number of held-out rows is public. Alice's scores of the held-out rows do not
depend on their labels.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field

import numpy as np

from taciturn.arrays import FloatArray, IntArray, LabelArray
from taciturn.numerics.metrics import auc
from taciturn.privacy import noise
from taciturn.privacy.base import Released
from taciturn.privacy.events import NoisyAccuracy, NonPrivate
from taciturn.rng import Entropy

STEPS = 100
"""The released value is a multiple of one divided by this."""

NO_AUC = -1
"""In place of an AUC where one class is absent."""

TOLD = "no protection: how good the model is depends on labels, and Bob tells it to Alice"
"""What the ledger says without an epsilon."""


@dataclass(frozen=True, slots=True)
class ToldQuality:
    """Quality of the model on the held-out rows, as Bob reports it to Alice.

    ``auc`` is None where a class is absent, and where an epsilon is agreed on.
    """

    rows: int
    accuracy: float
    auc: float | None
    epsilon: float | None = field(default=None)


def release_event(epsilon: float | None) -> NoisyAccuracy | NonPrivate:
    """Event of telling the quality, with this epsilon or without one."""
    return NonPrivate() if epsilon is None else NoisyAccuracy(epsilon)


def release(
    scores: FloatArray, labels: LabelArray, epsilon: float | None, entropy: Entropy
) -> Released[IntArray]:
    """Accuracy, and without epsilon the AUC, in steps; ``entropy`` is for this purpose alone."""
    # NaN becomes 0: a model that diverged is reported with its true quality.
    known = np.nan_to_num(scores)
    right = int(np.count_nonzero((known > 0) == (labels == 1)))
    if epsilon is None:
        area = auc(known, labels)
        steps = [_steps(right, len(labels)), NO_AUC if math.isnan(area) else round(STEPS * area)]
    else:
        right += int(noise.draw(1, entropy).noise(noise.divisor(1.0 / epsilon))[0])
        steps = [_steps(right, len(labels))]
    return Released(np.array(steps), release_event(epsilon))


def told_quality(steps: IntArray, rows: int, epsilon: float | None) -> ToldQuality | None:
    """The quality that Alice reads; None where the message is not what was agreed."""
    numbers = steps.tolist()
    least = (0, NO_AUC) if epsilon is None else (0,)
    if len(numbers) != len(least):
        return None
    if any(not low <= number <= STEPS for low, number in zip(least, numbers, strict=True)):
        return None
    area = None if epsilon is not None or numbers[1] == NO_AUC else numbers[1] / STEPS
    return ToldQuality(rows, numbers[0] / STEPS, area, epsilon)


def _steps(right: int, rows: int) -> int:
    """The nearest step to a fraction, in integers, clipped to the possible range."""
    return min(max((2 * STEPS * right + rows) // (2 * rows), 0), STEPS)
