"""Table III: cost of an iteration and of a training, against the paper's seconds.

Both parties run in one process, so that the network is not in the figures; the paper's two machines
talked across the Internet. Some iterations of each training are measured, all contenders in turn,
several times over: the machine's mood then falls on all of them alike, and ratios are of the same
turn. A whole training is what comes before the first iteration, plus the iterations of our epochs;
how many epochs the paper trained it does not say, so only ratios compare with its own.

python-paillier does the encrypted part of an iteration alone (encrypt, product, mask, decrypt),
whose time is scaled to the number of iterations: nobody waits for a day to read a table.
"""

from __future__ import annotations

import os
import time
from dataclasses import dataclass, field
from statistics import fmean, median

from taciturn.data.split import VerticalData
from taciturn.engine.pair import run_star
from taciturn.errors import ConfigError
from taciturn.jobs.train.simulation import programs
from taciturn.parallel import one_thread
from taciturn.privacy.ledger import Ledger
from taciturn.privacy.solvers import resolved
from taciturn.protocol.agree import agree
from taciturn.protocol.events import Event, Progress
from taciturn.protocol.terms import Terms
from taciturn.rng import KeyedEntropy
from taciturn.settings.schema import Settings
from taciturn.simulation import RunEntropy, arrange, load_raw
from taciturn_audit.exact_intervals import t_interval
from taciturn_paper import paper
from taciturn_paper.encryption import MATRIX_BITS, VECTOR_BITS, PythonPaillier, random_integers
from taciturn_paper.tasks import Record, Request, available

TURNS, QUICK_TURNS = 5, 3
PHE_BITS, PHE_LAPS = 2048, 5


@dataclass(frozen=True, slots=True)
class Contender:
    """A training that takes part, and how many of its iterations a turn measures."""

    mechanism: str
    scheme: str
    iterations: int
    options: Record = field(default_factory=dict)


CONTENDERS = (
    Contender("add", "clear", 200, {"epsilon": 1.0}),
    Contender("mult", "clear", 200, {"epsilon": 1.0, "b1": 0.1, "b2": 10.0}),
    *(
        Contender(name, scheme, iterations)
        for scheme, iterations in (("bfv", 25), ("paillier", 5))
        for name in ("none", "hybrid")
    ),
)


def run(request: Request) -> Record:
    """Times of every dataset that is here; no time depends on the seed."""
    announce = request.announce
    here, missing = available(request.datasets or paper.DATASETS)
    turns = QUICK_TURNS if request.quick else TURNS
    rows: list[Record] = []
    ratios: list[Record] = []
    rival, absent = _rival()
    before = _load()
    total = len(here) * (turns + 1)
    with one_thread():
        for place, dataset in enumerate(here):
            announce(f"Table III: {dataset}")
            bench = _Bench(dataset, request.seed)
            laps: list[list[Lap]] = []
            for turn in range(turns):
                request.progress(place * (turns + 1) + turn, total)
                laps.append([bench.lap(contender) for contender in CONTENDERS])
            measured = [
                _row(dataset, contender, [turn[number] for turn in laps])
                for number, contender in enumerate(CONTENDERS)
            ]
            if rival is not None:
                announce(f"Table III: {dataset}, python-paillier")
                measured += _rival_rows(dataset, rival, measured[0])
            rows += measured
            ratios += _ratios(dataset, measured)
    return {
        "quick": request.quick,
        "turns": turns,
        "load": None if before is None else [before, _load()],
        "rows": rows,
        "ratios": ratios,
        "missing": missing,
        "left_out": absent,
    }


def _load() -> float | None:
    """The machine's load average over one minute; None where the system has none."""
    return os.getloadavg()[0] if hasattr(os, "getloadavg") else None


@dataclass(frozen=True, slots=True)
class Lap:
    """One turn of one contender."""

    setup_seconds: float
    iteration_seconds: float
    iterations: int
    whole: int
    key_bits: int


class _Enough(Exception):
    """The iterations that were asked for are done."""


class _Watch:
    """Notes when each iteration ends, and stops the training after enough of them."""

    def __init__(self, most: int) -> None:
        self.most, self.total = most, 0
        self.start = time.perf_counter()
        self.ends: list[float] = []

    def __call__(self, event: Event) -> None:
        if isinstance(event, Progress):
            self.ends.append(time.perf_counter())
            self.total = event.total
            if len(self.ends) > self.most:
                raise _Enough


