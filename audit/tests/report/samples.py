"""Audits as ``taciturn_audit.session`` gives them, with figures of real runs of breast-cancer."""

from __future__ import annotations

import math
from dataclasses import replace
from functools import cache
from typing import Any

from taciturn.report.blocks import Page
from taciturn.results.training import HiddenBatches
from taciturn_audit.report.page import audit_page
from taciturn_audit.results.audit import (
    Accuracy,
    AfterEpochs,
    AttackScore,
    AuditRun,
    Control,
    Evidence,
    Findings,
    Membership,
    MessageSeen,
)
from taciturn_audit.results.columns import Skipped
from taciturn_audit.results.runs import AuditResult
from taciturn_audit.verdict import weigh
from tests.report.samples import TRAINING, ledger, metrics


def score(name: str, accuracy: float, low: float, high: float, **more: Any) -> AttackScore:
    plain = AttackScore(
        name, 455, accuracy, low, high, accuracy, low, high, 0.0, None, seconds=0.12, remark=""
    )
    return replace(plain, **more)


def controls(prior: float, model: float, model_auc: float) -> tuple[Control, ...]:
    return Control("prior", prior, 0.5), Control("model-only", model, model_auc)


def findings(
    known: tuple[Control, ...], *attacks: AttackScore, skipped: tuple[Skipped, ...] = ()
) -> Findings:
    return Findings(known, attacks, skipped, weigh(known, attacks).sentence)


def over_epochs(rows: dict[str, list[float]]) -> tuple[AfterEpochs, ...]:
    def point(name: str, value: float) -> Accuracy:
        ends = (value - 0.04 if value < 1 else 0.9919, min(1.0, value + 0.04))
        return Accuracy(name, value, *ends, value, *ends)

    return tuple(
        AfterEpochs(epochs, tuple(point(name, values[place]) for name, values in rows.items()))
        for place, epochs in enumerate((1, 2, 3, 5, 10))
    )


def message(kind: str, count: int, size: int, allows: str, **more: Any) -> MessageSeen:
    return replace(MessageSeen(kind, count, size, False, None, None, allows), **more)


TOLD = (
    score(
        "exact-solve",
        1.0,
        0.9919,
        1.0,
        decided=1.0,
        decided_correct=1.0,
        remark="290 of 290 batches determined",
    ),
    score("least-squares", 1.0, 0.9919, 1.0),
    score("stacked", 1.0, 0.9919, 1.0, seconds=1.3),
)


COMMAND = "taciturn audit --dataset breast-cancer --mechanism none --seed 7 --html a.html"


def leaking_run(seed: int = 7) -> AuditRun:
    """The paper's baseline: every label is told."""
    skipped = (
        Skipped("likelihood", "Alice does not have noisy residues"),
        Skipped("sparse-recovery", "no batch has more rows than columns"),
    )
    return AuditRun(
        training=replace(TRAINING, seed=seed, cost=replace(TRAINING.cost, seconds=3.4 + seed)),
        shuffle_truth=False,
        findings=findings(controls(0.6242, 0.9868, 0.9981), *TOLD, skipped=skipped),
        canary=findings(controls(0.6242, 0.5912, 0.6123), *TOLD),
        over_epochs=over_epochs(
            {
                "exact-solve": [1.0] * 5,
                "least-squares": [0.93, 0.96, 0.97, 0.99, 1.0],
                "stacked": [0.62, 0.71, 0.84, 0.97, 1.0],
            }
        ),
        evidence=None,
        messages=(
            message("Hello", 1, 512, "Bob's settings, number of rows and columns: no label"),
            message("KeyOffer", 1, 401234, "compute with values under Bob's key; decrypt nothing"),
            message("BatchSeed", 1, 64, "know which rows are in which batch"),
            message(
                "EncryptedResidues",
                290,
                57250000,
                "multiply it by her columns; read nothing without Bob's key",
                encrypted=True,
                scheme="bfv",
                key_bits=128,
            ),
            message(
                "RevealedGradient",
                290,
                78010,
                "take her mask off and have the sum of residues times columns, X^T r, exactly",
            ),
        ),
        membership=None,
    )


def quiet_run() -> AuditRun:
    """Additive noise at a small epsilon: nothing shown, and a claim that stands."""
    names = ("exact-solve", "least-squares", "stacked", "sparse-recovery")
    training = replace(
        TRAINING,
        agreement=TRAINING.agreement.model_copy(
            update={
                "mechanism": "add",
                "epsilon": 0.01,
                "noise": "discrete",
                "bob_update": "released",
                "scheme": "clear",
                "key_bits": 0,
            }
        ),
        encrypted=False,
        ledger=ledger(
            0.01,
            0.01,
            0.005,
            10,
            "each release alone is protected, and releases add up: basic composition",
        ),
        comparison=replace(TRAINING.comparison, weight_bound=None, max_weight_difference=1.508),
        metrics=replace(TRAINING.metrics, test=metrics(0.8737, 0.9183)),
        notes=(),
    )
    return replace(
        leaking_run(),
        training=training,
        findings=findings(
            controls(0.6242, 0.9736, 0.9975),
            score("likelihood", 0.9736, 0.9545, 0.9862, auc=0.9975, auc_low=0.98, auc_high=0.9996),
            score("sign", 0.5714, 0.5245, 0.6174),
            skipped=tuple(
                Skipped(name, "Alice does not have the gradient of each batch in clear")
                for name in names
            ),
        ),
        canary=findings(
            controls(0.6242, 0.5978, 0.61),
            score("likelihood", 0.6132, 0.5667, 0.6582, auc=0.55, auc_low=0.49, auc_high=0.61),
            score("sign", 0.5407, 0.4937, 0.5872, auc=0.54, auc_low=0.48, auc_high=0.59),
        ),
        over_epochs=over_epochs(
            {
                "likelihood": [0.53, 0.55, 0.57, 0.6, 0.6132],
                "sign": [0.52, 0.53, 0.53, 0.54, 0.5407],
            }
        ),
        evidence=Evidence(0.05, 0.0, "likelihood", 455, 233, 455, 0.05, False),
        messages=(
            message("Hello", 1, 512, "Bob's settings, number of rows and columns: no label"),
            message(
                "NoisyResidues",
                290,
                31000,
                "have each row's residue with noise, whose law she knows",
            ),
        ),
    )


