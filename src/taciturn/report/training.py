"""A training as blocks: quality of the model, cost, and what each side receives."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Mapping, Sequence

from taciturn.errors import counted
from taciturn.families.registry import BINOMIAL, FAMILIES
from taciturn.numerics.convergence import MOST_ROW_CHANGE, RESTS, SEEN_ONCE, Convergence
from taciturn.numerics.label_metrics import Added, ModelMetrics
from taciturn.numerics.regression_metrics import AddedDeviance, RegressionMetrics
from taciturn.numerics.symmetry import Symmetry
from taciturn.numerics.threshold import COST, GIVEN, YOUDEN, Threshold
from taciturn.privacy.events import ExposedColumns, Statement
from taciturn.privacy.openings import bits_text
from taciturn.privacy.row_noise import SumKind, row_noise
from taciturn.report.blocks import (
    NO_BREAK,
    Block,
    Facts,
    Heading,
    Paragraph,
    Span,
    Table,
    Words,
    table,
)
from taciturn.report.formatting import data_size, figure, interval, percent, share
from taciturn.results.cost_preview import AskedConsent, ColumnExposure, Disclosure, Outlook
from taciturn.results.runs import R, Runs
from taciturn.results.training import DataFacts, FeatureParty, TrainingRun
from taciturn.settings.schema import Newton

DIVERGED = (
    "The training diverged: its loss is beyond that of no model at all, and the model is "
    "worthless. Scale or clip the columns, lower the learning rate, or use newton."
)
_SYMMETRIC = "Symmetry check passed: no sign that Alice changed her table between passes."
_ASYMMETRIC = (
    "The symmetry check failed: the scores of the passes do not come from one table (largest "
    "difference: {largest:,} units). Alice answered differently for some rows or in some passes, "
    "or a computation on her side was wrong. Do not use this model. Keep the outcome from Alice: "
    "it depends on labels, so to tell her is a release. docs/threat_model.md says what you may do."
)
_SHARES = ("accuracy", "auc", "pr_auc", "ks")


def symmetry_blocks(symmetry: Symmetry | None) -> list[Block]:
    """Result of Bob's symmetry test of the scores, in one paragraph; empty if there is none."""
    if symmetry is None:
        return []
    if symmetry.passed:
        return [Paragraph(_SYMMETRIC, "muted")]
    return [Paragraph(_ASYMMETRIC.format(largest=symmetry.largest), "warning")]


def ends(figures: Mapping[str, float | None], key: str) -> str:
    r"""The 95 % interval of a figure; nothing where it has none.

    >>> ends({"auc_low": 0.7, "auc_high": 0.75}, "auc"), ends({}, "brier")
    ('70.00\xa0– 75.00\xa0%', '')
    """
    low, high = figures.get(f"{key}_low"), figures.get(f"{key}_high")
    if low is None or high is None or math.isnan(low) or math.isnan(high):
        return ""
    return interval(low, high) if key in _SHARES else f"{figure(low)}{NO_BREAK}– {figure(high)}"


def base_rate(rate: float | None, rows: str) -> str:
    """Share of label 1, and the accuracy of the commoner label; empty if not known.

    >>> base_rate(0.05, "held-out rows").replace(NO_BREAK, " ")
    '5.00 % of the held-out rows have label 1; always predicting 0 is right for 95.00 %'
    """
    if rate is None or math.isnan(rate):
        return ""
    return (
        f"{share(rate)} of the {rows} have label 1; always predicting {int(rate > 0.5)} is right "
        f"for {share(max(rate, 1 - rate))}"
    )


def partner_adds(added: Added | None) -> str:
    """AUC or deviance explained that the partner's columns add, in points, with its interval.

    Empty if not known.

    >>> from taciturn.numerics.metrics import AddedAuc
    >>> partner_adds(AddedAuc(0.04, 0.03, 0.05)).replace(NO_BREAK, " ")
    '+4.00 points of AUC (95 % interval +3.00 to +5.00)'
    >>> partner_adds(AddedAuc(0.001, -0.01, 0.012)).partition(": ")[2]
    'not statistically significant on these rows'
    """
    if added is None:
        return ""
    explained = isinstance(added, AddedDeviance)
    value = added.explained if isinstance(added, AddedDeviance) else added.auc
    if math.isnan(value):
        return ""
    words = f"{_points(value)} points of {'deviance explained' if explained else 'AUC'}"
    if not math.isnan(added.low):
        words += f" (95{NO_BREAK}% interval {_points(added.low)} to {_points(added.high)})"
    if added.high < 0:
        return f"{words}: the joint model is worse than Bob's columns alone"
    return words if added.low > 0 else f"{words}: not statistically significant on these rows"


