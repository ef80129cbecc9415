"""A training as blocks: how good the model is, what the partner adds, at what price."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Protocol

from taciturn.errors import counted
from taciturn.numerics.metrics import Metrics
from taciturn.numerics.symmetry import Symmetry
from taciturn.report.blocks import Block, Facts, Paragraph, Table, Words, table
from taciturn.report.words import data_size, figure, percent, share
from taciturn.report.worth import (
    arrived,
    base_rate,
    divergence,
    ends,
    partner_adds,
    symmetry_blocks,
)
from taciturn.results.runs import R, Runs
from taciturn.results.training import FeatureParty, TrainingRun

MOST_COLUMNS_SHOWN = 15
SHARES = {
    "accuracy": "accuracy",
    "auc": "AUC",
    "pr_auc": "PR-AUC",
    "ks": "KS",
    "balanced_accuracy": "balanced accuracy",
}
LOSSES = {
    "loss": "log loss",
    "brier": "Brier score",
    "calibration_error": "calibration error",
    "calibration_ratio": "observed / expected",
}
OWN = ("accuracy", "auc", "ks", "pr_auc")
MEANING = (
    "Of the held-out rows: the interval, Bob alone (a model of his columns only), and one place "
    "(the same solver in one place, in clear)."
)


def training_blocks(runs: Runs[R]) -> list[Block]:
    """What a training, or the mean of several, came to."""
    return [
        Paragraph(_title(runs), "strong"),
        *_preparation(runs),
        metrics_table(runs),
        *divergence(runs.means.diverged),
        Facts(worth_facts(runs) | training_facts(runs)),
        *symmetry_blocks(_symmetry(runs)),
        *(Paragraph(f"note: {note}", "warning") for note in runs.notes),
    ]


def _symmetry(runs: Runs[R]) -> Symmetry | None:
    tests = [run.symmetry for run in runs.trainings if run.symmetry is not None]
    return max(tests, key=lambda one: one.largest, default=None)


def traffic(to_alice: float, to_bob: float) -> str:
    """What crossed."""
    return f"{data_size(to_alice)} to Alice, {data_size(to_bob)} to Bob"


def metrics_table(runs: Runs[R]) -> Table:
    """The model's figures beside those of Bob's columns alone, and of the same solver in clear."""
    means = runs.means
    parts = (means.train, means.test, means.bob_alone or {}, means.centralised)
    spelled = {key: share for key in SHARES} | {key: figure for key in LOSSES}
    rows = []
    for key, name in (SHARES | LOSSES).items():
        train, test, alone, clear = (spelled[key](part.get(key)) for part in parts)
        rows.append((name, train, test, ends(means.test, key), alone, clear))
    headings = ("", "training", "held-out", "95 % interval", "Bob alone", "one place")
    return table(headings, rows, label="Figures of the model", caption=MEANING)


def worth_facts(runs: Runs[R]) -> dict[str, Words]:
    """Whether the partner's columns are worth it, and whether the training arrived."""
    first, means = runs.first, runs.means
    rows = "held-out rows" if first.rows_test else "training rows"
    changes = [run.last_change for run in runs.trainings if run.last_change is not None]
    change = max(changes, key=abs) if changes else None
    steps = "epoch" if first.passes is None else "pass"
    facts = {
        "base rate": base_rate(means.test.get("base_rate"), rows),
        "the partner adds": partner_adds(means.partner_adds),
        "converged": arrived(means.converged, change, steps, first.converged_reason),
    }
    return {name: words for name, words in facts.items() if words}


def own_metrics(parts: dict[str, Metrics | None]) -> Table:
    """A few figures of a model for each set of rows that has them."""
    rows = [
        (name, *(share(getattr(part, key)) for key in OWN), figure(part.loss))
        for name, part in parts.items()
        if part is not None
    ]
    headings = ("", *(SHARES[key] for key in OWN), "log loss")
    return table(headings, rows, label="Figures of the model")


