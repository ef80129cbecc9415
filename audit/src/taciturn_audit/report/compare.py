"""A comparison of mechanisms as blocks: an outcome for each mechanism, one table, one picture."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from taciturn.report import blocks as b
from taciturn.report.argument import argument
from taciturn.report.formatting import (
    NONE,
    data_size,
    duration,
    epsilon,
    footer,
    interval,
    percent,
    share,
)
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
        _narrow_table(comparison),
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
        "total epsilon, at most 5, bounds it. Amber, hollow: unprotected, no leak found on this "
        "table. Green, hollow: no leak found. Upper left is best. "
        "Marks that would coincide are shifted sideways; the table has the figures.",
        wide=True,
    )
    table = b.Section(
        "Side by side",
        "table",
        (
            _table(comparison),
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
        window=f"Mechanisms on {comparison.data.dataset} – Taciturn",
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
    blocks = (
        _outcomes(comparison),
        b.Heading("What this means for Bob"),
        b.Paragraph(
            f"{_for_bob(comparison.compared)} That no attack we know succeeds is not a proof of "
            "safety."
        ),
        b.Heading("What this means for Alice"),
        b.Paragraph(f"Attacks on your columns were not run here. {_for_alice(comparison)}"),
    )
    badge = _badge(comparison)
    return b.Section(_headline(comparison.compared), "verdict", blocks, "Verdict", badge)


def _headline(compared: Sequence[ComparedMechanism]) -> str:
    """The outcome of the protected mechanisms: chance decides that of an unprotected one."""
    protected = [row for row in compared if not row.unprotected]
    leaking = [row for row in protected if row.shuffled.leak]
    which = "protected" if len(protected) < len(compared) else ""
    if not protected:
        return "Nothing bounds what Alice learns about labels with any of these mechanisms"
    if not leaking:
        name = name_of(protected[0]) if len(protected) == 1 else ""
        of_which = f"any of the {which} mechanisms" if which else "any of these mechanisms"
        return f"No attack we know recovers labels with {name or of_which}"
    verb = "leaks" if len(leaking) == 1 else "leak"
    mechanisms = f"{which} mechanism{'' if len(protected) == 1 else 's'}".strip()
    return f"{len(leaking)} of {len(protected)} {mechanisms} {verb} labels to Alice"


def _badge(comparison: Comparison) -> b.Badge:
    """Green only where every mechanism is protected and none leaks."""
    compared = comparison.compared
    leaks = [row.shuffled.leak for row in compared]
    if all(leaks):
        return b.Badge("leak", "▲", "Every mechanism leaks labels")
    if any(leaks):
        return b.Badge("certain", "◆", _leaking(compared))
    if any(row.unprotected for row in compared):
        some = (
            "Some mechanisms are" if any(row.cleared for row in compared) else "Every mechanism is"
        )
        return b.Badge("certain", "◆", f"{some} unprotected; no leak found on this table")
    tried = any(row.shuffled.attack is not None for row in compared)
    outcome = f"No {'leak found' if tried else 'attack applies'}; not a proof of safety"
    if comparison.scheme == "clear":
        return b.Badge("certain", "◆", f"Not encrypted. {outcome}")
    return b.Badge("not-shown", "○", outcome)


def _leaking(compared: Sequence[ComparedMechanism]) -> str:
    if not any(row.cleared for row in compared):
        return "Every mechanism leaks labels or is unprotected"
    bare = all(row.unprotected for row in compared if row.shuffled.leak)
    return f"{'Unprotected' if bare else 'Some'} mechanisms leak labels"


def _for_bob(compared: Sequence[ComparedMechanism]) -> str:
    cleared = [name_of(row) for row in compared if row.cleared]
    others = [name_of(row) for row in compared if not row.cleared]
    if not cleared:
        return "Use these mechanisms only if Alice may learn labels."
    if not others:
        return "Any of these mechanisms withstands the attacks we know."
    # In quotes: one of them is called none.
    named = _listed([f'"{name}"' for name in others], "or")
    return f"Use {_listed(cleared, 'or')}. Use {named} only if Alice may learn labels."


def _for_alice(comparison: Comparison) -> str:
    exposing = [name_of(row) for row in comparison.compared if row.bob_reconstructs]
    hiding = [name_of(row) for row in comparison.compared if row.bob_reconstructs is False]
    words = []
    if exposing:
        words.append(
            f"With {_listed(exposing)} Bob can reconstruct your columns from the scores of "
            "training rows that he receives."
        )
    if hiding:
        words.append(f"With {_listed(hiding)} he receives no score of a training row.")
    return " ".join(words)


def _listed(names: Sequence[str], conjunction: str = "and") -> str:
    """Names in a sentence.

    >>> _listed(["a"]), _listed(["a", "b", "c"], "or")
    ('a', 'a, b or c')
    """
    *first, last = names
    return f"{', '.join(first)} {conjunction} {last}" if first else last


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
    tried = best.attack is not None
    words = (
        f" The best attack on shuffled labels, {best.attack}, has {figure} "
        f"{share(best.value)}; without any message {share(best.known)}."
        if tried
        else ""
    )
    if compared.unprotected:
        outcome = (
            "our attacks did not succeed on this table" if tried else "no attack of ours applies"
        )
        bare = f" Nothing bounds what Alice learns; {outcome}."
        return (b.Span("Unprotected.", "warning"), f"{bare}{words}{relies}")
    if not tried:
        return (b.Span("No known attack applies to what Alice receives.", "good"), relies)
    return (b.Span("No leak found.", "good"), f"{words}{relies}")


def name_of(compared: ComparedMechanism) -> str:
    """A mechanism with its epsilon, where it has one."""
    return (
        compared.mechanism
        if compared.epsilon is None
        else f"{compared.mechanism} \u03b5\u00a0{compared.epsilon:g}"
    )


def _subject(comparison: Comparison) -> str:
    seeds, data = f"{comparison.seeds} seeds from {comparison.seed}", comparison.data
    return (
        f"{data.dataset} · {data.rows:,} training and {data.held_out_rows:,} "
        f"held-out rows · {at_alice(data)}, "
        f"{data.bob_columns} at Bob · "
        f"{seeds if comparison.seeds > 1 else f'seed {comparison.seed}'}"
    )


_RECONSTRUCTS = "Bob can reconstruct Alice's columns"


def _table(comparison: Comparison) -> b.Table:
    """All figures, for a page."""
    by = comparison.ranked_by
    figure = _figure(by)
    headings = ["mechanism", "model AUC", "label \u03b5"]
    for labels in ("shuffled", "real"):
        headings += [f"{figure} ({labels})", "95 % interval", "baseline"]
    headings += [_RECONSTRUCTS, "time", "traffic"]
    rows = [_row(row) for row in comparison.compared]
    return b.table(headings, rows, caption=f"The best attack on the labels, by {by}")


def _row(compared: ComparedMechanism) -> tuple[b.Words, ...]:
    attacks: list[b.Words] = []
    for best in (compared.shuffled, compared.real):
        ends = NONE if best.low is None or best.high is None else interval(best.low, best.high)
        attacks += [_attack(compared, best, share(best.value)), ends, share(best.known)]
    return _with_attacks(compared, share(compared.auc), attacks)


def _narrow_table(comparison: Comparison) -> b.Table:
    """The same figures for a terminal: per cent without its sign, the baseline in brackets."""
    by = comparison.ranked_by
    headings = ["mechanism", "model AUC", "label \u03b5"]
    headings += [f"{_figure(by)} ({labels})" for labels in ("shuffled", "real")]
    headings += [_RECONSTRUCTS, "time", "traffic"]
    caption = f"The best attack on the labels, by {by}, in per cent (baseline in brackets)"
    return b.table(headings, [_narrow_row(row) for row in comparison.compared], caption=caption)


def _narrow_row(compared: ComparedMechanism) -> tuple[b.Words, ...]:
    attacks = [
        _attack(compared, best, f"{percent(best.value, 1)} ({percent(best.known, 1)})", gap="")
        for best in (compared.shuffled, compared.real)
    ]
    return _with_attacks(compared, percent(compared.auc, 1), attacks)


def _with_attacks(
    compared: ComparedMechanism, auc: str, attacks: Sequence[b.Words]
) -> tuple[b.Words, ...]:
    cost, exposed = compared.estimate, compared.bob_reconstructs
    return (
        name_of(compared),
        auc,
        epsilon(compared.label_epsilon_total),
        *attacks,
        NONE if exposed is None else b.Span("yes", "bad") if exposed else "no",
        duration(cost.seconds),
        data_size(cost.bytes_to_alice + cost.bytes_to_bob),
    )


def _figure(by: str) -> str:
    return "labels recovered" if by == "accuracy" else "attack's AUC"


def _attack(compared: ComparedMechanism, best: BestAttack, figures: str, gap: str = " ") -> b.Words:
    if best.attack is None:
        return b.Span("no attack", "warning" if compared.unprotected else "good")
    return (b.Span(ABOVE, "bad"), f"{gap}{figures}") if best.leak else figures


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
        "every control. No attack: none we know applies, which is not a proof of safety. "
        "Infinite \u03b5: unprotected, whatever the attacks recovered on this table."
    )
    yield (
        f"{_RECONSTRUCTS}: from the scores of training rows that he receives, by known attacks; it "
        "follows from the mechanism, and was not attacked here."
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
