"""What the attacks found, as data: figures of the record, compared and named.

An attack has told more than the controls only where the lower end of its interval lies above the
best control's figure: the rule of ``taciturn.audit.verdict``. Where several runs have no common
figure, the gravest run's is shown, and ``scope`` says so.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from enum import Enum
from typing import Any

from taciturn.report.record import Record
from taciturn.report.runs import scope_of
from taciturn.report.words import clean, interval, number, share


class Status(Enum):
    """What an audit came to: a word for style sheets, a sign and a few words for people."""

    REFUTED = ("refuted", "▲", "Claim refuted")
    LEAK = ("leak", "▲", "Leak shown")
    CERTAIN = ("certain", "◆", "Leak possible")
    NOT_SHOWN = ("not-shown", "○", "No leak shown; not a proof of safety")
    NOT_TESTED = ("not-tested", "○", "Nothing tested; not a proof of safety")
    CHECK = ("check", "■", "A check of the audit, not of the protocol")

    @property
    def word(self) -> str:
        """One word, for a style sheet."""
        return self.value[0]

    @property
    def sign(self) -> str:
        """A shape that goes with the colour."""
        return self.value[1]

    @property
    def label(self) -> str:
        """A few words."""
        return self.value[2]


GRAVEST_FIRST = (Status.LEAK, Status.CERTAIN, Status.NOT_SHOWN, Status.NOT_TESTED)


@dataclass(frozen=True, slots=True)
class Control:
    """What is known without the messages."""

    name: str
    accuracy: float | None
    auc: float | None


@dataclass(frozen=True, slots=True)
class Attack:
    """What an attack told.

    ``by_accuracy`` and ``by_auc`` say whether the lower end of that figure's interval lies above
    the best control's figure.
    """

    name: str
    accuracy: float | None
    accuracy_low: float | None
    accuracy_high: float | None
    auc: float | None
    auc_low: float | None
    auc_high: float | None
    decided: float | None
    decided_correct: float | None
    seconds: float | None
    remark: str
    by_accuracy: bool
    by_auc: bool

    @property
    def above(self) -> bool:
        """Whether it told more than the controls, by either figure."""
        return self.by_accuracy or self.by_auc


@dataclass(frozen=True, slots=True)
class Lead:
    """The figure that stands in large type: an attack's, or where there is none a control's."""

    figure: str
    value: float | None
    low: float | None
    high: float | None
    attack: str
    control: str
    control_value: float | None


@dataclass(frozen=True, slots=True)
class Findings:
    """What was found in one run, or in the mean of several; ``scope`` says in which.

    Of several runs, ``leaking`` counts those that show a leak by themselves, and ``alone`` says it:
    the interval of a mean over few runs is wide. ``status`` is a leak where the mean or half of the
    runs show it, and a possible one where fewer do: of many runs, one may by chance.
    """

    title: str
    meaning: str
    scope: str
    status: Status
    controls: tuple[Control, ...]
    attacks: tuple[Attack, ...]
    lead: Lead
    leaking: int
    alone: str
    verdicts: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Point:
    """An attack's accuracy after so many epochs."""

    epochs: int
    accuracy: float
    low: float
    high: float


@dataclass(frozen=True, slots=True)
class Curve:
    """An attack's accuracy over the epochs."""

    name: str
    points: tuple[Point, ...]


@dataclass(frozen=True, slots=True)
class OverEpochs:
    """The canary run's attacks after fewer epochs, beside always guessing the commoner label."""

    curves: tuple[Curve, ...]
    prior: float | None
    scope: str


def run_findings(record: Record, several: str) -> Findings:
    """What was found in the run that was asked for, or in the mean of several."""
    runs = record.get("runs", [])
    shuffled = record.get("permute_labels")
    return _findings(
        record,
        title="This run" if shuffled or record.get("shuffle_truth") else "The real run",
        meaning=(
            "Its labels were shuffled before training: it is a canary run itself."
            if shuffled
            else "A good model tells much by itself. Only what lies beyond the controls comes from "
            "the messages."
        ),
        scope=several,
        alone=runs,
    )