def distance(runs: Runs[R]) -> str:
    """How far the weights are from those of the same solver in one place, in clear."""
    means = runs.means
    if means.max_weight_difference is None:
        return "not computed (compare-optimum)"
    bound = (
        "no bound is known here"
        if means.weight_bound is None
        else f"rounding bounds it by {means.weight_bound:.1e}"
    )
    return f"{means.max_weight_difference:.2e} in the weight that differs most ({bound})"


def training_facts(runs: Runs[R]) -> dict[str, Words]:
    """The lines below the metrics; of several runs the first's, where they differ."""
    first, means = runs.first, runs.means
    iterations, scope = runs.shared(lambda run: run.training.iterations)
    return {
        **parties_facts(first.parties),
        "training": f"{_solver(first)}, {_steps(first, iterations)}{whose(scope)}, "
        f"{means.seconds:.1f} s",
        "distance to one place": distance(runs),
        **_optimum(runs),
        "randomness": randomness(runs),
        "protection": _protection(runs),
        **_released_model(runs),
        **_sigmoid(runs),
        **_hidden_batches(runs),
        "encryption": _encryption(runs),
        "traffic": traffic(means.bytes_to_alice, means.bytes_to_bob),
        **_privacy(runs),
    }


def _solver(run: TrainingRun) -> str:
    if run.learning_rate is None:
        return f"newton on all rows, L2 penalty {run.l2:.3g}"
    epochs = counted(run.epochs or 0, "epoch")
    return f"{epochs}, batches of {run.batch_size}, learning rate {run.learning_rate:g}"


def _steps(run: TrainingRun, iterations: int) -> str:
    if run.passes is None:
        return counted(iterations, "iteration")
    return "1 pass" if iterations == 1 else f"{iterations} passes"


def _optimum(runs: Runs[R]) -> dict[str, Words]:
    gaps = [run.training.optimum for run in runs.runs]
    known = [gap for gap in gaps if gap is not None]
    if not known:
        return {}
    worst = max(known, key=lambda optimum: optimum.gap)
    return {
        "distance to the optimum": f"{worst.gap:.1e} above a penalised log loss of "
        f"{worst.loss:.5f} on the training rows"
    }


def randomness(runs: Runs[R]) -> str:
    """Where the coins came from."""
    seed = runs.first.seed
    if len(runs.runs) > 1 and seed is not None:
        return f"seeds {seed} to {seed + len(runs.runs) - 1}: repeatable simulations"
    if seed is None:
        return "from the operating system"
    return f"seed {seed}: a repeatable simulation"


def whose(scope: str) -> str:
    """Which of several runs something is of, in brackets."""
    return f" ({scope})" if scope else ""


def _title(runs: Runs[R]) -> str:
    first = runs.first
    seeds = f", mean of {len(runs.runs)} seeds" if len(runs.runs) > 1 else ""
    return (
        f"{first.dataset}: {first.rows_train:,} + {first.rows_test:,} rows, "
        f"{at_alice(first)}, {first.bob_columns} at Bob{seeds}"
    )


class DividedColumns(Protocol):
    """Whatever says how many columns Alice has, or several Alices have together."""

    @property
    def alice_columns(self) -> int:
        """Those of all Alices."""

    @property
    def parties(self) -> Sequence[FeatureParty] | None:
        """The Alices, where there are several."""


def at_alice(run: DividedColumns) -> str:
    """Alice's columns, or those of all Alices."""
    alices = "Alice" if run.parties is None else f"{len(run.parties)} Alices"
    return f"{counted(run.alice_columns, 'column')} at {alices}"


def parties_facts(parties: Sequence[FeatureParty] | None) -> dict[str, str]:
    """Who has how many columns, of several Alices; nothing where there is one."""
    shares = [f"{party.name} {counted(party.columns, 'column')}" for party in parties or ()]
    return {"parties": ", ".join(shares)} if shares else {}