def convergence_text(
    found: Convergence,
    steps: str,
    row_gap: float | None = None,
    *,
    beyond: int | None = None,
    ranged: bool = False,
) -> str:
    """The verdict on convergence, without a last change by the distance to the optimum.

    ``row_gap`` is the largest distance of a row's probability to that of the optimum. ``ranged`` is
    whether scores have a range that is agreed on, and ``beyond`` how many lie beyond it.

    >>> convergence_text(Convergence(True, False, 2e-6), "pass")
    'yes: the training loss changed by 2.0e-06 in the last pass'
    >>> convergence_text(Convergence(True), "pass")
    'yes: the training loss is at its optimum'
    >>> convergence_text(Convergence(reason="nobody saw it"), "epoch")
    'not known: nobody saw it'
    """
    converged, last_change, row_change = found.converged, found.last_change, found.row_change
    if converged is None:
        return f"not known: {found.reason or SEEN_ONCE}"
    if last_change is None:
        loss = f"is {'at' if converged else 'above'} its optimum"
    else:
        still = "" if converged else "still "
        loss = f"{still}changed by {abs(last_change):.1e} in the last {steps}"
    if converged:
        return f"yes: the training loss {loss}"
    longer = "Train for more passes."
    if row_gap is not None and row_gap > MOST_ROW_CHANGE:
        return f"no: the probability of a training row is {row_gap:.2f} off. {longer}"
    if row_gap is None and row_change is not None and row_change > MOST_ROW_CHANGE:
        row = f"the probability of a training row still changed by {row_change:.2f}"
        return f"no: {row} in one of the last two passes. {longer}"
    advice = remedy(last_change, steps, beyond, ranged=ranged)
    return f"no: the training loss {loss}. {advice}"


def remedy(
    last_change: float | None, steps: str, beyond: int | None = None, *, ranged: bool = False
) -> str:
    """What to change for a training that has not converged, by the cause.

    More passes do not help where scores wrap, nor where the loss rests above its optimum: there
    the scales of the columns are too far apart.

    >>> remedy(0.01, "pass"), remedy(0.0, "pass", ranged=True)
    ('Train for more passes.', 'Scale or clip the columns, or use a wider score range.')
    """
    if steps == "epoch":
        return "Train for more epochs, or use newton."
    rests = last_change is not None and abs(last_change) <= RESTS
    if beyond or (ranged and rests):
        return "Scale or clip the columns, or use a wider score range."
    if rests or (ranged and last_change is None):
        return "Scale or clip the columns, or train for more passes."
    return "Train for more passes."


def has_score_range(run: TrainingRun) -> bool:
    """Whether scores wrap beyond a range that is agreed on."""
    return run.sealed is not None and run.sealed.shared_scores is not None


def convergence_warning(run: TrainingRun) -> str | None:
    """Warning for a person who relies on the model; None if there is no reason.

    The same for all mechanisms and families that train whole tables. What has diverged is refused
    with an error of its own.
    """
    wraps = 0 if run.sealed is None else run.sealed.suspected_wraps
    if run.scores_beyond_range:
        return (
            f"at least {counted(run.scores_beyond_range, 'score')} may lie beyond the score range "
            "and may have wrapped: the model may be worthless. "
            f"{remedy(None, 'pass', run.scores_beyond_range)}"
        )
    if run.sealed is not None and wraps:
        return (
            f"{counted(wraps, 'score')} came near the largest that {run.agreement.mechanism} can "
            f"hold ({run.sealed.score_bound:g}) and may have wrapped: the model may be worthless. "
            "Scale or clip the columns."
        )
    # A training by batches has few epochs by choice, and noise costs more with each pass.
    released = run.sealed is not None and run.sealed.model_release is not None
    if run.convergence.converged is not False or run.by_batches or released:
        return None
    changed = run.convergence.row_change
    moves = changed is not None and changed > MOST_ROW_CHANGE
    change = math.inf if moves else run.convergence.last_change
    advice = remedy(change, "pass", ranged=has_score_range(run))
    return f"the training has not converged. {advice}"