def canary_source(record: Record, several: str) -> tuple[Record | None, str]:
    """Which record's canary to show, and whose it is: of several runs the gravest."""
    if record.get("permute_labels"):
        return None, ""
    if record.get("canary") is not None:
        return record, several
    having = [run for run in record.get("runs", []) if run.get("canary")]
    if not having:
        return None, ""
    gravest = min(having, key=lambda run: GRAVEST_FIRST.index(attacks_of(run["canary"])[1]))
    return gravest, scope_of(record, gravest)


def canary_findings(source: Record | None, scope: str, runs: Sequence[Record]) -> Findings | None:
    """What was found where labels were shuffled before training."""
    if source is None:
        return None
    return _findings(
        source["canary"],
        title="Labels shuffled before training",
        meaning="A canary run: the columns say nothing about its labels, so whatever is told "
        "beyond the controls is the protocol's own leak.",
        scope=scope,
        alone=[run["canary"] for run in runs if run.get("canary")],
    )


def over_epochs(
    record: Record, source: Record | None, scope: str, canary: Findings | None
) -> OverEpochs | None:
    """The curves of the same canary run, or of the first that has any."""
    rows = (source or {}).get("over_epochs")
    for run in record.get("runs", []):
        if not rows and run.get("over_epochs"):
            rows, scope = run["over_epochs"], scope_of(record, run)
    if not rows:
        return None
    points: dict[str, list[Point]] = {}
    for row in rows:
        for entry in row["attacks"]:
            ends = [number(entry.get(key)) for key in _ENDS]
            if None not in ends:
                point = Point(int(row["epochs"]), *(end for end in ends if end is not None))
                points.setdefault(clean(entry["name"]), []).append(point)
    if not points:
        return None
    controls = canary.controls if canary else ()
    return OverEpochs(
        curves=tuple(Curve(name, tuple(found)) for name, found in points.items()),
        prior=next((each.accuracy for each in controls if each.name == "prior"), None),
        scope=scope,
    )


def tells(found: Findings) -> str:
    """One sentence: the lead figure beside the best control's."""
    lead = found.lead
    whose = f"{found.title}{f' ({found.scope})' if found.scope else ''}"
    control = f"the best control, {lead.control},"
    if not lead.attack:
        return (
            f"{whose}: {control} is right about {share(lead.control_value)} of the labels, "
            "without any message."
        )
    measured = f"(95 % interval {interval(lead.low, lead.high)})"
    if lead.figure == "AUC":
        sentence = (
            f"{whose}: {lead.attack} ranks the labels with an AUC of {share(lead.value)} "
            f"{measured}; {control} has {share(lead.control_value)}."
        )
    else:
        sentence = (
            f"{whose}: {lead.attack} is right about {share(lead.value)} of the labels {measured}; "
            f"{control} about {share(lead.control_value)}."
        )
    sure = [attack for attack in found.attacks if attack.decided_correct is not None]
    if found.status is Status.CERTAIN and sure:
        surest = max(sure, key=lambda attack: attack.decided or 0.0)
        sentence += (
            f" {surest.name} calls {share(surest.decided)} of the labels certain, and "
            f"{share(surest.decided_correct)} of those are right."
        )
    return f"{sentence} {found.alone}".strip()


def controls_of(found: Record) -> tuple[Control, ...]:
    """What is known without the messages."""
    return tuple(
        Control(clean(each["name"]), number(each["accuracy"]), number(each["auc"]))
        for each in found["controls"]
    )


def attacks_of(found: Record) -> tuple[tuple[Attack, ...], Status]:
    """The attacks, and what they come to."""
    controls = controls_of(found)
    known, known_auc = _best(controls, "accuracy"), _best(controls, "auc")
    attacks = tuple(_attack(each, known, known_auc) for each in found["attacks"])
    return attacks, _status(attacks)


