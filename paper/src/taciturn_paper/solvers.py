"""sgd and newton to the same model: time, processor time, traffic, round trips, on three links.

Both train between two processes (``sides``) with ``bfv``: sgd with ``none``, the paper's baseline,
and newton with ``sealed``, which has no sgd. The target is what sgd reaches on held-out rows with
its default epochs: its log loss and its AUC. The trainings in clear that decide after how many
passes newton is there take the same steps as the encrypted ones, up to the rounding to fixed point.

Where sgd has more than ``MOST_ITERATIONS`` iterations, so many are measured and the rest is
extrapolated; newton is measured whole unless it would take longer than ``LONGEST_SECONDS``.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import cache, partial

import numpy as np

from taciturn.arrays import FloatArray
from taciturn.data.label_table import LabelTable
from taciturn.data.tables import FeatureTable
from taciturn.errors import DatasetUnavailable
from taciturn.numerics.likelihood import label_likelihood, weighted_likelihood
from taciturn.numerics.metrics import Metrics, evaluate
from taciturn.numerics.sgd import train_centralised
from taciturn.numerics.whole_table import fit_in_clear
from taciturn.parallel import one_thread, usable_cores
from taciturn.privacy.solvers import resolved
from taciturn.protocol.agree import agree
from taciturn.protocol.joint_seed import seed_of
from taciturn.protocol.terms import Terms
from taciturn.rng import KeyedEntropy
from taciturn.settings.schema import Settings, SolverName
from taciturn.simulation import RunEntropy, arrange, load_raw
from taciturn_paper.encryption import PAPER_SECONDS
from taciturn_paper.sides import LINKS, Course, Effort, Link, Tables, measure
from taciturn_paper.tasks import Record
from taciturn_paper.throughput import synthetic

SEED = 1
MOST_ITERATIONS = 320
# Newton beyond this is measured for a few passes.
LONGEST_SECONDS = 120.0
FEW_PASSES = 4
# A table of more entries is tried with a few passes first.
LARGE_ENTRIES = 20_000_000
SYNTHETIC = (1_000_000, 50)
HELD_OUT_ROWS = 100_000
SIZES = ((1_000_000, 20), (1_000_000, 100))
SIZE_PASSES = 4


@dataclass(frozen=True, slots=True, eq=False)
class Problem:
    """Learning problem: the rows of both parties, for training and held out."""

    name: str
    alice: FeatureTable
    bob: FeatureTable
    labels: LabelTable
    alice_test: FeatureTable
    bob_test: FeatureTable
    labels_test: LabelTable

    def terms(self, solver: SolverName) -> Terms:
        """Default terms of a solver with ``bfv``: newton with ``sealed``, sgd with ``none``."""
        dataset = {"dataset": self.name} if self.name in PAPER_SECONDS else {}
        mechanism = "sealed" if solver == "newton" else "none"
        intercept = bool(self.bob.free)
        chosen = {"mechanism": mechanism, "scheme": "bfv", "solver": solver, "intercept": intercept}
        chosen |= dataset
        return agree(
            resolved(Settings.from_mapping(chosen)),
            len(self.alice.columns),
            self.alice.rows,
        )

    def tables(self, rows: int | None = None) -> Tables:
        """The training rows, or the first of them."""
        part = slice(rows)
        return Tables(
            self.alice.values[part],
            self.bob.values[part],
            self.labels.values[part],
            bool(self.bob.free),
        )

    def tested(self, alice: FloatArray, bob: FloatArray) -> Metrics:
        """Metrics of weights on the held-out rows."""
        scores = self.alice_test.values @ alice + self.bob_test.values @ bob
        return evaluate(scores, self.labels_test.values)


def dataset(name: str) -> Problem:
    """One of the paper's datasets, with all columns at Alice."""
    settings = resolved(
        Settings.from_mapping({"dataset": name, "mechanism": "sealed", "seed": SEED})
    )
    data = arrange(settings, load_raw(settings), RunEntropy.for_seed(SEED).data)
    return Problem(
        name,
        data.alice_train,
        data.bob_train,
        data.labels_train,
        data.alice_test,
        data.bob_test,
        data.labels_test,
    )