def beyond_blocks(scores: int | None) -> list[Block]:
    """Warning that scores of ``mutual`` may have left their range; empty for none or None."""
    if not scores:
        return []
    words = (
        f"at least {counted(scores, 'score')} may lie beyond the range, and may have wrapped: the "
        f"model may be worthless. {remedy(None, 'pass', scores)}"
    )
    return [Paragraph(words, "warning")]


def divergence(diverged: bool) -> list[Block]:
    """Warning that the model is worthless; empty unless the training diverged."""
    return [Paragraph(DIVERGED, "warning")] if diverged else []


def _points(value: float) -> str:
    return f"{'+' if value >= 0 else '-'}{percent(abs(value))}"


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
MEANS = {
    "deviance": "mean deviance",
    "deviance_explained": "deviance explained",
    "rmse": "RMSE",
    "calibration_ratio": "observed / expected",
    "lift": "lift of the top tenth",
    "gini": "Gini",
}
_MEAN_SHARES = ("deviance_explained", "gini")
OWN_MEANS = ("deviance", "deviance_explained", "calibration_ratio", "lift", "gini")
MEANING = (
    "On held-out rows: the 95 % interval, Bob alone (a model of his columns only) and centralised "
    "(the same solver on the joined table, without encryption)."
)


BRIEF = ("auc", "accuracy", "loss")
BRIEF_MEANS = ("deviance", "deviance_explained", "gini")


def training_summary(runs: Runs[R]) -> list[Block]:
    """Report of a training on one screen: result, comparison, leakage, cost."""
    means, ledger = runs.means, runs.first.ledger
    return [
        Paragraph(_title(runs), "strong"),
        _brief_metrics(runs),
        *divergence(means.diverged),
        Facts(
            {
                **worth_facts(runs),
                **ledger_facts(ledger),
                "cost": f"{_steps(runs.first, runs.first.cost.iterations)} in "
                f"{means.seconds:.1f} s, {traffic(means.bytes_to_alice, means.bytes_to_bob)}",
                "protection": f"{_protection(runs)}; encryption {_encryption(runs)}",
                **asked_facts(runs.first.asked),
            }
        ),
        *_warnings(runs),
    ]


def ledger_facts(ledger: Statement) -> dict[str, Words]:
    """What the ledger says of the labels and of Alice's columns, in short."""
    return {"labels": _labels_words(ledger), "Alice's columns": _columns_words(ledger.columns)}


def _labels_words(ledger: Statement) -> Words:
    total = label_epsilon(ledger.label_epsilon_total)
    if math.isinf(ledger.label_epsilon_total):
        return Span("not protected", "bad"), f" ({total}): {ledger.assumption.split(': ', 1)[-1]}"
    releases = counted(ledger.releases_per_row, "release")
    released = f"{total} after {releases} per row"
    if not ledger.releases_per_row:
        released = f"nothing released ({total})"
    return f"{released}, assuming {ledger.assumption}"


def _columns_words(columns: ExposedColumns | None) -> Words:
    if columns is None or not columns.scores_per_row:
        return "no training score was opened to Bob"
    scores = counted(columns.scores_per_row, "score")
    return (
        Span("exposed:", "bad"),
        f" Bob received {scores} of each row, from which he can reconstruct them",
    )


def _brief_metrics(runs: Runs[R]) -> Table:
    means = runs.means
    of_means = "deviance" in means.test
    names = MEANS if of_means else SHARES | LOSSES
    rows = []
    for key in BRIEF_MEANS if of_means else BRIEF:
        spelled = share if key in (*SHARES, *_MEAN_SHARES) else figure
        parts = means.test, means.bob_alone or {}, means.centralised
        test, alone, clear = (spelled(part.get(key)) for part in parts)
        rows.append((names[key], test, ends(means.test, key), alone, clear))
    headings = ("held-out rows", "joint model", "95 % interval", "Bob alone", "centralised")
    return table(headings, rows, label="Figures of the model")


def _warnings(runs: Runs[R]) -> list[Block]:
    failed = _symmetry(runs)
    return [
        *beyond_blocks(max((run.scores_beyond_range or 0 for run in runs.trainings), default=0)),
        *(symmetry_blocks(failed) if failed is not None and not failed.passed else []),
        *(Paragraph(f"note: {note}", "warning") for note in runs.notes),
    ]