def _preparation(runs: Runs[R]) -> list[Block]:
    lines, scope = runs.shared(lambda run: run.training.preparation)
    if len(lines) > MOST_COLUMNS_SHOWN:
        return [Paragraph(f"{len(lines)} source columns prepared; --json lists how", "muted")]
    return [Paragraph(f"{line}{whose(scope)}", "muted") for line in lines]


def _protection(runs: Runs[R]) -> str:
    first = runs.first
    given = {"epsilon": first.epsilon, "b1": first.b1, "b2": first.b2, "budget": first.budget}
    parts = (
        f"{first.mechanism} {first.variant or ''}".rstrip(),
        *(f"{name} {value:g}" for name, value in given.items() if value is not None),
        f"{first.noise} noise" if first.noise else "",
        "Bob updates with true residues" if first.bob_update == "true" else "",
    )
    return ", ".join(filter(None, parts))


def _released_model(runs: Runs[R]) -> dict[str, str]:
    """The noise of a model that was told; the same in all runs."""
    release = None if runs.first.sealed is None else runs.first.sealed.model_release
    if release is None:
        return {}
    return {
        "model told": f"epsilon {release.epsilon:g}, delta {release.delta:g}: noise of "
        f"{release.noise:.3g} on each whitened weight; a label moves all of them by "
        f"{release.sensitivity:.3g} at most, in {counted(release.steps, 'step')}"
    }


def _sigmoid(runs: Runs[R]) -> dict[str, str]:
    """How the sigmoid of a shared score was computed; the same in all runs."""
    shared = None if runs.first.sealed is None else runs.first.sealed.shared_scores
    if shared is None:
        return {}
    return {
        "sigmoid": f"{counted(shared.waves, 'wave')}: off by at most {shared.error_bound:.1e} for "
        f"scores within {shared.score_range:g}, and {shared.rounding:.0e} by rounding"
    }


def _encryption(runs: Runs[R]) -> str:
    first = runs.first
    if first.noise:
        return "none: residues travel in clear, with noise"
    hidden = f", {first.key_bits} bits" if first.encrypted else " (hides nothing)"
    return f"{first.scheme}{hidden}"


def _hidden_batches(runs: Runs[R]) -> dict[str, str]:
    batches, scope = runs.shared(lambda run: run.training.hidden_batches)
    if batches is None:
        return {}
    return {
        "hidden batches": f"{batches.mean_batch:.1f} of {batches.l_rr:.1f} scored rows of a subset "
        f"of {batches.subset_size}; {batches.redraws} draws too short and redrawn "
        f"(expected {percent(batches.rejected, 1)} %){whose(scope)}"
    }


def _privacy(runs: Runs[R]) -> dict[str, str]:
    ledger, scope = runs.shared(lambda run: run.training.ledger)
    facts = {
        "privacy of a label": f"{label_epsilon(ledger.label_epsilon_total)} after "
        f"{counted(ledger.releases_per_row, 'release')} per row: {ledger.assumption}{whose(scope)}"
    }
    if math.isfinite(ledger.label_epsilon_per_release):
        facts |= {
            "one release": f"epsilon {ledger.label_epsilon_per_release:.4g} for the label, "
            f"{ledger.residue_epsilon_per_release:.4g} for the residue; "
            f"claimed {ledger.claimed_epsilon_per_release:g}",
            "at delta": f"{label_epsilon(ledger.label_epsilon_total_delta)} in all with delta "
            f"{ledger.delta:g}",
        }
    stopped, scope = runs.shared(lambda run: run.training.stopped)
    if stopped:
        facts["stopped"] = f"{stopped} after {runs.first.iterations:,} iterations{whose(scope)}"
    return facts


def label_epsilon(value: float) -> str:
    """An epsilon in a sentence.

    >>> label_epsilon(math.inf), label_epsilon(0.5)
    ('epsilon is infinite', 'epsilon 0.5')
    """
    return "epsilon is infinite" if math.isinf(value) else f"epsilon {value:.4g}"
