"""Agreement report for its approvers: what is trained on what, who learns what, the price.

The page is written for a reader who never saw this program: each section begins with its answer,
and the words that it uses are explained at the end. It computes nothing.
"""

from __future__ import annotations

import math
from collections.abc import Mapping

from taciturn.errors import counted
from taciturn.extras import install_hint
from taciturn.report import blocks as b
from taciturn.report.argument import SIGNED, argument
from taciturn.report.formatting import (
    data_size,
    duration,
    footer,
    most_sure,
    plain,
    printed_date,
    share,
)
from taciturn.report.training import exposure_facts, label_epsilon, learns_facts
from taciturn_ops.agreement.rehearsal import (
    AT_RISK,
    CLEAR,
    LEAKS,
    VERDICT_HEADINGS,
    AttackVerdict,
    CheckResult,
    Level,
    advice_facts,
    prediction_facts,
    rehearsal_blocks,
    verdict_rows,
)
from taciturn_ops.agreement.result import AgreementRecord, Review, SideRecord, SignedAgreement

_ORDER: tuple[Level, ...] = (LEAKS, AT_RISK, CLEAR)
_ANSWERS: dict[Level, b.Words] = {
    LEAKS: (
        b.Span("Labels leak.", "bad"),
        " Alice can recover labels: an attack in the rehearsal recovered more than guessing does.",
    ),
    AT_RISK: (
        b.Span("Labels are at risk.", "warning"),
        " Alice can guess labels better than by chance: an attack in the rehearsal did.",
    ),
    CLEAR: (b.Span("No leak found.", "strong"), " No attack that was run recovered labels."),
}
_UNPROTECTED: b.Words = (
    b.Span("Unprotected.", "warning"),
    " Nothing bounds what Alice learns. No attack recovered labels in the rehearsal; on other rows "
    "one may.",
)
_NOT_RUN: b.Words = (
    b.Span("No attack was run.", "warning"),
    f" The packages for it are not installed ({install_hint('audit')}); only the mechanism's own "
    "statement is shown.",
)
_BOB_RECONSTRUCTS: b.Words = (
    b.Span("Alice's columns are exposed.", "bad"),
    " Bob can reconstruct Alice's columns from the training scores that this mechanism opens to "
    "him.",
)
_BOB_TELLS: b.Words = (
    b.Span("Alice's columns leak.", "bad"),
    " Bob can estimate values of Alice's columns: an attack in the rehearsal did.",
)
_BOB_CLEAR: b.Words = (
    b.Span("No leak found.", "strong"),
    " No attack that was run recovered values of Alice's columns.",
)
_NO_PROOF = " That is not a proof of safety."
_MEANT = {
    "reveal no": "no: Alice's weights stay shared",
    "reveal-bob no": "no: Bob's weights stay shared",
    "evaluate end": "at the end of the training",
}
_SOLVERS = {
    "newton": "newton: every pass uses all rows; no learning rate to tune",
    "sgd": "gradient descent (sgd): small steps, each of one batch of rows",
}
_GLOSSARY: dict[str, b.Words] = {
    "Alice": "The side that has columns about the rows and no labels.",
    "Bob": "The side that has the labels, and possibly columns of his own.",
    "Label": "What the model learns to predict: 0 or 1 for each row.",
    "Row": "A person or thing that both sides know, under one id.",
    "Held-out rows": "Rows that no training step uses. Bob measures the model on them.",
    "Mechanism": "The protection. It decides what Bob may send, and at which privacy cost.",
    "Pass, epoch": "Going through all training rows once.",
    "Score": "A number per row: the sum of its columns, each times its weight. Many scores of one "
    "row disclose its columns.",
    "Release": "A label-dependent value that Bob sends unencrypted.",
    "Ledger": "Bob's record of all releases. Each is charged before it is sent.",
    "Epsilon": "Bound on what a release discloses about a label: 0 is nothing, 1 moves even odds "
    "to at most 73 %, 5 to 99 %, and infinite means that there is no bound.",
    "Rehearsal": "A small training on this side's own table, by the real programs, with made-up "
    "values in place of the other side's data.",
    "Attack": "A method by which one side tries to compute the other side's data from what it "
    "receives. All attacks that this program knows were run.",
    "Control": "What anybody could guess without the messages, to compare attacks with.",
    "Known rows": "Rows of Alice's that Bob is assumed to know already, such as shared customers.",
    "R2": "How much of the columns an estimate explains: 1 is all, 0 is no more than their means.",
    "Ciphertext": "An encrypted number, which only the owner of the key can read.",
    "Weight": "A number of the model for one column.",
    "Fingerprint": "A short text that identifies one key. Compare it with the other side over "
    "another channel than the file.",
    "Digest": "A short text that identifies the exact wording of the agreement.",
}
_MEANS = (
    "By signing, this side confirms that it has read this agreement and will train under it, "
    "unchanged, until the date in it.",
    "The signature is made with the key of this side's certificate and covers every line of the "
    "agreement, this side's role and the time. A changed agreement is refused by both programs.",
    "Both programs compare the agreement again when they meet, and talk only to the key that "
    "signed.",
    "The agreement does not limit how often both train by it. Bob's ledger and Alice's count of "
    "scores do, where a limit is set in their own files.",
)
_MEANS_NOT = (
    "It does not prove that what the tables hold is right, or that either side may use them.",
    "It does not prove who the other is beyond the certificate: anyone who runs the authority of "
    "the certificates could make another one. Compare the fingerprints by telephone.",
    "It does not bind a side that runs another program: what such a side gets is described under "
    "'What a party that deviates gets' in the documentation.",
    "It cannot be withdrawn by removing it from the file: agree on a new one, or let it expire.",
    "It is not legal advice.",
)


