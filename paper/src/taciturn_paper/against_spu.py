"""Benchmark of ``mutual`` and ``sealed`` against SPU's Cheetah, two processes each.

SPU computes any program on shared numbers between two parties; ours is made for this one. All of
them train on the same rows: SPU by batches, as its example does, ours on the whole table in each
pass, to the optimum. They are measured from the moment their two processes are connected to the end
of the last epoch or pass: keys and correlated randomness are in it, loading libraries and compiling
are not and stand beside it. Bytes are the kernel's count of what crossed the connections, so ours
come with TLS and SPU's, by its default, without.

Figures are those of the turn that took the least processor time.
"""

from __future__ import annotations

import json
import math
import os
import subprocess
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cached_property, partial
from pathlib import Path
from typing import TypeAlias

import numpy as np

from taciturn.arrays import FloatArray, IndexArray
from taciturn.data.split import VerticalData
from taciturn.engine.callbacks import Announce
from taciturn.errors import ConfigError
from taciturn.families.binomial import sigmoid
from taciturn.numerics.likelihood import label_likelihood, weighted_likelihood
from taciturn.numerics.metrics import Metrics, evaluate
from taciturn.numerics.optimum import optimum
from taciturn.numerics.sgd import train_centralised
from taciturn.parallel import usable_cores
from taciturn.privacy.solvers import resolved
from taciturn.protocol.agree import agree
from taciturn.protocol.joint_seed import seed_of
from taciturn.protocol.mutual_table import shared_sigmoid
from taciturn.protocol.scales import Scales
from taciturn.protocol.terms import Terms
from taciturn.rng import KeyedEntropy
from taciturn.setting_syntax import Hint
from taciturn.settings.schema import Settings
from taciturn.simulation import RunEntropy, arrange, load_raw
from taciturn_paper import spu_side
from taciturn_paper.sides import Tables, free_port, measure, run_both
from taciturn_paper.tasks import Record

DATASET = "breast-cancer"
SEED = 1
EPOCHS, BATCH_SIZES = 5, (32, 256)
REPEATS = 3
SCORE_RANGE, POINTS = 32.0, 2049
# The runtime's own first, then those of its examples and settings.
SIGMOIDS = ("real", "seg3", "t1")
PACKAGES = ("spu", "jax", "numpy")
MAKE_ENVIRONMENT = Hint(
    "in a checkout of taciturn: python3.11 -m venv spu-env && spu-env/bin/pip install "
    "-r paper/spu-requirements.txt; then name spu-env/bin/python as {spu_python}, or in "
    "TACITURN_SPU_PYTHON"
)
_NO_POINTS = np.empty(0)
_ASK = "import json, sys, {0}; print(json.dumps([{0}.__version__, sys.version.split()[0]]))"


@dataclass(frozen=True, slots=True)
class Lap:
    """One training of one contender.

    ``processor_seconds`` are of both processes; ``first_epoch`` those of the first epoch or pass
    and of all that precedes it. ``started`` and ``compiled``, to load the program and to compile
    what is run, are no part of the others. ``weights`` are Alice's, then Bob's; ``walked`` is the
    sigmoid of each point of the walk.
    """

    seconds: float
    processor_seconds: float
    first_epoch: float
    bytes_to_alice: int
    bytes_to_bob: int
    started: float
    compiled: float
    weights: FloatArray = field(repr=False)
    walked: FloatArray = field(repr=False)


