"""A comparison of mechanisms as blocks: an outcome for each mechanism, one table, one picture."""

from __future__ import annotations

from collections.abc import Iterable

from taciturn.report import blocks as b
from taciturn.report.argument import argument
from taciturn.report.formatting import NONE, data_size, duration, epsilon, footer, interval, share
from taciturn.report.training import at_alice
from taciturn_audit.report.audit import ABOVE, NOT_ENCRYPTED, decision
from taciturn_audit.results.compare import BestAttack, ComparedMechanism, Comparison

_NOTE = (
    "Trained and attacked without encryption, which changes none of these figures; time and "
    "traffic are estimated with {scheme}, both parties on this machine. Ciphertexts were not "
    "tested: use taciturn audit, one mechanism at a time."
)


def compare_blocks(comparison: Comparison) -> list[b.Block]:
    """Report blocks with the table, for a terminal of 100 columns."""
    return [
        *_unencrypted(comparison),
        b.Paragraph(_subject(comparison), "strong"),
        _table(comparison, digits=1),
        *(b.Paragraph(line, "muted") for line in _reading(comparison)),
        _outcomes(comparison),
        *_refused(comparison),
    ]


def compare_page(comparison: Comparison) -> b.Page:
    """The page of ``taciturn compare --html``."""
    # Loaded here: drawing takes a second to load, and a terminal has no picture.
    from taciturn_audit.report.plots import compare_svg

    by = comparison.ranked_by
    alt = "; ".join(
        f"{name_of(row)}: held-out AUC {share(row.auc)}, labels {_place(row.shuffled)}"
        for row in comparison.compared
    )
    title = "Model quality against leakage"
    drawn = b.Figure("compared", title, alt, compare_svg(comparison, "compared"))
    figures = b.Figures(
        (drawn,),
        caption=f"Horizontal: {by} of the best attack on labels shuffled before training; the "
        "dashed line is the baseline without any message. Vertical: the model's AUC on held-out "
        "rows. Red, filled: labels leak. Amber, filled: labels leak, but the ledger's "
        "total epsilon, at most 5, bounds it. Green, hollow: no leak found. Upper left is best. "
        "Marks that would coincide are shifted sideways; the table has the figures.",
        wide=True,
    )
    table = b.Section(
        "Side by side",
        "table",
        (
            _table(comparison, digits=2, intervals=True),
            *(b.Paragraph(line, "muted") for line in _reading(comparison)),
            *_refused(comparison),
        ),
        "Table",
    )
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
            *_unencrypted(comparison),
            _verdict(comparison),
            table,
            picture,
            *reasons,
            b.Section("Command", "command", (command,)),
            decision(comparison.audited),
        ),
        footer=footer(comparison.version, comparison.audited),
        wide=True,
    )


def _unencrypted(comparison: Comparison) -> list[b.Block]:
    return [NOT_ENCRYPTED] if comparison.scheme == "clear" else []


def _verdict(comparison: Comparison) -> b.Section:
    leaking = [name_of(row) for row in comparison.compared if row.shuffled.leak]
    kept = [name_of(row) for row in comparison.compared if not row.shuffled.leak]
    headline = "No attack we know recovers labels with any of these mechanisms"
    tried = any(row.shuffled.attack is not None for row in comparison.compared)
    outcome = f"No {'leak found' if tried else 'attack applies'}; not a proof of safety"
    badge = b.Badge("not-shown", "○", outcome)
    if comparison.scheme == "clear":
        badge = b.Badge("certain", "◆", f"Not encrypted. {outcome}")
    for_bob = "Any of these mechanisms withstands the attacks we know"
    if leaking:
        verb = "leaks" if len(leaking) == 1 else "leak"
        headline = f"{len(leaking)} of {len(comparison.compared)} mechanisms {verb} labels to Alice"
        badge = b.Badge("leak", "▲", "Every mechanism leaks labels")
        for_bob = "Use none of these mechanisms if Alice must not learn labels"
    if leaking and kept:
        badge = b.Badge("certain", "◆", "Some mechanisms leak labels")
        for_bob = f"Use {' or '.join(kept)}. {', '.join(leaking)}: only if Alice may learn labels"
    blocks = (
        _outcomes(comparison),
        b.Heading("What this means for Bob"),
        b.Paragraph(f"{for_bob}. That no attack we know succeeds is not a proof of safety."),
        b.Heading("What this means for Alice"),
        b.Paragraph(
            "Attacks on your columns were not run here. In every mechanism but mutual, Bob "
            "receives scores of training rows, from which he can reconstruct columns."
        ),
    )
    return b.Section(headline, "verdict", blocks, "Verdict", badge)


