"""Does ``mult`` learn? Each variant at its best, chosen on held-out rows, judged on others.

The training rows are cut once more into a part to fit and a part to choose on. Every (b1, b2,
learning rate) of a grid is trained on the first with several noise seeds, and the one with the
highest mean AUC on the second is taken. It is then trained on all training rows with fresh noise
seeds and judged on the test rows, which nothing was chosen on. Averaging over noise seeds matters:
a training that does not learn ends at a random direction, whose AUC may be far from one half on
either side, and choosing the best of many *runs* would find a lucky one.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import product
from statistics import fmean

from taciturn.numerics.metrics import Metrics, evaluate
from taciturn.privacy.registry import mechanism
from taciturn.protocol.agree import agree
from taciturn.results.serialise import record_of
from taciturn.rng import KeyedEntropy
from taciturn_audit.exact_intervals import t_interval
from taciturn_paper.cleartext import train_with_noise
from taciturn_paper.tasks import Record, Request
from taciturn_paper.utility import VARIANTS, Part, Rows, noiseless

GRID = {"b1": (2.0**-6, 0.1, 0.5, 1.0), "b2": (0.01, 0.1, 1.0, 10.0, 100.0)}
RATES = (1.0, 0.1, 10.0)
QUICK_GRID = {"b1": (0.1, 0.5), "b2": (1.0, 10.0)}
CHOOSING_SEEDS, JUDGING_SEEDS = 5, 30


def run(request: Request, dataset: str = "sklearn-digits", epsilon: float = 10.0) -> Record:
    """Best figures of each variant, with the noiseless model and the majority label."""
    rows = Rows.load(dataset, request.seed)
    search = _Search(rows, epsilon, request.quick)
    judged = []
    for variant in VARIANTS:
        request.announce(f"mult {variant} on {dataset}")
        judged.append(search.best(variant))
    return {
        "dataset": dataset,
        "seed": request.seed,
        "epsilon": epsilon,
        "judging_seeds": search.judging,
        "commoner_label": rows.test.commoner_label,
        "centralised": record_of(noiseless(rows)),
        "rows": judged,
    }


@dataclass(frozen=True, slots=True)
class _Search:
    rows: Rows
    epsilon: float
    quick: bool

    @property
    def judging(self) -> int:
        return 4 if self.quick else JUDGING_SEEDS

    def best(self, variant: str) -> Record:
        """The variant's best configuration, evaluated on the test rows.

        ``learns`` says whether the whole 95 % interval of its mean test AUC lies above one half.
        """
        grid = QUICK_GRID if self.quick else GRID
        factors = RATES[:1] if self.quick else RATES
        usual = self.rows.settings.learning_rate or 0.1
        candidates = [
            (b1, b2, usual * factor) for b1, b2, factor in product(*grid.values(), factors)
        ]
        chosen, validation = max(
            ((candidate, self._validation(variant, *candidate)) for candidate in candidates),
            key=lambda pair: pair[1],
        )
        metrics = [
            self._outcome(variant, *chosen, self.rows.train, self.rows.test, 1000 + number)
            for number in range(self.judging)
        ]
        accuracies, areas = [score.accuracy for score in metrics], [score.auc for score in metrics]
        (acc_low, acc_high), (low, high) = t_interval(accuracies), t_interval(areas)
        b1, b2, rate = chosen
        return {
            "variant": variant,
            "epsilon": self.epsilon,
            "b1": b1,
            "b2": b2,
            "learning_rate": rate,
            "configurations": len(candidates),
            "validation_auc": validation,
            "accuracy": fmean(accuracies),
            "accuracy_low": acc_low,
            "accuracy_high": acc_high,
            "auc": fmean(areas),
            "auc_low": low,
            "auc_high": high,
            "learns": low > 0.5,
        }

    def _validation(self, variant: str, b1: float, b2: float, rate: float) -> float:
        return fmean(
            self._outcome(variant, b1, b2, rate, self.rows.fit, self.rows.choose, number).auc
            for number in range(CHOOSING_SEEDS)
        )

    def _outcome(
        self, variant: str, b1: float, b2: float, rate: float, fit: Part, on: Part, number: int
    ) -> Metrics:
        wanted = {
            "mechanism": "mult",
            "variant": variant,
            "epsilon": self.epsilon,
            "b1": b1,
            "b2": b2,
            "learning_rate": rate,
        }
        terms = agree(self.rows.settings.model_copy(update=wanted), *fit.shape)
        bob = KeyedEntropy.from_seed(number).fork("bob")
        plan = terms.plan(bob.fork("batches").token(32), len(fit.labels))
        weights = train_with_noise(
            fit.features,
            fit.labels,
            plan,
            terms,
            mechanism(terms.agreement),  # type: ignore[arg-type]  # mult releases residues
            bob,
        )
        return evaluate(on.features @ weights, on.labels)