@dataclass(frozen=True)
class Problem:
    """Training problem: the rows of both, 15 columns on either side, and SPU's batches."""

    data: VerticalData
    epochs: int
    batch_size: int

    @classmethod
    def load(cls, epochs: int, batch_size: int) -> Problem:
        """The dataset in halves."""
        chosen = {"dataset": DATASET, "alice_columns": "half", "mechanism": "none", "seed": SEED}
        settings = resolved(Settings.from_mapping(chosen))
        data = arrange(settings, load_raw(settings), RunEntropy.for_seed(SEED).data)
        return cls(data, epochs, batch_size)

    def terms(self, mechanism: str) -> Terms:
        """Terms of a training with one of our mechanisms."""
        return self._agreed({"mechanism": mechanism, "solver": "newton"})

    @property
    def batch_terms(self) -> Terms:
        """Batches and rate; the rate is the dataset's default."""
        sizes = {"epochs": self.epochs, "batch_size": self.batch_size}
        return self._agreed({"mechanism": "none", "solver": "sgd", **sizes})

    def _agreed(self, chosen: dict[str, object]) -> Terms:
        settings = resolved(Settings.from_mapping({"dataset": DATASET, "scheme": "bfv", **chosen}))
        columns, rows = len(self.data.alice_train.columns), self.data.labels_train.rows
        return agree(settings, columns, rows)

    @property
    def tables(self) -> Tables:
        """The training rows."""
        data = self.data
        return Tables(
            data.alice_train.values,
            data.bob_train.values,
            data.labels_train.values,
            bool(data.bob_train.free),
        )

    @cached_property
    def batches(self) -> list[IndexArray]:
        """The rows of each iteration."""
        entropy = KeyedEntropy.from_seed(SEED)
        seed = seed_of(entropy.fork("alice"), entropy.fork("bob"))
        return [batch.rows for batch in self.batch_terms.plan(seed, self.data.labels_train.rows)]

    @cached_property
    def optimum(self) -> FloatArray:
        """The weights of the least penalised loss on joined rows."""
        tables, l2 = self.tables, self.terms("mutual").agreement.l2
        joined = np.hstack([tables.alice, tables.bob])
        true = label_likelihood(tables.labels, partial(weighted_likelihood, class_weight=None))
        return optimum(joined, true, l2, self.data.bob_train.free).weights

    @cached_property
    def reference(self) -> FloatArray:
        """The weights of the same batches on joined rows, in clear."""
        terms, tables = self.batch_terms, self.tables
        joined, free = np.hstack([tables.alice, tables.bob]), self.data.bob_train.free
        return train_centralised(
            joined, tables.labels, self.batches, terms.rate, terms.penalty, free
        )

    @property
    def largest_score(self) -> float:
        """The largest score of a training row under either reference model."""
        joined = np.hstack([self.tables.alice, self.tables.bob])
        models = np.column_stack([self.reference, self.optimum])
        return float(np.abs(joined @ models).max())

    def tested(self, weights: FloatArray) -> Metrics:
        """Metrics of weights on the held-out rows."""
        joined = np.hstack([self.data.alice_test.values, self.data.bob_test.values])
        return evaluate(np.nan_to_num(joined @ weights), self.data.labels_test.values)


def walk() -> FloatArray:
    """The scores at which sigmoids are compared."""
    return np.linspace(-SCORE_RANGE, SCORE_RANGE, POINTS)


# --- ours -------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Ours:
    """A mechanism of ours."""

    name: str

    @property
    def sigmoid(self) -> str:
        """Waves of a shared score; or exact, at Bob, who sees it."""
        return "waves" if self.name == "mutual" else "exact"

    def lap(self, problem: Problem) -> Lap:
        """Trains once, over gRPC with certificates."""
        terms = problem.terms(self.name)
        course = measure(terms.agreement, problem.tables, seed=SEED)
        return Lap(
            course.whole.seconds,
            course.whole.processor_seconds,
            course.steps[0].processor_seconds,
            *course.wire_bytes,
            course.started,
            0.0,
            course.weights,
            walked_sigmoid(problem) if self.name == "mutual" else sigmoid(walk()),
        )

    def steps(self, problem: Problem) -> int:
        """Number of passes."""
        return problem.terms(self.name).agreement.rounds

    def expected(self, problem: Problem) -> FloatArray:
        """The optimum."""
        return problem.optimum


def walked_sigmoid(problem: Problem) -> FloatArray:
    """Sigmoid of ``mutual`` on the walk's scores, from random shares on its grids."""
    agreed, rows = problem.terms("mutual").agreement, problem.data.labels_train.rows
    scales = Scales.for_shared_table(agreed, rows)
    function = shared_sigmoid(scales, agreed, rows)
    entropy, ring = KeyedEntropy.from_seed(SEED), scales.ring(1, 1)
    whole = np.rint(walk() / scales.score_unit).astype(np.int64)
    turn = entropy.uniform((POINTS,)) - 0.5
    hers = ring.centred((turn * 2.0**scales.modulus_bits).astype(np.int64))
    his = ring.centred(whole - hers)
    products = function.phases(his, np.ones(POINTS)) * function.table(hers, entropy)
    return np.asarray(0.5 + products.sum(axis=1) / function.step)