def made(rows: int, columns: int, held_out: int = HELD_OUT_ROWS) -> Problem:
    """A synthetic table of Alice's; Bob has the intercept and the labels."""
    features, labels = synthetic(rows + held_out, columns, KeyedEntropy.from_seed(SEED))
    nothing = FeatureTable(features.ids, (), np.empty((features.rows, 0))).with_intercept()
    train, test = np.arange(rows), np.arange(rows, rows + held_out)
    parts = [(table.take(train), table.take(test)) for table in (features, nothing)]
    (alice, alice_test), (bob, bob_test) = parts
    name = f"{rows:,} x {columns}"
    return Problem(name, alice, bob, labels.take(train), alice_test, bob_test, labels.take(test))


def target(problem: Problem) -> Metrics:
    """Metrics of sgd on the held-out rows with its default epochs."""
    terms, entropy = problem.terms("sgd"), KeyedEntropy.from_seed(SEED)
    seed = seed_of(entropy.fork("alice"), entropy.fork("bob"))
    batches = [batch.rows for batch in terms.plan(seed, problem.alice.rows)]
    joined = np.hstack([problem.alice.values, problem.bob.values])
    with one_thread():
        weights = train_centralised(
            joined, problem.labels.values, batches, terms.rate, terms.penalty, problem.bob.free
        )
    own = len(problem.alice.columns)
    return problem.tested(weights[:own], weights[own:])


def after_passes(problem: Problem, passes: int) -> Metrics:
    """Metrics of newton on the held-out rows after this many passes."""
    agreed, labels = problem.terms("newton").agreement, problem.labels.values
    weighted = partial(weighted_likelihood, class_weight=agreed.class_weight)
    likelihood = label_likelihood(labels, weighted)
    alice, bob = problem.alice.values, problem.bob.values
    with one_thread():
        fit = fit_in_clear(alice, bob, likelihood, agreed.l2, problem.bob.free, passes)
    return problem.tested(fit.alice, fit.own)


def passes_to(goal: Metrics, reached: Callable[[int], Metrics], most: int) -> int | None:
    """Number of passes until both metrics reach the goal's; None if they never do.

    ``reached`` gives the figures of a training of so many passes, of which ``most`` are tried.
    """
    for passes in range(1, most + 1):
        now = reached(passes)
        if now.loss <= goal.loss and now.auc >= goal.auc:
            return passes
    return None


# --- measured ---------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class SolverRun:
    """One solver on one problem over one link.

    ``steps`` are iterations of sgd or passes of newton, of which ``steps_measured`` were run and
    the others extrapolated. ``reaches_target``: newton's passes reach sgd's model.
    """

    problem: Problem
    link: Link
    solver: SolverName
    steps: int
    steps_measured: int
    reaches_target: bool
    effort: Effort
    test: Metrics

    def to_dict(self) -> Record:
        """The row for JSON."""
        effort = self.effort
        return {
            "dataset": self.problem.name,
            "rows": self.problem.alice.rows,
            "columns": len(self.problem.alice.columns),
            "link": self.link.name,
            "solver": self.solver,
            "steps": self.steps,
            "steps_measured": self.steps_measured,
            "reaches_target": self.reaches_target,
            "seconds": effort.seconds,
            "processor_seconds": effort.processor_seconds,
            "bytes_to_alice": effort.bytes_to_alice,
            "bytes_to_bob": effort.bytes_to_bob,
            "round_trips": effort.round_trips,
            "test_loss": self.test.loss,
            "test_auc": self.test.auc,
            "paper_seconds": PAPER_SECONDS.get(self.problem.name),
        }


def compare(
    problem: Problem, links: Sequence[Link], announce: Callable[[str], None]
) -> list[SolverRun]:
    """Both solvers in turn over each link."""
    announce(f"{problem.name}: what sgd reaches")
    goal, passes = target(problem), problem.terms("newton").rounds
    reached = cache(partial(after_passes, problem))
    enough = passes_to(goal, reached, passes)
    runs = []
    for link in links:
        announce(f"{problem.name}, {link.name}: sgd")
        steps, course = _sgd(problem, link)
        runs.append(
            SolverRun(
                problem, link, "sgd", steps, len(course.steps), True, course.after(steps), goal
            )
        )
        for count in sorted({enough or passes, passes}):
            announce(f"{problem.name}, {link.name}: newton, {count} passes")
            course = _newton(problem, link, count)
            measured, effort = len(course.steps), course.after(count)
            runs.append(
                SolverRun(
                    problem,
                    link,
                    "newton",
                    count,
                    measured,
                    count == enough,
                    effort,
                    reached(count),
                )
            )
    return runs