def training_blocks(runs: Runs[R]) -> list[Block]:
    """Report of a training with all figures, or of the mean of several."""
    return [
        Paragraph(_title(runs), "strong"),
        *_preparation(runs),
        metrics_table(runs),
        *divergence(runs.means.diverged),
        Facts(worth_facts(runs) | training_facts(runs)),
        *_learns(runs.first.learns),
        *beyond_blocks(max((run.scores_beyond_range or 0 for run in runs.trainings), default=0)),
        *symmetry_blocks(_symmetry(runs)),
        *(Paragraph(f"note: {note}", "warning") for note in runs.notes),
    ]


def _learns(learns: Disclosure | None) -> list[Block]:
    if learns is None:
        return []
    return [Heading("What each side would receive between machines:"), Facts(learns_facts(learns))]


def _symmetry(runs: Runs[R]) -> Symmetry | None:
    tests = [run.symmetry for run in runs.trainings if run.symmetry is not None]
    return max(tests, key=lambda test: test.largest, default=None)


def traffic(to_alice: float, to_bob: float) -> str:
    """Traffic of the run."""
    return f"{data_size(to_alice)} to Alice, {data_size(to_bob)} to Bob"


def metrics_table(runs: Runs[R]) -> Table:
    """Metrics of the model, of Bob's columns alone, and of the same solver in clear."""
    means = runs.means
    parts = (means.train, means.test, means.bob_alone or {}, means.centralised)
    names = MEANS if "deviance" in means.test else SHARES | LOSSES
    shares = (*SHARES, *_MEAN_SHARES)
    spelled = {key: share if key in shares else figure for key in names}
    rows = []
    for key, name in names.items():
        train, test, alone, clear = (spelled[key](part.get(key)) for part in parts)
        rows.append((name, train, test, ends(means.test, key), alone, clear))
    headings = ("", "training", "held-out", "95 % interval", "Bob alone", "centralised")
    return table(headings, rows, label="Figures of the model", caption=MEANING)


def worth_facts(runs: Runs[R]) -> dict[str, Words]:
    """Base rate, AUC that the partner's columns add, and convergence, as far as known."""
    first, means = runs.first, runs.means
    rows = "held-out rows" if first.data.held_out_rows else "training rows"
    found, optimum = runs.convergence, first.comparison.optimum
    facts = {
        "base rate": base_rate(means.test.get("base_rate"), rows),
        "mean label": mean_label(first.agreement.family, means.test, rows),
        "the partner adds": partner_adds(means.partner_adds),
        "converged": convergence_text(
            found,
            "epoch" if first.by_batches else "pass",
            None if optimum is None or found.row_change is None else optimum.row_gap,
            beyond=max((run.scores_beyond_range or 0 for run in runs.trainings), default=0),
            ranged=has_score_range(first),
        ),
    }
    return {name: words for name, words in facts.items() if words}


def own_metrics(parts: dict[str, ModelMetrics | None]) -> Table:
    """A few figures of a model for each set of rows that has them."""
    means = {name: one for name, one in parts.items() if isinstance(one, RegressionMetrics)}
    if means:
        lines = [(name, *(_mean(one, key) for key in OWN_MEANS)) for name, one in means.items()]
        return table(("", *(MEANS[key] for key in OWN_MEANS)), lines, label="Figures of the model")
    rows = [
        (name, *(share(getattr(part, key)) for key in OWN), figure(part.loss))
        for name, part in parts.items()
        if part is not None
    ]
    headings = ("", *(SHARES[key] for key in OWN), "log loss")
    return table(headings, rows, label="Figures of the model")


def _mean(metrics: RegressionMetrics, key: str) -> str:
    value = getattr(metrics, key)
    return share(value) if key in _MEAN_SHARES else figure(value)


def mean_label(family: str | None, figures: Mapping[str, float | None], rows: str) -> str:
    """Mean of the labels per exposure, and all exposure; empty for labels of two classes."""
    mean = figures.get("mean_label")
    if mean is None or family in (None, BINOMIAL):
        return ""
    volume = f" of exposure; {figure(figures.get('exposure'), 1)} in all"
    per = f" per unit{volume}" if FAMILIES[family or ""].takes_exposure else ""
    return f"{figure(mean)} on the {rows}{per}"


