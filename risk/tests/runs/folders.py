"""Result folders of every kind, with the results of ``tests.report.samples``."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

from audit.tests.report.samples import leaking, quiet

from taciturn.files import to_json
from taciturn.jobs.train.result import DryRun, PartyMetrics, PartyRun, Sizes
from taciturn.results.cost_preview import Disclosure, Estimate, Outlook
from taciturn.results.folder import RESULT, Destination, Manifest, write_folder
from taciturn.results.parties import CurvePoint
from taciturn.results.runs import Runs
from taciturn.results.serialise import Result
from taciturn_audit.results.compare import BestAttack, ComparedMechanism, Comparison
from taciturn_audit.results.runs import AuditResult, DemoResult
from tests.report.samples import FIGURES, IDENTITY, TRAINING, metrics
from tests.results.test_folder import PLAN

CURVE = tuple(CurvePoint(step, 1 / step, 1.5 / step, 0.5 + 0.01 * step) for step in (1, 2, 4))
BOB = PartyRun(
    identity=IDENTITY,
    model="bob.json",
    stopped=None,
    metrics=PartyMetrics(metrics(0.9, 0.95), metrics(0.88, 0.93), CURVE),
    ledger=TRAINING.ledger,
    run=replace(FIGURES, bytes_sent=30),
)
ALICE = replace(
    BOB,
    identity=replace(IDENTITY, role="alice", peer="bob"),
    metrics=PartyMetrics(),
    ledger=None,
)
DRY_RUN = DryRun(
    identity=IDENTITY,
    outlook=Outlook(ledger=TRAINING.ledger, learns=Disclosure(alice="a", bob="b")),
    peer_columns=4,
    agreement=Sizes(4, 455),
    estimate=Estimate(3, 1.5, 10, 20),
)


def best(attack: str | None, value: float | None, *, leak: bool) -> BestAttack:
    ends = (None, None) if value is None else (value - 0.02, value + 0.02)
    return BestAttack(
        attack=attack,
        value=value,
        low=ends[0],
        high=ends[1],
        control="prior",
        known=0.62,
        leak=leak,
    )


def compared(name: str, attack: str | None, value: float | None, total: float) -> ComparedMechanism:
    leak = best(attack, value, leak=value is not None)
    return ComparedMechanism(
        mechanism=name,
        epsilon=5.0 if name == "add" else None,
        solver="sgd",
        accuracy=0.95,
        auc=0.99,
        label_epsilon_total=total,
        assumption="",
        shuffled=leak,
        real=leak,
        verdict="x",
        estimate=Estimate(10, 2.0, 100, 200),
    )


COMPARISON = Comparison(
    data=TRAINING.data,
    seed=7,
    seeds=1,
    scheme="bfv",
    key_bits=128,
    ranked_by="accuracy",
    centralised_auc=0.99,
    bob_alone_auc=None,
    compared=(compared("sealed", None, None, 0.0), compared("add", "sign", 0.9, 5.0)),
    refused=(),
)
TRAINED = Runs((TRAINING,))
RESULTS: dict[str, Result] = {
    "train": TRAINED,
    "seeds": Runs((TRAINING, replace(TRAINING, seed=8))),
    "audit": leaking(),
    "quiet": quiet(),
    "demo": DemoResult((leaking(), quiet()), "demo.html"),
    "compare": COMPARISON,
    "bob": BOB,
    "alice": ALICE,
    "dry-run": DRY_RUN,
}


def settings_of(result: Result) -> dict[str, object]:
    if isinstance(result, Runs | AuditResult):
        record = result.first.to_dict()
        names = ("mechanism", "epsilon", "solver", "scheme", "seed", "epochs", "permute_labels")
        return {name: record[name] for name in names} | {"test_fraction": 0.2}
    return {"mechanism": result.subject().mechanism}


def place(folder: Path, name: str, result: Result | None = None, **changes: Any) -> Path:
    """Writes a result as a command leaves it, in a folder of that name."""
    given = RESULTS[name] if result is None else result
    party = isinstance(given, PartyRun | DryRun)
    facts = {"settings": settings_of(given), **changes}
    manifest: Manifest = replace(PLAN, kind=given.kind, private=party, **facts)
    files = {RESULT: to_json(given.to_dict()).encode()}
    return write_folder(Destination.parse(str(folder / name)), "x", manifest, files)


def place_all(folder: Path) -> Path:
    """One folder for each of ``RESULTS``."""
    for name in RESULTS:
        place(folder, name)
    return folder