def _sgd(problem: Problem, link: Link) -> tuple[int, Course]:
    """Number of iterations, and the course of the first ones."""
    terms = problem.terms("sgd")
    steps = terms.iterations(problem.alice.rows)
    # A little more than is measured is run whole.
    if steps <= 2 * MOST_ITERATIONS:
        return steps, measure(terms.agreement, problem.tables(), link)
    rows = min(problem.alice.rows, MOST_ITERATIONS * terms.agreement.sgd.batch_size)
    epochs = -(-MOST_ITERATIONS // terms.per_epoch(rows))
    shorter = terms.agreement.with_rounds(epochs)
    return steps, measure(shorter, problem.tables(rows), link)


def _newton(problem: Problem, link: Link, passes: int) -> Course:
    agreed, tables = problem.terms("newton").agreement, problem.tables()
    if tables.alice.size > LARGE_ENTRIES and passes > FEW_PASSES:
        few = measure(agreed.with_rounds(FEW_PASSES), tables, link)
        if few.after(passes).seconds > LONGEST_SECONDS:
            return few
    return measure(agreed.with_rounds(passes), tables, link)


@dataclass(frozen=True, slots=True)
class Size:
    """Newton on a table of one size: what a row costs, and where the time goes."""

    rows: int
    columns: int
    course: Course

    def to_dict(self) -> Record:
        """The row for JSON; a usual pass is one between the first and the last.

        Those have what is done once.
        """
        course, passes = self.course, len(self.course.steps)
        first, late = course.steps[0], course.steps[-2]
        usual = Effort(0, 0, 0, 0, 0).plus(late.plus(first, -1.0), 1.0 / (passes - 2))
        return {
            "rows": self.rows,
            "columns": self.columns,
            "passes": passes,
            "seconds": course.whole.seconds,
            "processor_seconds": course.whole.processor_seconds,
            "seconds_of_first_pass": first.seconds,
            "seconds_of_a_pass": usual.seconds,
            "processor_seconds_of_a_pass": usual.processor_seconds,
            "rows_per_second": self.rows / usual.seconds,
            "rows_per_processor_second": self.rows / usual.processor_seconds,
            "bytes_to_alice_per_row": usual.bytes_to_alice / self.rows,
            "bytes_to_bob_per_row": usual.bytes_to_bob / self.rows,
            "stages": course.stages,
            "peak_bytes_alice": course.peak_bytes["alice"],
            "peak_bytes_bob": course.peak_bytes["bob"],
        }


def measure_size(rows: int, columns: int) -> Size:
    """A few passes over a synthetic table."""
    problem = made(rows, columns, held_out=1)
    agreed = problem.terms("newton").agreement
    return Size(rows, columns, measure(agreed.with_rounds(SIZE_PASSES), problem.tables()))


# --- all of it --------------------------------------------------------------------------------


def run(
    *,
    announce: Callable[[str], None],
    datasets: Sequence[str] = (),
    sizes: Sequence[tuple[int, int]] = (),
    quick: bool = False,
) -> Record:
    """Compare newton and sgd on each dataset; measure newton alone by ``sizes``: rows, columns.

    Without either, all of the paper's datasets and a synthetic one. A quick run has the smallest
    dataset and a small table, on one link.
    """
    everything, before = not datasets and not sizes, os.getloadavg()[0]
    links = LINKS[:1] if quick else LINKS
    if everything:
        sizes = ((20_000, 5),) if quick else SIZES
    solvers: list[Record] = []
    missing: list[str] = []
    for problem in _problems(datasets, everything=everything, quick=quick, missing=missing):
        solvers += [one.to_dict() for one in compare(problem, links, announce)]
    measured = []
    for rows, columns in sizes:
        announce(f"newton on {rows:,} x {columns}")
        measured.append(measure_size(rows, columns).to_dict())
    return {
        "cores": usable_cores(),
        "load_before": before,
        "load_after": os.getloadavg()[0],
        "solvers": solvers,
        "sizes": measured,
        "missing": missing,
    }


def _problems(
    datasets: Sequence[str], *, everything: bool, quick: bool, missing: list[str]
) -> Iterator[Problem]:
    names = list(PAPER_SECONDS)[: 1 if quick else None] if everything else datasets
    for name in names:
        try:
            problem = dataset(name)
        except DatasetUnavailable:
            missing.append(name)
            continue
        yield problem
    if everything and not quick:
        yield made(*SYNTHETIC)