def review_blocks(result: Review) -> list[b.Block]:
    """The review for a terminal: the same sections, nothing folded away."""
    title = b.Paragraph(_title(result), "strong")
    closing = (
        "This side would refuse to start: see Blocking issues."
        if result.obstacles
        else "No blocking issues on this side. Whether to sign is for a person to decide."
    )
    return [title, *_sections(result), b.Paragraph(closing, "strong")]


def review_page(result: Review) -> b.Page:
    """The review as a page, to be read and printed."""
    return b.Page(
        window=f"Agreement {result.agreement.id[:8]} for review",
        title="Agreement for review",
        subject=_title(result),
        blocks=tuple(_sections(result)),
        footer=footer(result.version, result.made),
    )


def signed_blocks(result: SignedAgreement) -> list[b.Block]:
    """Signers so far, and the lines that each side's file needs."""
    first = (
        f"{result.signed_by} has signed this agreement before; nothing was changed"
        if result.already
        else f"{result.signed_by} has signed {result.file}"
    )
    rest = result.agreement.unsigned
    then = (
        f"Next: send the file to {', '.join(rest)}, who has to sign the same"
        if rest
        else "Everybody has signed. Next: give every side this file"
    )
    lines = "; ".join(result.lines[1:])
    own = (
        f"[agreement] of {result.settings} now names it: {lines}"
        if result.added
        else f"[agreement] of {result.settings} could not be changed: let it hold only {lines}"
    )
    return [
        b.Paragraph(first, "strong"),
        _signatures(result.agreement),
        b.Paragraph(f"{then}. {own}"),
    ]


def short_blocks(agreement: AgreementRecord) -> list[b.Block]:
    """Summary of the agreement to be signed."""
    return [
        b.Paragraph("You are about to sign:", "strong"),
        b.Facts(
            {
                **({"purpose": agreement.purpose} if agreement.purpose else {}),
                "mechanism": str(agreement.settings.get("mechanism")),
                "rows": f"{agreement.settings.get('rows', 'not stated')}",
                "valid until": printed_date(agreement.valid_until),
                "digest": agreement.digest,
            }
        ),
        _signatures(agreement),
        b.Paragraph(
            "taciturn agreement review shows what signing means and what each side learns.", "muted"
        ),
    ]


