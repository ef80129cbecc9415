"""``label-rr`` against ``add`` at the same *total* label epsilon, and why its loss is corrected.

``add`` pays for every epoch: at a total t over E epochs each release has the label epsilon t/E,
that is noise ``Lap(E/t)``. ``label-rr`` pays once. Both are given the best of a small grid of
epochs and learning rates (``add`` once more with the dataset's usual epochs), chosen by the mean
AUC on validation rows that are cut from the training rows. They are then trained on all of these
with fresh seeds of noise and batches and judged on the test rows. (In life that choice uses labels
and would be a release of its own; here it is the same favour to both.)

*Told* is what the best guess gets right of labels that are fair coins. For ``add`` that is the
likelihood ratio of all releases, which no test of the label beats [NeymanPearson33]; it does not
depend on the scores, since the label moves the residue by 1 at each. For ``label-rr`` it is the
flipped labels themselves, of which everything else is computed. ``ceiling`` is what the epsilon
allows at most, ``e^t / (1 + e^t)``.

Beside it the debiased loss, whose weights run away, and the forward-corrected one, whose do not.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import product
from statistics import fmean
from typing import cast

import numpy as np
from scipy.special import expit

from taciturn.arrays import ByteLabels, FloatArray
from taciturn.data.label_table import LabelTable
from taciturn.numerics.label_noise import corrected_residue
from taciturn.numerics.logistic import gradient
from taciturn.numerics.metrics import Metrics, evaluate
from taciturn.privacy.additive import Additive
from taciturn.privacy.base import ResidueMechanism
from taciturn.privacy.label_response import FlippedLabels
from taciturn.privacy.noise import LaplaceDraws, draw
from taciturn.privacy.registry import mechanism
from taciturn.protocol.agree import agree
from taciturn.protocol.terms import Terms
from taciturn.rng import KeyedEntropy
from taciturn_audit.exact_intervals import t_interval
from taciturn_paper.cleartext import train_with_gradients, train_with_noise
from taciturn_paper.datasets import NAMES
from taciturn_paper.debiased_loss import corrected_loss, debiased_loss, debiased_residue
from taciturn_paper.tasks import Record, Request, available
from taciturn_paper.utility import Part, Rows, noiseless

TOTALS = (0.1, 1.0, 10.0)
EPOCHS, RATES = (1, 3, 10), (0.1, 1.0, 10.0)
QUICK_EPOCHS, QUICK_RATES = (1, 10), (1.0,)
# Whether the search may choose the epochs, or the dataset's usual ones are taken.
CONTENDERS = (("add", True), ("add", False), ("label-rr", True))
# Small tables vary more from seed to seed, and their trainings take less.
SMALL_ROWS = 5_000
SMALL_SEEDS, LARGE_SEEDS, QUICK_SEEDS = 20, 5, 4
SMALL_CHOICES, LARGE_CHOICES = 10, 1
TOLD_ROWS = 20_000
RUNAWAY_EPSILONS, RUNAWAY_EPOCHS, QUICK_RUNAWAY_EPOCHS = (0.1, 1.0), (10, 100, 1000), (10, 100)


@dataclass(frozen=True, slots=True)
class _Data:
    """A dataset, split by the seed, and how much is to be done with it."""

    rows: Rows
    quick: bool

    @property
    def seeds(self) -> int:
        if self.quick:
            return QUICK_SEEDS
        return SMALL_SEEDS if len(self.rows.train.labels) < SMALL_ROWS else LARGE_SEEDS

    @property
    def choices(self) -> int:
        return LARGE_CHOICES if len(self.rows.train.labels) >= SMALL_ROWS else SMALL_CHOICES


def run(request: Request) -> Record:
    """Both mechanisms on every dataset that is here; breast-cancer alone in a quick run."""
    quick, seed = request.quick, request.seed
    here, missing = available(["breast-cancer"] if quick else NAMES)
    rows: list[Record] = []
    references: list[Record] = []
    plan = list(product(TOTALS, CONTENDERS))
    for dataset, raw in here.items():
        data = _Data(Rows.load(dataset, seed, raw), quick)
        metrics = noiseless(data.rows)
        figures = {"accuracy": metrics.accuracy, "auc": metrics.auc}
        common = data.rows.test.commoner_label
        references.append({"dataset": dataset, **figures, "commoner_label": common})
        for total, (name, free) in plan:
            request.announce(f"{dataset}: {name} at a total of {total:g}")
            request.progress(len(rows), len(here) * len(plan))
            rows.append({"dataset": dataset, **_row(data, name, total, free)})
    request.announce("the debiased loss beside the corrected one")
    return {
        "seed": seed,
        "quick": quick,
        "rows": rows,
        "references": references,
        "missing": missing,
        "runaway": runaway(seed=seed, quick=quick),
    }


def _row(data: _Data, name: str, total: float, free: bool) -> Record:
    (epochs, rate), validation = _best(data, name, total, free)
    metrics = [
        _outcome(data, name, total, epochs, rate, data.rows.train, data.rows.test, 1000 + number)
        for number in range(data.seeds)
    ]
    accuracies = [
        _guess_accuracy(data, name, total, epochs, 1000 + number) for number in range(data.seeds)
    ]
    return {
        "mechanism": name,
        "epochs_chosen": free,
        "label_epsilon_total": total,
        "epsilon": _epsilon(name, total, epochs),
        "epochs": epochs,
        "learning_rate": rate,
        "validation_auc": validation,
        "seeds": data.seeds,
        **_mean("accuracy", [score.accuracy for score in metrics]),
        **_mean("auc", [score.auc for score in metrics]),
        **_mean("told", accuracies),
        "ceiling": float(expit(total)),
    }


def _mean(name: str, values: list[float]) -> Record:
    low, high = t_interval(values)
    ends = {f"{name}_low": max(0.0, low), f"{name}_high": min(1.0, high)}
    return {name: fmean(values), **ends}


def _best(data: _Data, name: str, total: float, free: bool) -> tuple[tuple[int, float], float]:
    """The epochs and the rate with the highest mean AUC on the validation rows."""
    usual = data.rows.settings.learning_rate or 0.1
    epochs: tuple[int, ...] = QUICK_EPOCHS if data.quick else EPOCHS
    if not free:
        epochs = (data.rows.settings.epochs or 10,)
    factors = QUICK_RATES if data.quick else RATES
    candidates = [(count, usual * factor) for count, factor in product(epochs, factors)]

    def validation(epochs: int, rate: float) -> float:
        return fmean(
            _outcome(data, name, total, epochs, rate, data.rows.fit, data.rows.choose, number).auc
            for number in range(data.choices)
        )

    return max(
        ((candidate, validation(*candidate)) for candidate in candidates), key=lambda pair: pair[1]
    )


def _epsilon(name: str, total: float, epochs: int) -> float:
    """Parameter at which the epochs cost a label ``total``; add's is a residue's: double."""
    return total if name == "label-rr" else 2 * total / epochs


def _terms(data: _Data, name: str, total: float, epochs: int, rate: float, fit: Part) -> Terms:
    wanted = {
        "mechanism": name,
        "epsilon": _epsilon(name, total, epochs),
        "epochs": epochs,
        "learning_rate": rate,
        "scheme": "clear",
    }
    return agree(data.rows.settings.model_copy(update=wanted), *fit.shape)


def _outcome(
    data: _Data,
    name: str,
    total: float,
    epochs: int,
    rate: float,
    fit: Part,
    on: Part,
    number: int,
) -> Metrics:
    terms = _terms(data, name, total, epochs, rate, fit)
    method = mechanism(terms.agreement)
    bob = KeyedEntropy.from_seed(number).fork("bob")
    plan = terms.plan(bob.fork("batches").token(32), len(fit.labels))
    if isinstance(method, FlippedLabels):
        entropy = bob.fork("label response")
        released = method.respond(LabelTable.from_data(fit.labels), entropy).values
        weights = train_with_gradients(fit.features, released, plan, terms, method)
    else:
        noisy = cast(ResidueMechanism[LaplaceDraws], method)
        weights = train_with_noise(fit.features, fit.labels, plan, terms, noisy, bob)
    return evaluate(on.features @ weights, on.labels)


def _guess_accuracy(data: _Data, name: str, total: float, epochs: int, number: int) -> float:
    """Share of random labels that the best guess recovers."""
    rows = min(TOLD_ROWS, len(data.rows.train.labels))
    entropy = KeyedEntropy.from_seed(number).fork("told")
    labels = LabelTable.from_data(np.zeros(rows, np.int8)).with_random_labels(
        entropy.fork("labels")
    )
    method = mechanism(_terms(data, name, total, epochs, 0.1, data.rows.train).agreement)
    if isinstance(method, FlippedLabels):
        released = method.respond(labels, entropy.fork("label response"))
        return float((released.values == labels.values).mean())
    return _guess_accuracy_under_noise(cast(Additive, method), labels, epochs, entropy)


def _guess_accuracy_under_noise(
    method: ResidueMechanism[LaplaceDraws], labels: LabelTable, epochs: int, entropy: KeyedEntropy
) -> float:
    """The same for noisy residues: the likelier label over all epochs, half right at a tie."""
    unit = 1 << 20
    secret = labels.values.astype(np.int64) * unit - unit // 2
    ratio = np.zeros(labels.rows)
    for epoch in range(epochs):
        seen = method.release(secret, draw(labels.rows, entropy.fork(f"epoch {epoch}"))).value
        one, zero = (np.full(labels.rows, place) for place in (unit // 2, -(unit // 2)))
        ratio += method.log_probability(seen, one) - method.log_probability(seen, zero)
    right = np.where(ratio == 0, 0.5, (ratio > 0) == (labels.values == 1))
    return float(right.mean())


LOSSES = {
    "debiased": (debiased_residue, debiased_loss),
    "corrected": (corrected_residue, corrected_loss),
}


def runaway(*, seed: int = 0, quick: bool = False) -> list[Record]:
    """Both losses on the same flipped labels of breast-cancer, after more and more epochs.

    The corrected residue is at most ``tanh(eps/4)`` in size; it is trained with the usual rate
    divided by that, so that its largest step is the ordinary residue's.
    """
    data = _Data(Rows.load("breast-cancer", seed), quick)
    rows = []
    for epsilon in RUNAWAY_EPSILONS:
        terms = _terms(data, "label-rr", epsilon, 1, 0.1, data.rows.train)
        method = cast(FlippedLabels, mechanism(terms.agreement))
        entropy = KeyedEntropy.from_seed(seed).fork("runaway")
        flipped = method.respond(
            LabelTable.from_data(data.rows.train.labels), entropy.fork("flips")
        ).values
        for name in LOSSES:
            for epochs, weights in _followed(data, flipped, name, epsilon, entropy, quick):
                scores = data.rows.train.features @ weights
                metrics = evaluate(data.rows.test.features @ weights, data.rows.test.labels)
                rows.append(
                    {
                        "loss_name": name,
                        "epsilon": epsilon,
                        "epochs": epochs,
                        "largest_weight": float(np.abs(weights).max()),
                        "loss": LOSSES[name][1](scores, flipped, epsilon),
                        "accuracy": metrics.accuracy,
                        "auc": metrics.auc,
                    }
                )
    return rows


def _followed(
    data: _Data, flipped: ByteLabels, name: str, epsilon: float, entropy: KeyedEntropy, quick: bool
) -> Iterator[tuple[int, FloatArray]]:
    """The weights after some numbers of epochs."""
    stops = QUICK_RUNAWAY_EPOCHS if quick else RUNAWAY_EPOCHS
    usual = data.rows.settings.learning_rate or 0.1
    rate = usual / np.tanh(epsilon / 4) if name == "corrected" else usual
    terms = _terms(data, "label-rr", epsilon, stops[-1], usual, data.rows.train)
    weights = np.zeros(data.rows.train.features.shape[1])
    per_epoch = terms.per_epoch(len(flipped))
    for batch in terms.plan(entropy.fork("batches").token(32), len(flipped)):
        rows = data.rows.train.features.take(batch.rows, axis=0)
        residues = LOSSES[name][0](rows @ weights, flipped[batch.rows], epsilon)
        weights = weights - rate * gradient(rows, residues)
        done, left = divmod(batch.iteration + 1, per_epoch)
        if not left and done in stops:
            yield done, weights
