"""Report of ``taciturn demo``: mechanisms side by side, what each side recovered, the model."""

from __future__ import annotations

from dataclasses import dataclass

from taciturn.report.blocks import (
    Badge,
    Block,
    Details,
    Figure,
    Figures,
    Page,
    Paragraph,
    Section,
    Span,
    Table,
    Words,
    table,
)
from taciturn.report.formatting import NONE, footer, share
from taciturn_audit.report.audit import SHUFFLED, scores
from taciturn_audit.results.columns import ColumnFindings, column_scores
from taciturn_audit.results.runs import AuditResult, DemoResult
from taciturn_audit.verdict import Status, weigh_runs

_DESCRIPTIONS = {
    "none": "no protection",
    "hybrid": "from the paper",
    "sealed": "protects labels",
    "mutual": "protects labels and columns",
}
_BOTH, _ONE, _NEITHER = (
    ("leak", "▲", "Both sides learn the other's data"),
    ("certain", "◆", "One side learns the other's data"),
    ("not-shown", "○", "Neither side learns the other's data by any attack we know"),
)


@dataclass(frozen=True, slots=True)
class Outcome:
    """What each side recovered in one audit; None where no attack applies.

    Labels were shuffled before training, and Alice's rows permuted against Bob's, so that anything
    above ``baseline_labels`` and ``baseline_values`` was leaked by the protocol.
    """

    mechanism: str
    labels: float | None
    baseline_labels: float
    labels_leak: bool
    values: float | None
    baseline_values: float | None
    values_leak: bool
    known_rows: int
    accuracy: float | None

    @property
    def badge(self) -> Badge:
        """The outcome in a few words."""
        return Badge(*(_NEITHER, _ONE, _BOTH)[self.labels_leak + self.values_leak])

    @property
    def sentence(self) -> str:
        """What Alice and Bob recovered."""
        alice = (
            f"Alice recovers {share(self.labels)} of Bob's labels, where guessing recovers "
            f"{share(self.baseline_labels)}"
            if self.labels_leak
            else "no attack we know recovers labels from what Alice receives"
        )
        known = f", with {self.known_rows} of her rows known to him" if self.known_rows else ""
        bob = (
            f"Bob reconstructs {share(self.values)} of Alice's values{known}, where guessing "
            f"finds {share(self.baseline_values)}"
            if self.values_leak
            else "no attack we know reconstructs Alice's values from what Bob receives"
        )
        if self.baseline_values is None:
            bob = "what Bob learns was not tested"
        return f"{alice[:1].upper()}{alice[1:]}; {bob}."


def outcome_of(audit: AuditResult) -> Outcome:
    """Best attack of either side, with its baseline."""
    canary = audit.canary
    weighed = weigh_runs([canary or audit.findings], shuffled=canary is not None)
    labels = [attack.accuracy for attack in weighed.findings.attacks]
    prior = max(c.accuracy for c in weighed.findings.controls if c.name == "prior")
    seat = audit.bob_seat
    columns = None if seat is None else seat.canary or seat.findings
    # An estimate up to a linear map is not yet a value.
    attacks = [] if columns is None else [a for a in columns.attacks if a.ambiguity == "none"]
    best = max(attacks, key=lambda attack: attack.recovered, default=None)
    return Outcome(
        mechanism=audit.first.agreement.mechanism,
        labels=max(labels, default=None),
        baseline_labels=prior,
        labels_leak=weighed.status is Status.LEAK,
        values=None if best is None else best.recovered,
        baseline_values=None if columns is None else max(c.recovered for c in columns.controls),
        values_leak=best is not None and columns is not None and columns.leaks,
        known_rows=0 if best is None else round(best.known_rows),
        accuracy=audit.means.test.get("accuracy"),
    )


def demo_blocks(demo: DemoResult) -> list[Block]:
    """One table, one sentence, and where the report is."""
    outcomes = [outcome_of(audit) for audit in demo.runs]
    return [
        _table(outcomes, _subject(demo)),
        Paragraph(_closing(outcomes), "strong"),
        Paragraph(f"Report: {demo.html}", "muted"),
    ]


def demo_page(demo: DemoResult) -> Page:
    """The page of ``taciturn demo``."""
    outcomes, last = [outcome_of(audit) for audit in demo.runs], demo.runs[-1]
    leaking = any(outcome.labels_leak or outcome.values_leak for outcome in outcomes)
    worst, best = outcomes[0], outcomes[-1]
    headline = (
        f"Without protection Alice recovers {share(worst.labels, 0)} of the labels"
        if worst.mechanism == "none" and worst.labels_leak
        else "What each side learns about the other's data"
    )
    summary = Section(
        headline,
        "summary",
        (Paragraph(_closing(outcomes)), _bars(outcomes), _table(outcomes)),
        "Summary",
        best.badge if not leaking else None,
    )
    return Page(
        window="Taciturn demo",
        title="Four trainings, attacked from both sides",
        subject=_subject(demo),
        blocks=(
            summary,
            *(
                _mechanism(number, outcome, audit)
                for number, (outcome, audit) in enumerate(zip(outcomes, demo.runs, strict=True))
            ),
            Section("How to read this page", "reading", tuple(map(Paragraph, _READING)), "Reading"),
        ),
        footer=footer(last.version, last.audited),
    )