def _title(result: Review) -> str:
    role = "" if result.name == result.role else f" ({result.role})"
    who = f"{result.name}{role} with {', '.join(result.peers)}"
    rows = f"{result.rows:,} training and {result.held_out_rows:,} held-out rows"
    return f"{result.agreement.settings.get('mechanism')} · {who} · {rows}"


def _sections(result: Review) -> list[b.Section]:
    return [
        _in_short(result),
        *([_obstacles(result)] if result.obstacles else []),
        _trained(result),
        _learns(result),
        *_argument(result),
        _price(result),
        _cost(result),
        _who_signed(result),
        *_appendix(result.agreement),
    ]


def _in_short(result: Review) -> b.Section:
    agreed, rest = result.agreement, result.agreement.unsigned
    signed = "everybody has signed" if not rest else f"not yet signed by {', '.join(rest)}"
    purpose = b.Paragraph(("Purpose: ", b.Span(agreed.purpose, "strong")))
    facts: dict[str, b.Words] = {
        "protection": f"{agreed.settings.get('mechanism')}: {result.mechanism}",
        "Bob's labels": _labels_in_short(result),
        "Alice's columns": _columns_in_short(result),
        "privacy cost": _price_in_short(result),
        "signatures": f"{signed}; valid until {printed_date(agreed.valid_until)}",
        "blocking issues": str(len(result.obstacles))
        if result.obstacles
        else "none: certificate, table, settings and limits of this side fit the agreement",
    }
    headline, badge = _headline(result)
    blocks: tuple[b.Block, ...] = (
        *([purpose] if agreed.purpose else []),
        b.Facts(facts),
        b.Heading("What this means for you"),
        b.Paragraph(_for_alice(result) if result.role == "alice" else _for_bob(result)),
    )
    return b.Section(headline, "short", blocks, "In short", badge)


def _headline(result: Review) -> tuple[str, b.Badge]:
    """What matters most to the reader, and its colour."""
    check = result.check
    seat = None if check is None else check.bob_seat
    bad, risk = b.Badge("leak", "▲", "Warning"), b.Badge("certain", "▲", "Warning")
    if result.obstacles:
        count = counted(len(result.obstacles), "blocking issue")
        return f"Not ready to sign: {count}", b.Badge("leak", "✗", "Blocking issues")
    if check is not None and check.verdict == LEAKS:
        return f"Alice can recover {_own(result, 'bob')} labels", bad
    if result.role == "alice" and result.price.learns.columns is not None:
        return "Bob can reconstruct your columns", bad
    if seat is not None and seat.level == LEAKS:
        return f"Bob can estimate {_own(result, 'alice')} columns", risk
    if too_many := _too_many_scores(result):
        return too_many, risk
    if check is not None and check.unprotected:
        return f"Nothing bounds what Alice learns about {_own(result, 'bob')} labels", risk
    if check is not None and check.verdict == AT_RISK:
        return f"{_own(result, 'bob').capitalize()} labels are at risk", risk
    if check is None:
        return "No attack was run", b.Badge("certain", "▲", "Not tested")
    if check.attacked if result.role == "bob" else seat is not None and seat.findings.attacks:
        headline = f"No attack that was run recovered {_own(result, result.role)} data"
        return headline, b.Badge("not-shown", "○", "No leak found; not a proof of safety")
    headline = f"No known attack applies to what {_other(result)} receives"
    return headline, b.Badge("not-tested", "○", "No attack applies; not a proof of safety")


def _other(result: Review) -> str:
    return "Bob" if result.role == "alice" else "Alice"