class _Bench:
    """A dataset's rows, on which contenders take turns."""

    def __init__(self, dataset: str, seed: int) -> None:
        self._entropy = RunEntropy.for_seed(seed)
        self._base: Record = {"dataset": dataset, "seed": seed, "solver": "sgd"}
        settings = self._settings(CONTENDERS[0])
        self._data: VerticalData = arrange(settings, load_raw(settings), self._entropy.data)

    def lap(self, contender: Contender) -> Lap:
        """Some iterations of a training from its beginning."""
        settings, data = self._settings(contender), self._data
        terms = agree(settings, len(data.alice_train.columns), data.labels_train.rows)
        watch = _Watch(contender.iterations)
        self._drive(terms, watch)
        iterations = len(watch.ends) - 1
        per_iteration = (watch.ends[-1] - watch.ends[0]) / iterations
        return Lap(
            max(0.0, watch.ends[0] - watch.start - per_iteration),
            per_iteration,
            iterations,
            watch.total,
            terms.agreement.key_bits,
        )

    def _drive(self, terms: Terms, watch: _Watch) -> None:
        ledger = Ledger(self._data.labels_train.rows, "")
        try:
            run_star(*programs(self._data, terms, self._entropy, ledger), observe=watch)
        except _Enough:
            pass

    def _settings(self, contender: Contender) -> Settings:
        wanted = {"mechanism": contender.mechanism, "scheme": contender.scheme}
        return resolved(Settings.from_mapping({**self._base, **wanted, **contender.options}))


def _row(dataset: str, contender: Contender, laps: list[Lap]) -> Record:
    milliseconds = [1e3 * lap.iteration_seconds for lap in laps]
    setup = median(lap.setup_seconds for lap in laps)
    clear = contender.scheme == "clear"
    return {
        "dataset": dataset,
        "mechanism": contender.mechanism,
        "scheme": None if clear else contender.scheme,
        "key_bits": None if clear else laps[0].key_bits,
        "ms_per_iteration": median(milliseconds),
        "turns_ms": milliseconds,
        "iterations_measured": sum(lap.iterations for lap in laps),
        "iterations": laps[0].whole,
        "setup_seconds": setup,
        "training_seconds": setup + median(milliseconds) / 1e3 * laps[0].whole,
        "extrapolated": True,
        "paper_seconds": paper.TABLE_3[dataset].seconds.get(contender.mechanism),
    }


def _rival() -> tuple[PythonPaillier | None, list[str]]:
    """python-paillier, or why it is not here."""
    try:
        return PythonPaillier(PHE_BITS), []
    except ConfigError as problem:
        return None, [f"{problem.message}: {problem.hint}"]


def _rival_rows(dataset: str, rival: PythonPaillier, like: Record) -> list[Record]:
    """The encrypted part of an iteration by python-paillier, at the batch and at L_RR."""
    sizes = paper.TABLE_3[dataset]
    entropy = KeyedEntropy.from_seed(sizes.columns)
    times: dict[str, list[float]] = {"none": [], "hybrid": []}
    for _ in range(PHE_LAPS):
        for name, rows in (("none", sizes.batch), ("hybrid", sizes.l_rr)):
            matrix = random_integers(entropy, (sizes.columns, rows), MATRIX_BITS)
            vector = random_integers(entropy, (rows,), VECTOR_BITS)
            times[name].append(1e3 * rival.lap(matrix, vector).seconds)
    return [
        {
            "dataset": dataset,
            "mechanism": name,
            "scheme": "phe",
            "key_bits": rival.bits,
            "ms_per_iteration": median(milliseconds),
            "turns_ms": milliseconds,
            "iterations_measured": len(milliseconds),
            "iterations": like["iterations"],
            "setup_seconds": 0.0,
            "training_seconds": median(milliseconds) / 1e3 * like["iterations"],
            "extrapolated": True,
            "paper_seconds": sizes.seconds[name],
        }
        for name, milliseconds in times.items()
    ]


def _ratios(dataset: str, rows: list[Record]) -> list[Record]:
    """``hybrid`` over the baseline of the same scheme, turn by turn."""
    records = []
    for row in rows:
        if row["mechanism"] != "hybrid":
            continue
        base = next(r for r in rows if (r["mechanism"], r["scheme"]) == ("none", row["scheme"]))
        quotients = [a / b for a, b in zip(row["turns_ms"], base["turns_ms"], strict=True)]
        low, high = t_interval(quotients)
        records.append(
            {
                "dataset": dataset,
                "mechanism": row["mechanism"],
                "scheme": row["scheme"],
                "ratio": fmean(quotients),
                "ratio_low": low,
                "ratio_high": high,
                "paper_ratio": paper.TABLE_3[dataset].ratio,
            }
        )
    return records