# --- SPU --------------------------------------------------------------------------------------


def versions(python: Path | None) -> dict[str, str]:
    """The versions of SPU's Python and of its packages, all of which it must have."""
    if python is None:
        raise ConfigError(
            "SPU needs a separate Python, and none is given",
            setting="spu_python",
            hint=MAKE_ENVIRONMENT,
        )
    had: dict[str, str] = {}
    for package in PACKAGES:
        try:
            asked = subprocess.run(  # noqa: S603 - what the user names
                [python, "-I", "-c", _ASK.format(package)],
                capture_output=True,
                text=True,
                check=False,
            )
        except OSError as problem:
            raise ConfigError(
                f"this Python cannot be run: {problem.strerror}",
                setting="spu_python",
                value=str(python),
                hint=MAKE_ENVIRONMENT,
            ) from None
        if asked.returncode:
            words = asked.stderr.strip().splitlines()[-1:] or ["it failed"]
            raise ConfigError(
                f"the package {package} cannot be loaded there: {words[0][:200]}",
                setting="spu_python",
                value=str(python),
                hint=MAKE_ENVIRONMENT,
            )
        had[package], had["python"] = json.loads(asked.stdout.splitlines()[-1])
    return had


@dataclass(frozen=True, slots=True)
class Cheetah:
    """SPU's Cheetah with one of its sigmoids."""

    python: Path
    sigmoid: str
    name: str = "spu"

    def lap(self, problem: Problem) -> Lap:
        """Trains once; the walk comes after the end of what is measured."""
        terms, batches = problem.batch_terms, problem.batches
        per_epoch = terms.per_epoch(len(problem.tables.labels))
        epochs = [batches[at : at + per_epoch] for at in range(0, len(batches), per_epoch)]
        return self.train(problem.tables, epochs, terms.rate.at(0), points=walk())

    def train(
        self,
        tables: Tables,
        epochs: Sequence[Sequence[IndexArray]],
        rate: float,
        momentum: float = 0.0,
        points: FloatArray = _NO_POINTS,
    ) -> Lap:
        """Trains once on the batches of each epoch, then computes the sigmoid of some points.

        Each epoch has as many batches as the first, of the same sizes.
        """
        task = {
            "sigmoid": self.sigmoid,
            "learning_rate": rate,
            "momentum": momentum,
            "alice_columns": tables.alice.shape[1],
            "bob_columns": tables.bob.shape[1],
            "batch_sizes": [len(rows) for rows in epochs[0]],
            "orders": [np.concatenate(batches).tolist() for batches in epochs],
            "walk": points.tolist(),
        }
        with tempfile.TemporaryDirectory(prefix="taciturn-bench-") as name:
            folder = Path(name)
            # Each side's table is where only its process looks for it.
            (folder / "task.json").write_text(json.dumps(task), encoding="utf-8")
            np.savez(folder / "alice.npz", alice=tables.alice)
            np.savez(folder / "bob.npz", bob=tables.bob, labels=tables.labels)
            own = [str(self.python), "-I", str(Path(spu_side.__file__))]
            ports = [str(free_port()), str(free_port())]
            sides = run_both(
                {role: [*own, role, str(folder), *ports] for role in spu_side.SIDES}, folder
            )
        alice, bob = sides["alice"], sides["bob"]
        first, last = ((alice["steps"][at], bob["steps"][at]["processor"]) for at in (0, -1))
        return Lap(
            last[0]["seconds"],
            last[0]["processor"] + last[1],
            first[0]["processor"] + first[1],
            last[0]["bytes_received"],
            last[0]["bytes_sent"],
            alice["started"] + bob["started"],
            alice["compiled"] + bob["compiled"],
            np.array(bob["weights"], dtype=np.float64),
            np.array(bob["walked"], dtype=np.float64),
        )

    def steps(self, problem: Problem) -> int:
        """Number of epochs."""
        return problem.epochs

    def expected(self, problem: Problem) -> FloatArray:
        """Weights that the same batches give in clear."""
        return problem.reference