def _too_many_scores(result: Review) -> str:
    """Whether Alice's limit lets Bob have all columns of a row, in words; empty if it does not."""
    opened = result.opened
    if opened is None:
        return ""
    if opened.limit is None:
        return "Before signing, set a limit (scores-per-row): none is set"
    enough = opened.limit - opened.then > result.own_columns
    return f"Before signing, lower the limit: scores-per-row is {opened.limit:,}" if enough else ""


def _for_alice(result: Review) -> str:
    if result.price.learns.columns is not None:
        return (
            "If you sign, you accept that Bob can compute values of your columns. Sign only if he "
            "may know them, or ask for mutual."
        )
    seat = None if result.check is None else result.check.bob_seat
    if seat is not None and seat.level == LEAKS:
        return "If you sign, Bob may compute values of your columns. Sign only if he may know them."
    words = (
        "In this training Bob receives no score of a training row of yours. He receives scores of "
        "held-out and of new rows, and many of them together disclose your columns."
    )
    columns, opened = result.own_columns, result.opened
    if opened is None or not _too_many_scores(result):
        return words
    limit = "Without a limit" if opened.limit is None else "With this limit"
    return (
        f"{words} {limit}, a Bob who deviates can have all {counted(columns, 'column')} of "
        f"a row after at most {counted(columns + 1, 'prediction')} of it. Write scores-per-row = N "
        "and repetitions-per-row = M into [privacy] of your settings file (such as alice.toml): a "
        "row is then scored by at most N models, over all trainings and predictions, and at most M "
        f"times by one of them again; this training counts as {opened.this}. With fewer scores he "
        "has fewer columns of the row, but several columns can fit into one score. N and M limit "
        "the scores of each row, not the number of rows."
    )


def _for_bob(result: Review) -> str:
    if result.check is None:
        return "Whether Alice can recover your labels was not tested. Install the audit and repeat."
    if result.check.verdict != CLEAR or result.check.unprotected:
        return "If you sign, Alice may learn labels of yours. Change the mechanism before you sign."
    return "You rely on the assumption under Privacy cost, and on Alice following the protocol."


def _own(result: Review, role: str) -> str:
    """Whose data: the reader's, or the other side's."""
    return "your" if result.role == role else f"{role.capitalize()}'s"


def _none_applies(result: Review, who: str) -> str:
    rests = "; safety rests on the argument below" if _argument(result) else ""
    return f"No known attack applies to what {who} receives{rests}."


def _labels_in_short(result: Review) -> b.Words:
    check = result.check
    if check is None:
        return _NOT_RUN
    if check.verdict == CLEAR and check.unprotected:
        return _UNPROTECTED
    attacked = check.attacked or check.verdict != CLEAR
    return _ANSWERS[check.verdict] if attacked else _none_applies(result, "Alice")


def _columns_in_short(result: Review) -> b.Words:
    if result.price.learns.columns is not None:
        return _BOB_RECONSTRUCTS
    if result.check is None:
        return "No score of a training row is opened to Bob."
    seat = result.check.bob_seat
    if seat is not None and not seat.findings.attacks:
        return _none_applies(result, "Bob")
    if seat is not None:
        return _BOB_TELLS if seat.level == LEAKS else _BOB_CLEAR
    return "Alice's own review shows what Bob could learn: the rehearsal needs her columns."


def _price_in_short(result: Review) -> str:
    ledger = result.price.ledger
    if ledger is not None:
        total = ledger.label_epsilon_total
        if math.isinf(total):
            return "a label's epsilon is infinite: nothing limits what is disclosed"
        return (
            f"a label's {label_epsilon(total)}: from even odds, Alice can become "
            f"{most_sure(total)} of a label"
        )
    opened = result.opened
    if opened is None:
        return "–"
    if result.columns is not None and not result.columns.scores_per_row:
        return (
            f"counted as {counted(opened.this, 'score')} per row: two trainings that differ in one "
            "label would reveal about one"
        )
    return f"up to {counted(opened.this, 'score')} of each of Alice's rows for this training"