def lead_of(controls: Sequence[Control], attacks: Sequence[Attack]) -> Lead:
    """The strongest attack that told more, by the figure that shows it; or else the best one."""
    by_auc = [attack for attack in attacks if attack.by_auc]
    if by_auc and not any(attack.by_accuracy for attack in attacks):
        best, control = _best(by_auc, "auc"), _best(controls, "auc")
        return Lead(
            "AUC", best.auc, best.auc_low, best.auc_high, best.name, control.name, control.auc
        )
    control = _best(controls, "accuracy") or Control("no control", None, None)
    best = _best([attack for attack in attacks if attack.by_accuracy] or attacks, "accuracy")
    if best is None:
        return Lead("accuracy", None, None, None, "", control.name, control.accuracy)
    return Lead(
        "accuracy",
        best.accuracy,
        best.accuracy_low,
        best.accuracy_high,
        best.name,
        control.name,
        control.accuracy,
    )


def _findings(
    found: Record, *, title: str, meaning: str, scope: str, alone: Sequence[Record] = ()
) -> Findings:
    controls = controls_of(found)
    attacks, status = attacks_of(found)
    each = [attacks_of(run)[1] for run in alone]
    verdicts = [run.get("verdict") for run in alone] or [found.get("verdict")]
    words = f"Taken alone, {each.count(Status.LEAK)} of {len(each)} runs show an attack above the "
    return Findings(
        title=title,
        meaning=meaning,
        scope=scope,
        status=_over_runs(status, each, of_mean=not any(found is run for run in alone)),
        controls=controls,
        attacks=attacks,
        lead=lead_of(controls, attacks),
        leaking=each.count(Status.LEAK),
        alone=f"{words}controls." if each else "",
        verdicts=tuple(dict.fromkeys(clean(verdict) for verdict in verdicts if verdict)),
    )


def _over_runs(shown: Status, each: Sequence[Status], *, of_mean: bool) -> Status:
    """What several runs come to; ``shown`` counts by itself where it is of their mean."""
    gravest = min([shown, *each], key=GRAVEST_FIRST.index)
    enough = (of_mean and shown is Status.LEAK) or 2 * each.count(Status.LEAK) >= len(each)
    return Status.CERTAIN if gravest is Status.LEAK and not enough else gravest


def _best(entries: Iterable[Control | Attack], figure: str) -> Any:  # noqa: ANN401 - as it came
    """The entry whose figure is the largest, or None where there is no figure."""
    having = [entry for entry in entries if getattr(entry, figure) is not None]
    return max(having, key=lambda entry: float(getattr(entry, figure)), default=None)


def _attack(entry: Record, known: Control | None, known_auc: Control | None) -> Attack:
    def above(low: float | None, control: float | None) -> bool:
        return low is not None and control is not None and low > control

    figures = {
        key: number(entry.get(key))
        for key in (
            "accuracy",
            "accuracy_low",
            "accuracy_high",
            "auc",
            "auc_low",
            "auc_high",
            "decided",
            "decided_correct",
            "seconds",
        )
    }
    return Attack(
        name=clean(entry["name"]),
        remark=clean(entry.get("remark") or ""),
        by_accuracy=above(figures["accuracy_low"], known.accuracy if known else None),
        by_auc=above(figures["auc_low"], known_auc.auc if known_auc else None),
        **figures,
    )


def _status(attacks: Sequence[Attack]) -> Status:
    if not attacks:
        return Status.NOT_TESTED
    if any(attack.above for attack in attacks):
        return Status.LEAK
    if any(attack.decided_correct is not None for attack in attacks):
        return Status.CERTAIN
    return Status.NOT_SHOWN


_ENDS = ("accuracy", "accuracy_low", "accuracy_high")