_READING = (
    "Alice holds columns, Bob holds the other columns and the labels. They train one model "
    "together. Each party follows the protocol, and then analyses everything it received.",
    "Labels recovered: share of Bob's labels that Alice's best attack guesses correctly. The "
    "labels were shuffled before training, so the columns carry no information about them, and "
    "anything above the baseline (always guessing the commonest label) was leaked by the protocol.",
    "Values reconstructed: share of Alice's values that Bob's best attack finds to within a tenth "
    "of the column's standard deviation. Her rows were permuted against his before training, so "
    "anything above the baseline (the best constant of each column) was leaked by the protocol.",
    "That no attack we know succeeds is not a proof of safety.",
)


def _subject(demo: DemoResult) -> str:
    data = demo.runs[0].first.data
    return (
        f"{data.dataset}, {data.rows} training rows; Alice holds {data.alice_columns} "
        f"columns, Bob {data.bob_columns} columns and the labels"
    )


def _table(outcomes: list[Outcome], caption: str = "") -> Table:
    rows = [
        (
            _name(outcome),
            _cell(outcome.labels, outcome.labels_leak),
            NONE if outcome.baseline_values is None else _cell(outcome.values, outcome.values_leak),
            share(outcome.accuracy),
        )
        for outcome in outcomes
    ]
    baselines = [o.baseline_values for o in outcomes if o.baseline_values is not None]
    guessing = (
        Span("baseline: guessing", "muted"),
        share(outcomes[0].baseline_labels),
        share(max(baselines, default=None)),
        NONE,
    )
    headings = (
        "mechanism",
        "labels recovered by Alice",
        "values reconstructed by Bob",
        "held-out accuracy",
    )
    drawn = table(headings, rows, caption=caption, label="Summary")
    return Table(drawn.columns, (*drawn.groups, (guessing,)), drawn.caption, drawn.label)


def _name(outcome: Outcome) -> str:
    described = _DESCRIPTIONS.get(outcome.mechanism)
    return f"{outcome.mechanism}: {described}" if described else outcome.mechanism


def _cell(value: float | None, leak: bool) -> Words:
    if value is None:
        return Span("no attack applies", "good")
    return Span(share(value), "bad" if leak else "")


def _closing(outcomes: list[Outcome]) -> str:
    kept = [o for o in outcomes if not o.labels_leak and not o.values_leak]
    kept = [outcome for outcome in kept if outcome.baseline_values is not None]
    if not kept:
        return "With every mechanism here an attack recovers data of the other side."
    names = " and ".join(outcome.mechanism for outcome in kept)
    return (
        f"Only with {names} did no attack we know recover the other side's data, at a held-out "
        f"accuracy of {share(kept[0].accuracy)}; this is not a proof of safety."
    )


def _bars(outcomes: list[Outcome]) -> Figures:
    # Loaded here: drawing takes a second to load, and a terminal has no picture.
    from taciturn_audit.report.plots import bars_svg

    names = [outcome.mechanism for outcome in outcomes]
    parts = [
        (
            "labels",
            "Labels recovered by Alice",
            [outcome.labels for outcome in outcomes],
            [outcome.labels_leak for outcome in outcomes],
            outcomes[0].baseline_labels,
        ),
        (
            "values",
            "Values recovered by Bob",
            [outcome.values for outcome in outcomes],
            [outcome.values_leak for outcome in outcomes],
            next((o.baseline_values for o in outcomes if o.baseline_values is not None), None),
        ),
        ("accuracy", "Held-out accuracy", [o.accuracy for o in outcomes], None, None),
    ]
    figures = [
        Figure(
            ident,
            title,
            "; ".join(
                f"{name} {'no attack applies' if value is None else share(value)}"
                for name, value in zip(names, values, strict=True)
            ),
            bars_svg(names, values, leaks, baseline, ident),
        )
        for ident, title, values, leaks, baseline in parts
    ]
    caption = (
        "Red: an attack recovers more than guessing. Green: none does, or none applies. The dashed "
        "line is what guessing recovers without any message."
    )
    return Figures(tuple(figures), caption)


def _mechanism(number: int, outcome: Outcome, audit: AuditResult) -> Section:
    canary = audit.canary or audit.findings
    weighed = weigh_runs([canary], shuffled=audit.canary is not None)
    details: list[Block] = [scores(canary, weighed.verdict, f"Labels. {SHUFFLED}")]
    seat = audit.bob_seat
    if seat is not None:
        columns: ColumnFindings = seat.canary or seat.findings
        details.append(column_scores(columns, "Columns. Alice's rows permuted before training"))
    accuracy = (
        f"Held-out accuracy {share(outcome.accuracy)}; the same model trained on pooled data has "
        f"{share(audit.means.centralised.get('accuracy'))}."
    )
    return Section(
        _name(outcome),
        f"mechanism-{number}",
        (
            Paragraph(outcome.sentence),
            Paragraph(accuracy, "muted"),
            Details("All attacks and controls", tuple(details)),
        ),
        outcome.mechanism,
        outcome.badge,
    )