def _obstacles(result: Review) -> b.Section:
    title = "Blocking issues"
    # Words that stand out are never broken: only the sign does.
    rows = [(b.Span("✗", "bad"), obstacle.why, obstacle.way_out) for obstacle in result.obstacles]
    block = b.table(("", "issue", "what to do"), rows, words=range(3), label=title)
    return b.Section(title, "obstacles", (block,), title)


def _trained(result: Review) -> b.Section:
    agreed = result.agreement
    # What varies stands in the study, with all its values.
    settings = {**(agreed.study or {}), **agreed.settings}
    steps = (
        f"{_value(settings['passes'])} passes over all rows"
        if "passes" in settings
        else f"{_value(settings.get('epochs'))} epochs, in batches of "
        f"{_value(settings.get('batch-size'))} rows"
    )
    solver, owner = str(settings.get("solver")), agreed.sides[0]
    noise = " with noise" if settings.get("metrics-epsilon") is not None else ""
    facts: dict[str, b.Words] = {
        "model": "a logistic regression: a weight for each column, and a probability for each row",
        "label": f"{owner.label}, which {owner.name} has" if owner.label else "name not disclosed",
        "rows": f"{result.rows:,} to train on, and {result.held_out_rows:,} held out, on which Bob "
        "measures the model; ids alone decide which",
        "solver": f"{_SOLVERS.get(solver, solver)}; {steps}",
        "penalty": ", ".join(
            f"{name} {_value(settings[name])}" for name in ("l1", "l2") if settings.get(name)
        )
        or "none",
        "Alice learns": f"the model's quality on held-out rows, in whole per cent{noise}"
        if settings.get("share-metrics") == "quality"
        else "nothing about the model's quality",
    }
    columns = [(side.name, side.role, *_columns(side, result)) for side in agreed.sides]
    headings = ("side", "role", "prepared columns", "columns of its table")
    blocks: list[b.Block] = [
        b.Facts(facts),
        b.table(headings, columns, words=(0, 1, 3), label="The columns of each side"),
    ]
    if agreed.study is not None:
        blocks += [
            b.Heading("The study: trainings that are agreed on together"),
            b.Paragraph(
                "Every combination of these values is trained, once without the rows of each fold "
                "and once on all rows; only Bob learns how good each model is. Which of them he "
                "uses afterwards depends on labels, and Alice learns it when he does."
            ),
            b.Facts({key: _value(value) for key, value in agreed.study.items()}),
        ]
    return b.Section("What is trained, and on which data", "trained", tuple(blocks), "Training")


def _columns(side: SideRecord, result: Review) -> tuple[str, str]:
    is_own = side.name == result.name
    count = result.own_columns if is_own else side.prepared_columns
    if count is None and side.role == "alice" and len(result.peers) == 1:
        agreed = result.agreement.settings.get("alice-columns")
        count = agreed if isinstance(agreed, int) else None
    if side.columns is not None:
        names = ", ".join(side.columns)
    elif is_own:
        names = f"{', '.join(result.own_column_names)} (not disclosed to the other side)"
    else:
        names = "not disclosed"
    return "not disclosed" if count is None else str(count), names


def _learns(result: Review) -> b.Section:
    check = result.check
    blocks: list[b.Block] = [
        b.Heading("What each side receives"),
        b.Facts(learns_facts(result.price.learns)),
        *([] if result.columns is None else [exposure_facts(result.columns)]),
    ]
    if check is not None and check.prediction is not None:
        heading = b.Heading("What predictions with the model disclose")
        blocks += [heading, prediction_facts(check.prediction)]
    blocks += [b.Paragraph(_NOT_RUN)] if check is None else _rehearsed(check, result)
    return b.Section("Who learns what", "learns", tuple(blocks), "Who learns what")


