"""One audit, or several seeds of it: means of what the attacks found; the result of ``demo``."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from statistics import fmean
from typing import TYPE_CHECKING, Any, ClassVar, Self

from taciturn.results.figures import ATTACK, Curve, Values
from taciturn.results.record_schema import properties
from taciturn.results.runs import Runs, mean_or_none
from taciturn.results.serialise import Result, Subject, record_of
from taciturn_audit.results.audit import (
    AttackScore,
    AuditRun,
    Control,
    Evidence,
    Findings,
    Membership,
)
from taciturn_audit.results.columns import BobSeat, mean_adversary
from taciturn_audit.results.figures import adversary_values, leakage_values
from taciturn_audit.results.openings import OpeningFindings, mean_openings

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from taciturn.report.blocks import Block, Page
    from taciturn.results.figures import Part


@dataclass(frozen=True, slots=True, repr=False)
class AuditResult(Runs[AuditRun]):
    """Audit of one run, or of several seeds of it.

    Of evidence the strongest stands for all: the best of several bounds, which fails as often as
    any of them does.
    """

    kind: ClassVar[str] = "audit"
    known_by: ClassVar[str] = "attacks"
    run_kind: ClassVar[type[Any]] = AuditRun

    def attack(self, name: str) -> dict[str, Any]:
        """One attack's figures; KeyError if it was not run."""
        for score in self.findings.attacks:
            if score.name == name:
                return record_of(score)
        raise KeyError(name)

    @property
    def findings(self) -> Findings:
        """Findings of the run, or of the mean of several."""
        return mean_findings([run.findings for run in self.runs])

    @property
    def canary(self) -> Findings | None:
        """Findings on labels shuffled before training, if every run has them."""
        canaries = [run.canary for run in self.runs if run.canary is not None]
        return mean_findings(canaries) if len(canaries) == len(self.runs) else None

    @property
    def bob_seat(self) -> BobSeat | None:
        """Findings with Bob as the adversary, if every run has them."""
        seats = [run.bob_seat for run in self.runs if run.bob_seat is not None]
        return mean_adversary(seats) if len(seats) == len(self.runs) else None

    @property
    def openings(self) -> OpeningFindings | None:
        """Findings of the attacks on what is opened after training, if every run has them."""
        parts = [run.openings for run in self.runs if run.openings is not None]
        return mean_openings(parts) if len(parts) == len(self.runs) else None

    @property
    def evidence(self) -> Evidence | None:
        """The strongest evidence of all runs."""
        proofs = [run.evidence for run in self.runs if run.evidence is not None]
        if not proofs:
            return None
        strongest = max(proofs, key=lambda proof: proof.lower_bound)
        return replace(strongest, failure=min(1.0, sum(proof.failure for proof in proofs)))

    @property
    def membership(self) -> Membership | None:
        """Means of the figures, None where a run has none."""
        parts = [run.membership for run in self.runs if run.membership is not None]
        if len(parts) < len(self.runs):
            return None
        names = [entry.name for entry in fields(Membership)]
        means: dict[str, Any] = {
            name: mean_or_none(getattr(p, name) for p in parts) for name in names
        }
        return Membership(**means)

    def _summary(self) -> dict[str, Any]:
        # Not super(): a dataclass with slots is another class than the one it is written in.
        record = record_of(self.means) | _scores([run.findings for run in self.runs])
        canaries = [run.canary for run in self.runs if run.canary is not None]
        if len(canaries) == len(self.runs):
            first = record_of(canaries[0])
            head = {"skipped": first["skipped"], "verdict": first["verdict"]}
            record["canary"] = head | _scores(canaries)
        if self.bob_seat is not None:
            record["bob_seat"] = record_of(self.bob_seat)
        if self.openings is not None:
            record["openings"] = record_of(self.openings)
        if self.evidence is not None:
            record["evidence"] = record_of(self.evidence)
        if self.membership is not None:
            means = record_of(self.membership).items()
            record["membership"] = {name: value for name, value in means if value is not None}
        return record

    @classmethod
    def _mean_schemas(cls, shared: dict[str, Any]) -> dict[str, Any]:
        # A figure that one of the runs has not has no mean.
        optional = {"type": "object", "properties": properties(Membership, shared)[0]}
        return {"membership": {"anyOf": [optional, {"type": "null"}]}}

    def blocks(self) -> list[Block]:
        """Report blocks for the terminal."""
        from taciturn_audit.report.audit import audit_blocks

        return audit_blocks(self)

    def page(self, made: str = "") -> Page:
        """The audit's report."""
        from taciturn_audit.report.page import audit_page

        return audit_page(self)

    def table_rows(self) -> list[dict[str, Any]]:
        """One row for each attack and control, of each run and its canary."""
        return [
            {"seed": run.training.seed, "labels": labels, **row}
            for run in self.runs
            for labels, findings in (("true", run.findings), ("shuffled", run.canary))
            if findings is not None
            for row in _table_rows(findings)
        ]

    def figure(self) -> Figure:
        """Each attack against the controls."""
        from taciturn_audit.report.plots import attacks_figure
        from taciturn_audit.verdict import conclude

        conclusion = conclude(self)
        weighed = conclusion.canary or conclusion.run
        return attacks_figure(weighed.findings, weighed.verdict)

    def curves(self) -> dict[str, Curve]:
        """The best attack's accuracy by number of epochs."""
        steps = [row for row in self.runs[0].over_epochs if row.attacks]
        best = [(row.epochs, max(attack.accuracy for attack in row.attacks)) for row in steps]
        return {ATTACK: tuple(best)} if best else {}

    def parts(self, bare: Part) -> tuple[Part, ...]:
        """One run, with what the best attack told."""
        from taciturn_audit.verdict import conclude, leakage

        (part,), conclusion = Runs.parts(self, bare), conclude(self)
        true = leakage(conclusion.run, shuffled=self.first.permute_labels)
        shuffled = None if conclusion.canary is None else leakage(conclusion.canary, shuffled=True)
        bound = None if conclusion.evidence is None else conclusion.evidence.lower_bound
        entry = replace(part.entry, leakage=shuffled or true, verdict=conclusion.headline)
        values = {
            **part.values,
            **leakage_values(true),
            **leakage_values(shuffled),
            **({} if bound is None else {"leakage/epsilon that guesses prove": bound}),
            **adversary_values(self.bob_seat),
            **_attack_values("true", self.findings),
            **_attack_values("shuffled", self.canary),
        }
        return (replace(part, entry=entry, values=values),)

    def __repr__(self) -> str:
        first, findings = self.first, self.findings
        return f"AuditResult({first.data.dataset}, {first.agreement.mechanism}: {findings.verdict})"