def distance(runs: Runs[R]) -> str:
    """Largest difference of a weight to centralised training, with the bound where one is known."""
    means = runs.means
    if means.max_weight_difference is None:
        return "not computed (compare-optimum)"
    bound = means.weight_bound
    known = "" if bound is None else f" (rounding can cause up to {bound:.1e})"
    return f"{means.max_weight_difference:.1e}{known}"


def training_facts(runs: Runs[R]) -> dict[str, Words]:
    """The lines below the metrics; of several runs the first's, where they differ."""
    first, means = runs.first, runs.means
    iterations, scope = runs.shared(lambda run: run.training.cost.iterations)
    return {
        **parties_facts(first.data.parties),
        "training": f"{_solver(first)}, {_steps(first, iterations)}{whose(scope)}, "
        f"{means.seconds:.1f} s",
        "largest weight difference to centralised training": distance(runs),
        **_optimum(runs),
        "randomness": randomness(runs),
        "protection": _protection(runs),
        **_released_model(runs),
        **_sigmoid(runs),
        **_hidden_batches(runs),
        "encryption": _encryption(runs),
        "traffic": traffic(means.bytes_to_alice, means.bytes_to_bob),
        **_privacy(runs),
        **asked_facts(first.asked, why=True),
    }


def asked_facts(asked: AskedConsent | None, *, why: bool = False) -> dict[str, Words]:
    """Lines that each side's own file would have to hold, between machines; ``why`` if wanted."""
    if asked is None:
        return {}
    lines = {"Alice": asked.alice, "Bob": asked.bob, "both": asked.both}
    return {
        f"asked of {side}": "nothing"
        if line is None
        else f"{line.line}{f' ({line.why})' if why else ''}"
        for side, line in lines.items()
        if line is not None or side != "both"
    }


def _solver(run: TrainingRun) -> str:
    solver = run.agreement.solver
    if isinstance(solver, Newton):
        return f"newton on all rows, L2 penalty {run.agreement.l2:.3g}"
    epochs = counted(solver.epochs, "epoch")
    return f"{epochs}, batches of {solver.batch_size}, learning rate {solver.learning_rate:g}"


def _steps(run: TrainingRun, iterations: int) -> str:
    if run.by_batches:
        return counted(iterations, "iteration")
    return "1 pass" if iterations == 1 else f"{iterations} passes"


def _optimum(runs: Runs[R]) -> dict[str, Words]:
    gaps = [run.training.comparison.optimum for run in runs.runs]
    known = [gap for gap in gaps if gap is not None]
    if not known:
        return {}
    worst = max(known, key=lambda optimum: optimum.gap)
    return {
        "distance to the optimum": f"{worst.gap:.1e} above a penalised "
        f"{'log loss' if runs.first.agreement.kind.has_classes else 'half deviance'} of "
        f"{worst.loss:.5f} on the training rows"
    }


def randomness(runs: Runs[R]) -> str:
    """Source of the randomness: the seed or seeds, or the operating system."""
    seed = runs.first.seed
    if len(runs.runs) > 1 and seed is not None:
        return f"seeds {seed} to {seed + len(runs.runs) - 1}: repeatable simulations"
    if seed is None:
        return "from the operating system"
    return f"seed {seed}: a repeatable simulation"


def whose(scope: str) -> str:
    """The runs that a statement is about, in brackets; empty where it holds for all."""
    return f" ({scope})" if scope else ""


def _title(runs: Runs[R]) -> str:
    first = runs.first
    seeds = f", mean of {len(runs.runs)} seeds" if len(runs.runs) > 1 else ""
    return (
        f"{first.data.dataset}: {first.data.rows:,} + {first.data.held_out_rows:,} rows, "
        f"{at_alice(first.data)}, {first.data.bob_columns} at Bob{seeds}"
    )


def at_alice(data: DataFacts) -> str:
    """Alice's columns, or those of all Alices."""
    alices = "Alice" if data.parties is None else f"{len(data.parties)} Alices"
    return f"{counted(data.alice_columns, 'column')} at {alices}"


def parties_facts(parties: Sequence[FeatureParty] | None) -> dict[str, str]:
    """Number of columns of each of several Alices; empty for one."""
    shares = [f"{party.name} {counted(party.columns, 'column')}" for party in parties or ()]
    return {"parties": ", ".join(shares)} if shares else {}