def _rehearsed(check: CheckResult, result: Review) -> list[b.Block]:
    in_short = b.spans(_labels_in_short(result))
    blocks: list[b.Block] = [
        b.Heading("What Alice could learn about the labels"),
        b.Paragraph((*in_short, _NO_PROOF) if check.verdict == CLEAR else in_short),
        *_verdicts(check.verdicts),
    ]
    if check.verdict != CLEAR or check.unprotected:
        blocks += [b.Heading("Alternatives"), advice_facts(check)]
    if check.bob_seat is not None:
        blocks += rehearsal_blocks(check.bob_seat)
    else:
        blocks += [
            b.Heading("What Bob could learn about Alice's columns"),
            b.Paragraph(
                "The rehearsal needs her columns, which are not here: her own review shows the "
                "result. What he receives is listed above."
            ),
        ]
    # What concerns the other side alone, and how changes are written where none is advised.
    left_out = f"for {_other(result)}:", *(["changes"] if check.verdict == CLEAR else [])
    notes = [n for n in (*check.warnings, *check.notes) if not n.startswith(left_out)]
    stood = tuple(f"{note[:1].upper()}{note[1:]}." for note in notes)
    return [*blocks, b.Heading("How this was rehearsed"), b.Bullets(stood)]


def _verdicts(verdicts: tuple[AttackVerdict, ...]) -> list[b.Block]:
    listed = sorted(verdicts, key=lambda verdict: _ORDER.index(verdict.verdict))
    rows = verdict_rows(verdict for verdict in listed if verdict.verdict != CLEAR)
    # Where nothing has to change, no room is left for it.
    wide = 4 if any(row[3] for row in rows) else 3
    label = "Attacks by Alice, the worst first"
    table = b.table(
        VERDICT_HEADINGS[:wide], [row[:wide] for row in rows], words=range(wide), label=label
    )
    clear = [verdict for verdict in listed if verdict.verdict == CLEAR]
    facts = b.Facts({names: why for names, _, why, _ in verdict_rows(clear)})
    folded = b.Details(f"Attacks that do not apply or recover nothing: {len(clear)}", (facts,))
    return [*([table] if rows else []), *([folded] if clear else [])]


def _argument(result: Review) -> list[b.Section]:
    settings = result.agreement.settings
    bits = settings.get("key-bits")
    if settings.get("reveal") or not isinstance(bits, int):
        return []
    return argument(str(settings.get("mechanism")), str(settings.get("scheme")), bits)


def _price(result: Review) -> b.Section:
    price, opened = result.price, result.opened
    blocks: list[b.Block] = []
    if price.ledger is not None:
        ledger, total = price.ledger, price.ledger_book
        facts: dict[str, b.Words] = {
            "this training": f"of a label, {label_epsilon(ledger.label_epsilon_total)}",
            "releases": f"at most {counted(ledger.releases_per_row, 'release')} per row"
            if ledger.releases_per_row
            else "none: nothing about a label is released unencrypted",
            "assumption": ledger.assumption,
        }
        if total is not None:
            facts |= {
                "so far": f"{label_epsilon(total.so_far.label_epsilon_total)} in "
                f"{counted(total.trainings, 'training')} with this partner",
                "then": label_epsilon(total.then.label_epsilon_total),
                "limit": "none is set (budget-total)"
                if total.limit is None
                else f"{total.limit:g}",
            }
        if result.check is not None:
            ceiling = result.check.facts.attack_ceiling
            facts["best possible attack"] = (
                f"recovers at most {share(ceiling)} of labels at even odds"
            )
        blocks += [b.Heading("What it costs Bob's labels"), b.Facts(facts)]
    else:
        words = "Bob's review shows the privacy cost of his labels; it is computed from his ledger."
        blocks.append(b.Paragraph(words))
    if opened is not None:
        limit = "none is set (scores-per-row)" if opened.limit is None else f"{opened.limit:,}"
        counts = {"so far": opened.so_far, "this training": opened.this, "then": opened.then}
        facts = {name: f"up to {n:,}" if n else "none" for name, n in counts.items()}
        blocks += [
            b.Heading("What it costs Alice's columns: models that score a row, as counted"),
            b.Facts({**facts, "limit": limit}),
        ]
    return b.Section(
        "Privacy cost: before, this training, afterwards", "price", tuple(blocks), "Privacy cost"
    )