def mean_findings(parts: Sequence[Findings]) -> Findings:
    """Means over runs of the attacks that the first run has; the rest is the first run's.

    So is the verdict: ``taciturn_audit.verdict`` gives that of the means.
    """
    first = parts[0]
    if len(parts) == 1:
        return first
    controls = []
    for control in first.controls:
        same = [
            candidate
            for part in parts
            for candidate in part.controls
            if candidate.name == control.name
        ]
        accuracy, auc = (
            fmean(observation.accuracy for observation in same),
            fmean(observation.auc for observation in same),
        )
        controls.append(Control(control.name, accuracy, auc))
    attacks = tuple(_mean_attack(_named(score.name, parts)) for score in first.attacks)
    return replace(first, controls=tuple(controls), attacks=attacks)


def _named(name: str, parts: Sequence[Findings]) -> list[AttackScore]:
    return [score for part in parts for score in part.attacks if score.name == name]


def _mean_attack(scores: Sequence[AttackScore]) -> AttackScore:
    # An attack that applied in one run alone keeps the interval of that run's rows.
    low, high = scores[0].accuracy_low, scores[0].accuracy_high
    if len(scores) > 1:
        # Loaded here: it needs scipy, which a training does without.
        from taciturn_audit.exact_intervals import t_interval

        low, high = t_interval([score.accuracy for score in scores])
    names = ("rows", "accuracy", "auc", "auc_low", "auc_high", "decided", "seconds")
    means: dict[str, Any] = {
        name: fmean(getattr(score, name) for score in scores) for name in names
    }
    decided = sum(score.decided * score.rows for score in scores)
    right = sum(
        score.decided * score.rows * score.decided_correct
        for score in scores
        if score.decided_correct is not None
    )
    return replace(
        scores[0],
        **means,
        accuracy_low=low,
        accuracy_high=high,
        decided_correct=right / decided if decided else None,
        remark=f"mean of {len(scores)} runs",
    )