def _preparation(runs: Runs[R]) -> list[Block]:
    lines, scope = runs.shared(lambda run: run.training.preparation)
    if len(lines) > MOST_COLUMNS_SHOWN:
        return [Paragraph(f"{len(lines)} source columns prepared; --json lists how", "muted")]
    return [Paragraph(f"{line}{whose(scope)}", "muted") for line in lines]


def _protection(runs: Runs[R]) -> str:
    agreed, budget = runs.first.agreement, runs.first.budget
    given = {"epsilon": agreed.epsilon, "b1": agreed.b1, "b2": agreed.b2, "budget": budget}
    parts = (
        f"{agreed.mechanism} {agreed.variant or ''}".rstrip(),
        *(f"{name} {value:g}" for name, value in given.items() if value is not None),
        f"{agreed.noise} noise" if agreed.noise else "",
        "Bob updates with true residues" if agreed.bob_update == "true" else "",
    )
    return ", ".join(filter(None, parts))


def _released_model(runs: Runs[R]) -> dict[str, str]:
    """Noise of weights that were released to Alice; the same in all runs."""
    release = None if runs.first.sealed is None else runs.first.sealed.model_release
    if release is None:
        return {}
    return {
        "released model": f"epsilon {release.epsilon:g}, delta {release.delta:g}: noise of "
        f"{release.noise:.3g} on each whitened weight; a label moves all of them by "
        f"{release.sensitivity:.3g} at most, in {counted(release.steps, 'step')}"
    }


def _sigmoid(runs: Runs[R]) -> dict[str, str]:
    """Waves and error bound of the sigmoid of shared scores; the same in all runs."""
    shared = None if runs.first.sealed is None else runs.first.sealed.shared_scores
    if shared is None:
        return {}
    return {
        "sigmoid": f"{counted(shared.waves, 'wave')}: off by at most {shared.error_bound:.1e} for "
        f"scores within {shared.score_range:g}, and {shared.rounding:.0e} by rounding"
    }


def _encryption(runs: Runs[R]) -> str:
    first = runs.first
    if first.agreement.noise:
        return "none: residues are sent unencrypted, with noise"
    hidden = f", {first.agreement.key_bits} bits" if first.encrypted else " (hides nothing)"
    return f"{first.agreement.scheme}{hidden}"


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
    total = label_epsilon(ledger.label_epsilon_total)
    released = (
        f"{total} after {counted(ledger.releases_per_row, 'release')} per row"
        if ledger.releases_per_row
        else f"nothing released ({total})"
    )
    facts = {"label privacy": f"{released}, assuming {ledger.assumption}{whose(scope)}"}
    if math.isfinite(ledger.label_epsilon_per_release):
        facts |= {
            "one release": f"epsilon {ledger.label_epsilon_per_release:.4g} for the label, "
            f"{ledger.residue_epsilon_per_release:.4g} for the residue; "
            f"claimed {ledger.claimed_epsilon_per_release:g}",
            "at delta": f"{label_epsilon(ledger.label_epsilon_total_delta)} in all with delta "
            f"{ledger.delta:g}",
        }
    first = runs.first.training
    facts |= opened_sums_facts(
        {"change of the loss": first.opened_change, "count of scores": first.scores_beyond_range},
        first.data.rows,
        0 if first.by_batches else first.agreement.rounds,
    )
    stopped, scope = runs.shared(lambda run: run.training.stopped)
    if stopped:
        facts["stopped"] = (
            f"{stopped} after {runs.first.cost.iterations:,} iterations{whose(scope)}"
        )
    return facts


def label_epsilon(value: float) -> str:
    """An epsilon in a sentence.

    >>> label_epsilon(math.inf), label_epsilon(0.5)
    ('epsilon is infinite', 'epsilon 0.5')
    """
    return "epsilon is infinite" if math.isinf(value) else f"epsilon {value:.4g}"


_EXPOSED = Span("Alice's columns are exposed.", "bad")


def outlook_blocks(price: Outlook) -> list[Block]:
    """Cost of a training for Bob's labels, what each side will receive, and any refusal."""
    blocks: list[Block] = []
    if price.ledger is not None:
        figures = _statement(price.ledger) | _over_time(price)
        blocks += [Heading("Privacy cost for Bob's labels:"), Facts(figures)]
    blocks += [Heading("What each side will receive:"), Facts(learns_facts(price.learns))]
    if price.refused is not None:
        refused = f"This side refuses to start: {price.refused.why}."
        blocks += [Paragraph(refused, "bad"), Paragraph(f"To continue: {price.refused.way_out}.")]
    return blocks