def _cost(result: Review) -> b.Section:
    estimate = result.estimate
    if estimate is None:
        words = "Only a side with Alice's columns can estimate it: use a dry run on her side."
        return b.Section("Time and traffic", "cost", (b.Paragraph(words),), "Time")
    traffic = data_size(estimate.bytes_to_alice + estimate.bytes_to_bob)
    facts: dict[str, b.Words] = {
        "computing": f"about {duration(estimate.seconds)} on this machine, both sides together",
        "traffic": f"{traffic}: {data_size(estimate.bytes_to_alice)} to Alice, "
        f"{data_size(estimate.bytes_to_bob)} to Bob",
    }
    notes = ["Network time is not included."]
    if result.assumed_columns is not None:
        stood = counted(result.assumed_columns, "random column")
        notes.insert(0, f"Estimated with {stood} in place of Alice's, which may take longer.")
    blocks: tuple[b.Block, ...] = (b.Facts(facts), *(b.Paragraph(note, "muted") for note in notes))
    return b.Section("Time and traffic", "cost", blocks, "Time")


def _who_signed(result: Review) -> b.Section:
    agreed = result.agreement
    facts: dict[str, b.Words] = {
        "agreement": b.Span(agreed.id, "code"),
        "digest": b.Span(agreed.digest, "code"),
        "valid until": f"{printed_date(agreed.valid_until)}: a training may begin until then, and "
        "one that has begun may be finished later; predictions and services end then",
    }
    note = (
        "A fingerprint identifies a key. Compare the other side's over another channel than this "
        "file, such as the telephone."
    )
    blocks = (_signatures(agreed), b.Facts(facts), b.Paragraph(note, "muted"))
    return b.Section("Who has signed", "signatures", blocks, "Signatures")


def _signatures(agreed: AgreementRecord) -> b.Table:
    rows = [
        (
            side.name,
            side.role,
            b.Span("not yet", "warning") if side.signed is None else printed_date(side.signed),
            b.Span(side.fingerprint, "code") if side.fingerprint else "not known yet",
        )
        for side in agreed.sides
    ]
    headings = ("side", "role", "signed", "fingerprint of its key")
    return b.table(headings, rows, words=range(4), label="Who has signed")


def _appendix(agreed: AgreementRecord) -> list[b.Section]:
    settings: dict[str, b.Words] = {
        key: _MEANT.get(f"{key} {_value(value)}", _value(value))
        for key, value in agreed.settings.items()
    }
    words = "All of these are signed; defaults are written out."
    meaning: tuple[b.Block, ...] = (
        b.Bullets(tuple(map(b.coded, _MEANS))),
        b.Paragraph("What it does not mean:", "strong"),
        b.Bullets(_MEANS_NOT),
    )
    note = (
        f"About the agreement {agreed.id} with the digest {agreed.digest}. "
        "A signature by hand is for your own records; the program needs taciturn agreement sign."
    )
    return [
        b.Section(
            "All agreed settings", "settings", (b.Paragraph(words), b.Facts(settings)), "Settings"
        ),
        b.Section("What signing means, and what it does not mean", "meaning", meaning, "Meaning"),
        b.Section("Glossary", "words", (b.Facts(_GLOSSARY),), "Glossary"),
        b.Section(
            "Decision", "decision", (b.Paragraph(note, "muted"), b.Blanks(SIGNED)), "Decision"
        ),
    ]


def _value(value: object) -> str:
    if isinstance(value, Mapping):
        return ", ".join(f"{key} {_value(item)}" for key, item in value.items())
    if isinstance(value, list | tuple):
        return ", ".join(map(_value, value))
    return plain(value) if value != "" else "(empty)"