def _outcomes(comparison: Comparison) -> b.Facts:
    """One line for each mechanism: leak or none, the figures, and what its ledger assumes."""
    return b.Facts(
        {name_of(row): _outcome(row, comparison.ranked_by) for row in comparison.compared}
    )


def _outcome(compared: ComparedMechanism, figure: str) -> b.Words:
    best, relies = compared.shuffled, f" Ledger: {compared.assumption or NONE}."
    if best.leak:
        leak = b.Span("Labels leak.", "warning" if compared.bounded else "bad")
        return (leak, f" Labels shuffled: {compared.verdict}{relies}")
    if best.attack is None:
        return (b.Span("No known attack applies to what Alice receives.", "good"), relies)
    words = (
        f" The best attack on shuffled labels, {best.attack}, has {figure} "
        f"{share(best.value)}; without any message {share(best.known)}."
    )
    return (b.Span("No leak found.", "good"), f"{words}{relies}")


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


def _table(comparison: Comparison, digits: int, *, intervals: bool = False) -> b.Table:
    """``intervals``: there is room for them."""
    by = comparison.ranked_by
    figure = "labels recovered" if by == "accuracy" else "attack's AUC"
    headings = ["mechanism", "model AUC", "label \u03b5"]
    for labels in ("shuffled", "real"):
        headings += [f"{figure} ({labels})", *(["95 % interval"] if intervals else []), "baseline"]
    headings += ["time", "traffic"]
    rows = [_row(row, digits, intervals) for row in comparison.compared]
    return b.table(headings, rows, caption=f"The best attack on the labels, by {by}")


def _row(compared: ComparedMechanism, digits: int, intervals: bool) -> tuple[b.Words, ...]:
    cost = compared.estimate
    attacks: list[b.Words] = []
    for best in (compared.shuffled, compared.real):
        ends = NONE if best.low is None or best.high is None else interval(best.low, best.high)
        attacks += [
            _attack(best, digits),
            *([ends] if intervals else []),
            share(best.known, digits),
        ]
    return (
        name_of(compared),
        share(compared.auc, digits),
        epsilon(compared.label_epsilon_total),
        *attacks,
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
    others = [f"centralised model {share(comparison.centralised_auc)}"]
    others += [] if alone is None else [f"Bob's columns alone {share(alone)}"]
    scheme = comparison.scheme
    yield f"Model AUC: on held-out rows; {', '.join(others)}."
    yield (
        "Shuffled: labels shuffled before training, so anything above the baseline was leaked by "
        "the protocol. Real: the training itself, whose columns predict labels by themselves. "
        f"Baseline: the best control, without any message. {ABOVE}: an attack recovers more than "
        "every control. No attack: none we know applies, which is not a proof of safety."
    )
    yield _NOTE.format(scheme=scheme if scheme != "clear" else "no encryption, as requested")


def _refused(comparison: Comparison) -> list[b.Block]:
    return [
        b.Paragraph(f"{refused.mechanism} was not compared: {refused.reason}", "warning")
        for refused in comparison.refused
    ]


def _place(best: BestAttack) -> str:
    known = f"{share(best.known)} without any message"
    return f"{share(best.value)} against {known}" if best.attack is not None else f"none, {known}"