REFUTING = Evidence(0.05, 1.25, "likelihood", 455, 401, 455, 0.05, True)


def hybrid_run() -> AuditRun:
    """The paper's hybrid mechanism, with the membership guesses."""
    hybrid = TRAINING.agreement.model_copy(update={"mechanism": "hybrid", "epsilon": 1.0})
    batches = HiddenBatches(1.0, 111, 22, 40.02, 16.1, 16.3, 0, 0.019, 3, 0.02)
    return replace(
        leaking_run(),
        training=replace(TRAINING, agreement=hybrid, hidden_batches=batches),
        membership=Membership(0.981, 0.967, 0.71, 290, 0.4012, 0.5),
        findings=findings(
            controls(0.6242, 0.9868, 0.9981),
            score("sparse-recovery", 0.9956, 0.9842, 0.9995, decided=0.81, decided_correct=0.999),
            score("least-squares", 0.9868, 0.9715, 0.9951),
        ),
        canary=findings(
            controls(0.6242, 0.578, 0.6),
            score("sparse-recovery", 0.9341, 0.9073, 0.9551, decided=0.8, decided_correct=0.99),
            score("least-squares", 0.8022, 0.7626, 0.8378),
        ),
    )


def rare_run() -> AuditRun:
    """One label in fourteen is a 1: an attack that ranks all rows rightly, below the prior."""
    ranking = {"auc": 1.0, "auc_low": 0.997, "auc_high": 1.0}
    chance = {"auc": 0.51, "auc_low": 0.42, "auc_high": 0.6}
    attacks = (
        score("gradient-norm", 0.9121, 0.8822, 0.9364, **ranking),
        score("sign", 0.8901, 0.8577, 0.9173, **chance),
    )
    return replace(
        leaking_run(),
        findings=findings(controls(0.9297, 0.9341, 0.84), *attacks),
        canary=findings(controls(0.9297, 0.9297, 0.53), *attacks),
    )


def bare_run(*attacks: AttackScore) -> AuditRun:
    """Without canary, evidence, epochs or messages; by default with a figure that is no number."""
    nan = {"auc": math.nan, "auc_low": math.nan, "auc_high": math.nan}
    run = quiet_run()
    return replace(
        run,
        findings=findings(
            run.findings.controls, *(attacks or (score("sign", 0.9, 0.85, 0.93, **nan),))
        ),
        canary=None,
        evidence=None,
        over_epochs=(),
        messages=(),
    )


def one(run: AuditRun) -> AuditResult:
    """An audit of one run, as the command writes it."""
    return AuditResult((run,), "0.1.0", COMMAND)


def leaking() -> AuditResult:
    return one(leaking_run())


def quiet() -> AuditResult:
    return AuditResult((quiet_run(),), "0.1.0")


def refuted() -> AuditResult:
    return one(replace(quiet_run(), evidence=REFUTING))


def hybrid() -> AuditResult:
    return one(hybrid_run())


def rare() -> AuditResult:
    return one(rare_run())


def bare() -> AuditResult:
    return AuditResult((bare_run(),))


def several_runs() -> list[AuditRun]:
    """Three seeds."""
    return [
        replace(run, canary=findings(controls(0.62 + 0.01 * place, 0.59, 0.6), *TOLD))
        for place, run in enumerate(map(leaking_run, (7, 8, 9)))
    ]


def several() -> AuditResult:
    return AuditResult(tuple(several_runs()), "0.1.0", COMMAND)


def hostile() -> AuditResult:
    """Names that would be markup, where nothing escaped them."""
    evil = "<script>document.title='owned'</script>|`*_[x](http://evil.example)\u202e"
    run = hybrid_run()
    training = replace(
        run.training,
        data=replace(run.training.data, dataset=evil),
        notes=(evil, "<img src=x onerror=alert(1)>"),
        preparation=(evil,),
        ledger=replace(run.training.ledger, assumption=evil),
    )
    attack = replace(run.findings.attacks[0], name=evil, remark=evil)
    control = replace(run.findings.controls[0], name=evil)
    return AuditResult(
        (
            replace(
                run,
                training=training,
                findings=Findings((control,), (attack,), (Skipped(evil, evil),), evil),
                messages=(message(evil, 1, 1, evil, encrypted=True, scheme=evil, key_bits=128),),
                over_epochs=over_epochs({evil: [0.5, 0.6, 0.7, 0.8, 0.9]}),
            ),
        ),
        evil,
        f"taciturn audit --data '{evil}' ``` `",
    )


AUDITS = {
    "leaking": leaking,
    "quiet": quiet,
    "refuted": refuted,
    "hybrid": hybrid,
    "rare": rare,
    "bare": bare,
    "several": several,
    "hostile": hostile,
}


@cache
def page(name: str) -> Page:
    """The page of an audit, whose pictures take longer to draw than all else."""
    return audit_page(AUDITS[name]())