def _scores(parts: Sequence[Findings]) -> dict[str, Any]:
    mean = mean_findings(parts)
    attacks = [record_of(score) for score in mean.attacks]
    for record in attacks:
        if None in [score.decided_correct for score in _named(record["name"], parts)]:
            # The key keeps the place that scripts know: after the plain means.
            for name in ("decided_correct", "remark"):
                record[name] = record.pop(name)
    return {"controls": [record_of(control) for control in mean.controls], "attacks": attacks}


def _table_rows(findings: Findings) -> list[dict[str, Any]]:
    # With shuffled labels the model is listed among the attacks, and stands once.
    judged = {attack.name for attack in findings.attacks}
    controls = [control for control in findings.controls if control.name not in judged]
    parts = (("control", controls), ("attack", findings.attacks))
    return [{"kind": kind, **record_of(score)} for kind, scores in parts for score in scores]


def _attack_values(labels: str, findings: Findings | None) -> Values:
    return {
        f"attack/{score.name}/{labels}/{figure}": getattr(score, figure)
        for score in (() if findings is None else findings.attacks)
        for figure in ("accuracy", "auc")
    }


@dataclass(frozen=True, slots=True)
class DemoResult(Result):
    """Audits of several mechanisms, and the path of their report."""

    kind: ClassVar[str] = "demo"
    runs: tuple[AuditResult, ...] = field(repr=False)
    html: str

    @classmethod
    def recognises(cls, record: Mapping[str, Any]) -> bool:
        """Whether the record lists audits with a page."""
        return "html" in record and isinstance(record.get("runs"), list)

    @classmethod
    def from_record(cls, record: Mapping[str, Any]) -> Self:
        """Read each audit, with means computed anew."""
        return cls(tuple(map(AuditResult.from_record, record["runs"])), str(record["html"]))

    @classmethod
    def schemas(cls, shared: dict[str, Any]) -> dict[str, Any]:
        """The schema, which refers to that of an audit."""
        schema = {
            "description": cls.__doc__ or "",
            "type": "object",
            "properties": {
                "runs": {"type": "array", "items": {"$ref": "#/$defs/audit"}},
                "html": {"type": "string"},
            },
            "required": ["runs", "html"],
            "additionalProperties": False,
        }
        return {cls.kind: schema}

    def blocks(self) -> list[Block]:
        """Report blocks for the terminal."""
        from taciturn_audit.report.demo import demo_blocks

        return demo_blocks(self)

    def page(self, made: str = "") -> Page:
        """The mechanisms side by side."""
        from taciturn_audit.report.demo import demo_page

        return demo_page(self)

    def subject(self) -> Subject:
        """The data of all audits; their mechanisms differ."""
        return replace(self.runs[0].subject(), mechanism=None)

    def parts(self, bare: Part) -> tuple[Part, ...]:
        """One run for each mechanism."""
        audited = [part for audit in self.runs for part in audit.parts(bare)]
        return tuple(
            replace(part, entry=replace(part.entry, part=part.entry.mechanism or ""))
            for part in audited
        )