Contender: TypeAlias = Ours | Cheetah


# --- the comparison ---------------------------------------------------------------------------


def figures(contender: Contender, problem: Problem, laps: Sequence[Lap]) -> Record:
    """The row of a contender: what its least turn took, and the model of its last."""
    least = min(laps, key=lambda lap: lap.processor_seconds)
    model, walked = laps[-1].weights, laps[-1].walked
    test, errors = problem.tested(model), np.abs(walked - sigmoid(walk()))
    seen = np.abs(walk()) <= math.ceil(problem.largest_score)
    return {
        "contender": contender.name,
        "sigmoid": contender.sigmoid,
        "batch_size": problem.batch_size,
        "epochs": contender.steps(problem),
        "seconds": least.seconds,
        "processor_seconds": least.processor_seconds,
        "processor_seconds_of_all": [lap.processor_seconds for lap in laps],
        "processor_seconds_of_first_epoch": least.first_epoch,
        "start_processor_seconds": least.started,
        "compile_processor_seconds": least.compiled,
        "bytes_to_alice": least.bytes_to_alice,
        "bytes_to_bob": least.bytes_to_bob,
        "test_accuracy": test.accuracy,
        "test_auc": test.auc,
        "test_loss": test.loss,
        "max_weight_difference": float(np.abs(model - contender.expected(problem)).max()),
        "sigmoid_error": float(errors.max()),
        "sigmoid_error_within_scores": float(errors[seen].max()),
    }


def run(
    python: Path | None,
    *,
    announce: Announce,
    repeats: int = REPEATS,
    quick: bool = False,
) -> Record:
    """The whole comparison, with the Python that has SPU.

    A quick one has one turn, one epoch in large batches, and SPU's own sigmoid alone.
    """
    had = versions(python)
    # ``versions`` has refused its absence.
    own = Path(python or "").absolute()
    chosen = SIGMOIDS[:1] if quick else SIGMOIDS
    entrants: list[Contender] = [Ours("mutual"), Ours("sealed")]
    entrants += [Cheetah(own, name) for name in chosen]
    before, shapes, rows = os.getloadavg()[0], [], []
    for batch_size in BATCH_SIZES[1:] if quick else BATCH_SIZES:
        problem = Problem.load(1 if quick else EPOCHS, batch_size)
        laps: list[list[Lap]] = [[] for _ in entrants]
        for turn in range(1 if quick else repeats):
            for contender, done in zip(entrants, laps, strict=True):
                announce(
                    f"batches of {batch_size}: {contender.name} ({contender.sigmoid}), "
                    f"turn {turn + 1}"
                )
                done.append(contender.lap(problem))
        shapes.append(shape_of(problem))
        rows += [figures(who, problem, done) for who, done in zip(entrants, laps, strict=True)]
    return {
        "versions": had,
        "cores": usable_cores(),
        "load_before": before,
        "load_after": os.getloadavg()[0],
        "repeats": 1 if quick else repeats,
        "shapes": shapes,
        "runs": rows,
    }


def shape_of(problem: Problem) -> Record:
    """Shape of the training, and test metrics of the same batches in clear and of the optimum."""
    tables, test = problem.tables, problem.tested(problem.reference)
    best = problem.tested(problem.optimum)
    return {
        "dataset": DATASET,
        "rows": len(tables.labels),
        "alice_columns": tables.alice.shape[1],
        "bob_columns": tables.bob.shape[1] - int(tables.intercept),
        "batch_size": problem.batch_size,
        "epochs": problem.epochs,
        "iterations": len(problem.batches),
        "learning_rate": problem.batch_terms.rate.at(0),
        "largest_score": problem.largest_score,
        "test_accuracy": test.accuracy,
        "test_auc": test.auc,
        "test_loss": test.loss,
        "optimum": {
            "test_accuracy": best.accuracy,
            "test_auc": best.auc,
            "test_loss": best.loss,
        },
    }