SHARED_PEOPLE = (
    "Both sides learn which people they share, and how many the other has. This is certain, "
    "whatever the mechanism."
)
"""The disclosure that comes with every training of two parties: that of their row ids."""


def learns_facts(learns: Disclosure) -> dict[str, Words]:
    """What both sides learn, messages that each receives, and the exposure of Alice's columns."""
    facts: dict[str, Words] = {"both": SHARED_PEOPLE, "Alice": learns.alice, "Bob": learns.bob}
    if learns.columns is not None:
        facts["Alice's columns"] = (_EXPOSED, f" {learns.columns}.")
    return facts | opening_facts(learns)


def opened_sums_facts(
    opened: Mapping[SumKind, float | None], rows: int, passes: int
) -> dict[str, str]:
    """The ledger's lines on sums that ``mutual`` opened: noise in rows, and what moves the sum."""
    noises = {
        kind: row_noise(kind, rows, passes) for kind, value in opened.items() if value is not None
    }
    return {
        f"opened to Bob: {kind}": f"{noise.width_text}; {noise.moved_text}; "
        f"{bits_text(noise.bits(noise.moved.chosen))}"
        for kind, noise in noises.items()
    }


def opening_facts(learns: Disclosure) -> dict[str, Words]:
    """Each kind of number that is not opened to both: how many, their noise, and what bounds it."""
    receivers = Counter(opened.kind for opened in learns.openings)
    return {
        f"to {opened.receiver.title()}: {opened.kind}": (
            f"{'' if opened.numbers is None else f'{opened.numbers:,} per {opened.per}; '}"
            f"{opened.noise}; bounded by: {opened.bounded_by}"
        )
        for opened in learns.openings
        if receivers[opened.kind] == 1
    }


def _over_time(price: Outlook) -> dict[str, Words]:
    total = price.ledger_book
    if total is None or price.ledger is None:
        return {}
    so_far, this, then = (
        label_epsilon(ledger.label_epsilon_total)
        for ledger in (total.so_far, price.ledger, total.then)
    )
    limit = "" if total.limit is None else f"; the limit is {total.limit:g}"
    words = f"{so_far} in {counted(total.trainings, 'training')} so far, {this} in this one"
    return {"over time": f"{words}, {then} afterwards{limit}"}


def _statement(ledger: Statement) -> dict[str, Words]:
    releases = counted(ledger.releases_per_row, "release")
    return {
        "per release": f"label {label_epsilon(ledger.label_epsilon_per_release)}",
        "per row": f"at most {releases}"
        if ledger.releases_per_row
        else "nothing is released unencrypted",
        "in total": f"label {label_epsilon(ledger.label_epsilon_total)}"
        + (f", with delta {ledger.label_delta_total:g}" if ledger.label_delta_total else ""),
        "assumption": ledger.assumption,
    }


def exposure_facts(exposed: ColumnExposure) -> Facts:
    """The counts of opened scores, and what they mean for Alice."""
    deviating = {
        "if Bob deviates": f"up to {exposed.columns_per_score:,} of her columns from one "
        f"score, all from {exposed.scores_for_all:,}"
    }
    opens = exposed.scores_per_row > 0
    warning: Words = (_EXPOSED, f" {exposed.warning}") if opens else exposed.warning
    return Facts(
        {
            "training scores that Bob receives": f"up to {exposed.scores_per_row:,} per row, "
            f"{exposed.opened_values:,} values in all"
            if opens
            else f"none; {exposed.opened_values:,} other values",
            **(deviating if opens else {}),
            "for Alice": warning,
        }
    )


def threshold_words(threshold: Threshold) -> str:
    """Classification threshold, and how it was chosen."""
    rules = {
        GIVEN: "as given",
        YOUDEN: f"Youden, on {threshold.rows:,} held-out rows",
        COST: f"least cost on {threshold.rows:,} held-out rows, a false negative costing "
        f"{threshold.false_negative_cost or 0:g} false positives",
    }
    how = rules.get(threshold.rule, "even odds, no held-out rows")
    words = f"{share(threshold.probability)} ({how})"
    if threshold.sensitivity is None:
        return words
    return (
        f"{words}: sensitivity {share(threshold.sensitivity, 1)}, specificity "
        f"{share(threshold.specificity, 1)}"
    )
