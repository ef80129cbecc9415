"""A comparison of mechanisms as blocks: one table, one picture, a line for each mechanism."""

from __future__ import annotations

from collections.abc import Iterable

from taciturn.report import blocks as b
from taciturn.report.argument import argument
from taciturn.report.formatting import NONE, data_size, duration, epsilon, footer, interval, share
from taciturn.report.training import at_alice, traffic
from taciturn_audit.report.audit import ABOVE, decision
from taciturn_audit.results.compare import BestAttack, ComparedMechanism, Comparison

_NOTE = (
    "Trained and attacked without encryption, which changes none of these figures; time and "
    "traffic are estimated with {scheme}, both parties on this machine. Ciphertexts were not "
    "tested: taciturn audit does that, one mechanism at a time."
)


def compare_blocks(comparison: Comparison) -> list[b.Block]:
    """Report blocks with the table, for a terminal of 100 columns."""
    return [
        b.Paragraph(_subject(comparison), "strong"),
        _table(comparison, digits=1),
        *(b.Paragraph(line, "muted") for line in _reading(comparison)),
        *(b.Paragraph(line, "muted") for line in _lines(comparison)),
        *_refused(comparison),
    ]


def compare_page(comparison: Comparison) -> b.Page:
    """The page of ``taciturn compare --html``."""
    # Loaded here: drawing takes a second to load, and a terminal has no picture.
    from taciturn_audit.report.plots import compare_svg

    by = comparison.ranked_by
    alt = "; ".join(
        f"{name_of(row)}: held-out AUC {share(row.auc)}, labels recovered {_place(row.shuffled)}"
        for row in comparison.compared
    )
    title = "The model's AUC against the labels recovered"
    drawn = b.Figure("compared", title, alt, compare_svg(comparison, "compared"))
    figures = b.Figures(
        (drawn,),
        caption=f"To the right: how well the best attack recovers labels that were shuffled before "
        f"training, by {by}; the dashed line is the baseline without any message. Upwards: the "
        "model's AUC on held-out rows. Red, filled: an attack recovers labels without any bound. "
        "Amber, filled: an attack recovers labels within the ledger's bound. Green, hollow: no "
        "attack we know does. Marks that coincide are drawn side by side. Upper left is best.",
        wide=True,
    )
    table = b.Section(
        "Side by side",
        "table",
        (
            _table(comparison, digits=2),
            *(b.Paragraph(line, "muted") for line in _reading(comparison)),
            *_refused(comparison),
        ),
        "Table",
    )
    findings = b.Section("Findings", "found", (_facts(comparison),), "Findings")
    picture = b.Section(title, "picture", (figures,), "Picture")
    silent = [row for row in comparison.compared if not row.label_epsilon_total]
    names = [row.mechanism for row in silent if comparison.scheme != "clear"]
    # One page has one argument; that of sealed says what mutual adds.
    shown = "sealed" if "sealed" in names else "".join(names[:1])
    reasons = argument(shown, comparison.scheme, comparison.key_bits)
    none = b.Paragraph("Not recorded: the comparison was called from Python.", "muted")
    command = b.Command(comparison.command) if comparison.command else none
    return b.Page(
        window=f"Mechanisms on {comparison.dataset} – Taciturn",
        title="Mechanisms side by side",
        subject=_subject(comparison),
        blocks=(
            _verdict(comparison),
            table,
            picture,
            findings,
            *reasons,
            b.Section("Command", "command", (command,)),
            decision(comparison.audited),
        ),
        footer=footer(comparison.version, comparison.audited),
    )


def _verdict(comparison: Comparison) -> b.Section:
    leaking = [name_of(row) for row in comparison.compared if row.shuffled.leak]
    kept = [name_of(row) for row in comparison.compared if not row.shuffled.leak]
    lines = []
    if leaking:
        worst = max(
            (row for row in comparison.compared if row.shuffled.leak),
            key=lambda row: row.shuffled.value or 0.0,
        )
        lines.append(
            f"Labels leak to Alice with {', '.join(leaking)}. The worst, {name_of(worst)}, on "
            f"shuffled labels: {worst.verdict}"
        )
    if kept:
        lines.append(f"No attack we know recovers labels with {', '.join(kept)}.")
    lines.append("Not tested here: what Bob learns about Alice's columns. Not a proof of safety.")
    headline = (
        f"{len(leaking)} of {len(comparison.compared)} mechanisms leak labels"
        if leaking
        else "No mechanism leaked labels to any attack we know"
    )
    badge = b.Badge("leak", "▲", "Every mechanism leaks labels")
    if kept:
        badge = b.Badge("certain", "◆", "Some mechanisms leak labels")
    if not leaking:
        badge = b.Badge("not-shown", "○", "No leak found; not a proof of safety")
    blocks = tuple(map(b.Paragraph, lines))
    return b.Section(headline, "verdict", blocks, "Verdict", badge)


def name_of(compared: ComparedMechanism) -> str:
    """A mechanism with its epsilon, where it has one."""
    return (
        compared.mechanism
        if compared.epsilon is None
        else f"{compared.mechanism} \u03b5\u00a0{compared.epsilon:g}"
    )


def _subject(comparison: Comparison) -> str:
    seeds = f"{comparison.seeds} seeds from {comparison.seed}"
    return (
        f"{comparison.dataset} · {comparison.rows_train:,} training and {comparison.rows_test:,} "
        f"held-out rows · {at_alice(comparison)}, "
        f"{comparison.bob_columns} at Bob · "
        f"{seeds if comparison.seeds > 1 else f'seed {comparison.seed}'}"
    )


def _table(comparison: Comparison, digits: int) -> b.Table:
    rows = [_row(row, digits) for row in comparison.compared]
    headings = (
        "mechanism",
        "AUC",
        "label \u03b5",
        "recovered (shuffled)",
        "baseline",
        "recovered (real)",
        "baseline",
        "time",
    )
    caption = f"Labels recovered by the best attack, by {comparison.ranked_by}"
    return b.table((*headings, "traffic"), rows, caption=caption)


def _row(compared: ComparedMechanism, digits: int) -> tuple[b.Words, ...]:
    cost = compared.estimate
    return (
        name_of(compared),
        share(compared.auc, digits),
        epsilon(compared.label_epsilon_total),
        _attack(compared.shuffled, digits),
        share(compared.shuffled.known, digits),
        _attack(compared.real, digits),
        share(compared.real.known, digits),
        duration(cost.seconds),
        data_size(cost.bytes_to_alice + cost.bytes_to_bob),
    )


def _attack(best: BestAttack, digits: int) -> b.Words:
    if best.attack is None:
        return b.Span("no attack", "good")
    shown = share(best.value, digits)
    return (b.Span(ABOVE, "bad"), f" {shown}") if best.leak else shown


def _reading(comparison: Comparison) -> Iterable[str]:
    alone = comparison.bob_alone_auc
    beside = [f"centralised model {share(comparison.centralised_auc)}"]
    beside += [] if alone is None else [f"Bob's columns alone {share(alone)}"]
    scheme = comparison.scheme
    yield f"AUC: of the model on held-out rows; {', '.join(beside)}."
    yield (
        "Shuffled: labels shuffled before training, so anything above the baseline was leaked by "
        "the protocol. Real: the training itself, whose columns predict labels by themselves. "
        f"Baseline: the best control, without any message. {ABOVE}: an attack recovers more than "
        "every control. No attack: none we know applies, which is not a proof of safety."
    )
    yield _NOTE.format(scheme=scheme if scheme != "clear" else "no encryption, as asked for")


def _lines(comparison: Comparison) -> list[str]:
    return [f"{name_of(row)}: {row.verdict}" for row in comparison.compared]


def _facts(comparison: Comparison) -> b.Facts:
    return b.Facts({name_of(row): _said(row) for row in comparison.compared})


def _said(compared: ComparedMechanism) -> str:
    ends = ""
    if (
        compared.real.attack is not None
        and compared.real.low is not None
        and compared.real.high is not None
    ):
        ends = f" ({interval(compared.real.low, compared.real.high)})"
    real = (
        f"On the real labels {compared.real.attack} has {share(compared.real.value)}{ends}, where "
        f"{compared.real.control} has {share(compared.real.known)}."
        if compared.real.attack is not None
        else ""
    )
    cost = traffic(compared.estimate.bytes_to_alice, compared.estimate.bytes_to_bob)
    return (
        f"Labels shuffled: {compared.verdict} {real} "
        f"Assumption of the ledger: {compared.assumption or NONE}. "
        f"Solver {compared.solver}; about {duration(compared.estimate.seconds)}, {cost}."
    )


def _refused(comparison: Comparison) -> list[b.Block]:
    return [
        b.Paragraph(f"{refused.mechanism}: not with these settings: {refused.reason}", "warning")
        for refused in comparison.refused
    ]


def _place(best: BestAttack) -> str:
    known = f"{share(best.known)} without any message"
    return f"{share(best.value)} against {known}" if best.attack is not None else f"none, {known}"
