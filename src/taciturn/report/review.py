"""An agreement for whoever decides about it: what is trained on what, who learns what, the price.

The page is written for a reader who never saw this program: each section begins with its answer,
and the words that it uses are explained at the end. It computes nothing.
"""

from __future__ import annotations

import math
from collections.abc import Mapping

from taciturn.errors import counted
from taciturn.extras import install_hint
from taciturn.report.argument import SIGNED, argument
from taciturn.report.blocks import (
    Badge,
    Blanks,
    Block,
    Bullets,
    Facts,
    Heading,
    Page,
    Paragraph,
    Section,
    Span,
    Table,
    Tone,
    Words,
    coded,
    table,
)
from taciturn.report.columns import rehearsal_blocks
from taciturn.report.parties import exposure_facts, learns_facts
from taciturn.report.training import label_epsilon
from taciturn.report.words import (
    data_size,
    duration,
    footer,
    most_sure,
    plain,
    printed_date,
    share,
)
from taciturn.results.agreement import AgreementRecord, Review, SideRecord, SignedAgreement
from taciturn.results.check import AT_RISK, CLEAR, LEAKS, AttackVerdict, CheckResult, Level

_TONES: dict[Level, Tone] = {LEAKS: "bad", AT_RISK: "warning", CLEAR: "muted"}
_ORDER: tuple[Level, ...] = (LEAKS, AT_RISK, CLEAR)
_ANSWERS: dict[Level, Words] = {
    LEAKS: (
        Span("Labels leak.", "bad"),
        " Alice will be able to recover labels: the rehearsal recovered some, beyond chance.",
    ),
    AT_RISK: (
        Span("Labels are at risk.", "warning"),
        " Alice will be able to guess labels better than by chance: the rehearsal did.",
    ),
    CLEAR: (
        Span("No leak was seen.", "strong"),
        " None of the known attacks told Alice a label in the rehearsal. That is no proof of "
        "safety.",
    ),
}
_NOT_RUN: Words = (
    Span("No attack was run.", "warning"),
    f" The packages for it are not installed ({install_hint('audit')}); what the mechanism says of "
    "itself stands here.",
)
_BOB_RECONSTRUCTS: Words = (
    Span("Columns are exposed.", "bad"),
    " Bob can reconstruct Alice's columns from the training scores that this mechanism opens to "
    "him.",
)
_BOB_TELLS: Words = (
    Span("Columns show.", "bad"),
    " Bob will be able to estimate values of Alice's columns: the rehearsal did.",
)
_BOB_CLEAR: Words = (
    Span("No leak was seen.", "strong"),
    " None of the known attacks told Bob a value of Alice's columns in the rehearsal. That is no "
    "proof of safety.",
)
_SOLVERS = {
    "newton": "newton: every pass uses all rows, and nothing is to be tuned",
    "sgd": "gradient descent (sgd): small steps, each of one batch of rows",
}
_GLOSSARY: dict[str, str] = {
    "Alice": "The side that has columns about the rows and no labels.",
    "Bob": "The side that has the labels, and possibly columns of his own.",
    "Label": "What the model learns to predict: 0 or 1 for each row.",
    "Row": "A person or thing that both sides know, under one id.",
    "Held-out rows": "Rows that no training step uses. Bob measures the model on them.",
    "Mechanism": "What decides what may leave Bob, and at which price.",
    "Pass, epoch": "Going through all training rows once.",
    "Score": "A number of a row: the model's columns times its weights, added up. Many scores of "
    "one row give its columns away.",
    "Release": "A value that depends on labels and leaves Bob readable.",
    "Ledger": "Bob's account of all releases. Each is charged before it is sent.",
    "Epsilon": "How much a release tells of a label at most: 0 is nothing, 1 moves even odds to at "
    "most 73 %, 5 to 99 %, and infinite means that there is no bound.",
    "Rehearsal": "A small training on this side's own table, here and now, by the real programs; "
    "something stands in for what is the other side's.",
    "Attack": "A method by which one side tries to compute what is the other's from what it "
    "receives. The ones that are known to this program were run.",
    "Control": "What anybody could guess without the messages, set beside each attack.",
    "Known rows": "Rows of Alice's that Bob is taken to know already, such as common customers.",
    "R2": "How much of the columns an estimate explains: 1 is all, 0 is no more than their means.",
    "Ciphertext": "An encrypted number, which only the owner of the key can read.",
    "Weight": "A number of the model for one column.",
    "Fingerprint": "A short text that tells one key from every other. Compare it with the other "
    "side by another way than the file.",
    "Digest": "A short text that changes with every letter of the agreement.",
}
_MEANS = (
    "Signing says: this side has read this agreement and will train by it, as it stands, until the "
    "day that it names.",
    "The signature is made with the key of this side's certificate and covers every line of the "
    "agreement, this side's role and the time. A changed agreement is refused by both programs.",
    "Both programs compare the agreement again when they meet, and talk only to the key that "
    "signed.",
    "The agreement does not limit how often both train by it. Bob's ledger and Alice's count of "
    "scores do, where a limit is set in their own files.",
)
_MEANS_NOT = (
    "It does not prove that what the tables hold is right, or that either side may use them.",
    "It does not prove who the other is beyond the certificate: whoever runs the authority of the "
    "certificates could make another one. Compare the fingerprints by telephone.",
    "It does not bind a side that runs another program: what such a side gets is described under "
    "'What a party that deviates gets' in the documentation.",
    "It cannot be withdrawn by removing it from the file: agree on a new one, or let it expire.",
    "It is no advice on law.",
)


def review_blocks(result: Review) -> list[Block]:
    """The review for a terminal: the same sections, nothing folded away."""
    title = Paragraph(_title(result), "strong")
    return [title, *_sections(result), Paragraph(_closing(result), "strong")]


def review_page(result: Review) -> Page:
    """The review as a page, to be read and printed."""
    return Page(
        window=f"Agreement {result.agreement.id[:8]} for review",
        title="Agreement for review",
        subject=_title(result),
        blocks=tuple(_sections(result)),
        footer=footer(result.version, result.made),
    )


def signed_blocks(result: SignedAgreement) -> list[Block]:
    """Who has signed now, and what each side's file needs."""
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
    return [
        Paragraph(first, "strong"),
        _signatures(result.agreement),
        Paragraph(f"{then}. To use it, [agreement] of each side's file holds only: {lines}"),
    ]


def short_blocks(agreement: AgreementRecord) -> list[Block]:
    """What is about to be signed, in short."""
    return [
        Paragraph("You are about to sign:", "strong"),
        Facts(
            {
                **({"purpose": agreement.purpose} if agreement.purpose else {}),
                "mechanism": str(agreement.settings.get("mechanism")),
                "rows": f"{agreement.settings.get('rows', 'not said')}",
                "valid until": printed_date(agreement.valid_until),
                "digest": agreement.digest,
            }
        ),
        _signatures(agreement),
        Paragraph("What it means, and what each side learns, says taciturn review.", "muted"),
    ]


def _title(result: Review) -> str:
    role = "" if result.name == result.role else f" ({result.role})"
    who = f"{result.name}{role} with {', '.join(result.peers)}"
    rows = f"{result.rows:,} training and {result.held_out_rows:,} held-out rows"
    return f"{result.agreement.settings.get('mechanism')} · {who} · {rows}"


def _closing(result: Review) -> str:
    if result.obstacles:
        return "As it stands this side would not begin: see what stands in the way."
    return "Nothing stands in this side's way. Whether to sign is for a person to decide."


def _sections(result: Review) -> list[Section]:
    return [
        _in_short(result),
        _obstacles(result),
        _trained(result),
        _learns(result),
        *_argument(result),
        _price(result),
        _cost(result),
        _who_signed(result),
        _settings(result),
        _meaning(),
        _glossary(),
        _decision(result),
    ]


def _in_short(result: Review) -> Section:
    ready = not result.obstacles
    rest = result.agreement.unsigned
    signed = "everybody has signed" if not rest else f"not yet signed by {', '.join(rest)}"
    price = _price_in_short(result)
    lines: list[Block] = []
    if result.agreement.purpose:
        lines.append(Paragraph(("Purpose: ", Span(result.agreement.purpose, "strong"))))
    facts: dict[str, Words] = {
        "protection": f"{result.agreement.settings.get('mechanism')}: {result.mechanism}",
        "Bob's labels": _NOT_RUN if result.check is None else _ANSWERS[result.check.verdict],
        "Alice's columns": _columns_in_short(result),
        "price": price,
        "signatures": f"{signed}; valid until {printed_date(result.agreement.valid_until)}",
        "in the way": "nothing" if ready else counted(len(result.obstacles), "obstacle"),
    }
    blocks = (*lines, Facts(facts))
    return Section("What this agreement comes to", "short", blocks, "In short", _badge(result))


def _badge(result: Review) -> Badge:
    check = result.check
    seat = None if check is None else check.bob_seat
    if result.obstacles:
        return Badge("leak", "✗", "not ready: something stands in the way")
    if check is not None and check.verdict == LEAKS:
        return Badge("leak", "▲", "to be weighed: labels leak to Alice")
    if result.role == "alice" and result.price.learns.columns is not None:
        return Badge("leak", "▲", "to be weighed: Bob can reconstruct Alice's columns")
    if check is not None and check.verdict == AT_RISK:
        return Badge("certain", "▲", "to be weighed: labels are at risk")
    if seat is not None and seat.level == LEAKS:
        return Badge("certain", "▲", "to be weighed: Bob can tell of Alice's columns")
    if check is None:
        return Badge("certain", "▲", "no attack was run")
    return Badge("not-shown", "○", "no leak was seen in the rehearsal")


def _columns_in_short(result: Review) -> Words:
    if result.price.learns.columns is not None:
        return _BOB_RECONSTRUCTS
    if result.check is None:
        return "No score of a training row is opened to Bob."
    seat = result.check.bob_seat
    if seat is not None:
        return _BOB_TELLS if seat.level == LEAKS else _BOB_CLEAR
    return "What Bob could tell of them is rehearsed with them: Alice's own review says it."


def _price_in_short(result: Review) -> str:
    ledger = result.price.ledger
    if ledger is not None:
        total = ledger.label_epsilon_total
        if math.isinf(total):
            return "a label's epsilon is infinite: there is no bound to what it tells"
        return (
            f"a label's {label_epsilon(total)}: whoever was at even odds about a label is then "
            f"{most_sure(total)} of it"
        )
    opened = result.opened
    if opened is None:
        return "–"
    return f"up to {counted(opened.this, 'score')} of each of Alice's rows for this training"


def _obstacles(result: Review) -> Section:
    if not result.obstacles:
        words = (
            "Nothing: this side's certificate, table, own file and limits fit the agreement, and "
            "every signature that is there is right."
        )
        return Section("What stands in the way", "obstacles", (Paragraph(words),), "Obstacles")
    # Words that stand out are never broken: only the sign does.
    rows = [(Span("✗", "bad"), one.why, one.way_out) for one in result.obstacles]
    drawn = table(("", "what", "way out"), rows, words=range(3), label="What stands in the way")
    return Section("What stands in the way", "obstacles", (drawn,), "Obstacles")


def _trained(result: Review) -> Section:
    agreed = result.agreement
    # What varies stands in the study, with all its values.
    settings = {**(agreed.study or {}), **agreed.settings}
    steps = (
        f"{_value(settings['passes'])} passes over all rows"
        if "passes" in settings
        else f"{_value(settings.get('epochs'))} epochs, in batches of "
        f"{_value(settings.get('batch-size'))} rows"
    )
    solver = str(settings.get("solver"))
    facts: dict[str, Words] = {
        "model": "a logistic regression: a weight for each column, and a probability for each row",
        "label": _label(agreed),
        "rows": f"{result.rows:,} to train on, and {result.held_out_rows:,} held out, on which Bob "
        "measures the model; ids alone decide which",
        "solver": f"{_SOLVERS.get(solver, solver)}; {steps}",
        "penalty": f"l1 {_value(settings.get('l1'))}, l2 {_value(settings.get('l2'))}",
        "Alice is told": _told(settings),
    }
    blocks: list[Block] = [Facts(facts), _columns_table(agreed, result)]
    if agreed.study is not None:
        blocks += [Heading("The study: trainings that are agreed on together")]
        blocks += [
            Paragraph(
                "Every combination of these values is trained, once without the rows of each fold "
                "and once on all rows; only Bob learns how good each model is. Which of them he "
                "uses afterwards depends on labels, and Alice learns it when he does."
            )
        ]
        blocks += [Facts({key: _value(value) for key, value in agreed.study.items()})]
    return Section("What is trained on what", "trained", tuple(blocks), "Trained")


def _label(agreed: AgreementRecord) -> str:
    label = agreed.sides[0].label
    return "not told by its name" if label is None else f"{label}, which {agreed.sides[0].name} has"


def _told(settings: Mapping[str, object]) -> str:
    if settings.get("tell-alice") != "quality":
        return "nothing of how good the model is"
    noise = " with noise" if settings.get("tell-epsilon") is not None else ""
    return f"how good the model is on held-out rows, in whole per cent{noise}"


def _columns_table(agreed: AgreementRecord, result: Review) -> Table:
    rows = [(side.name, side.role, *_columns(side, result)) for side in agreed.sides]
    headings = ("side", "role", "prepared columns", "columns of its table")
    return table(headings, rows, words=(0, 1, 3), label="The columns of each side")


def _columns(side: SideRecord, result: Review) -> tuple[str, str]:
    own = side.name == result.name
    count = result.own_columns if own else side.prepared_columns
    if count is None and side.role == "alice" and len(result.peers) == 1:
        agreed = result.agreement.settings.get("alice-columns")
        count = agreed if isinstance(agreed, int) else None
    if side.columns is not None:
        names = ", ".join(side.columns)
    elif own:
        names = f"{', '.join(result.own_column_names)} (not told to the other side)"
    else:
        names = "not told"
    return "not told" if count is None else str(count), names


def _learns(result: Review) -> Section:
    check = result.check
    blocks: list[Block] = [
        Heading("What each side receives"),
        Facts(learns_facts(result.price.learns)),
        *([] if result.columns is None else [exposure_facts(result.columns)]),
        *([Paragraph(_NOT_RUN)] if check is None else _rehearsed(check)),
    ]
    return Section("Who learns what", "learns", tuple(blocks), "Learns")


def _rehearsed(check: CheckResult) -> list[Block]:
    blocks: list[Block] = [
        Heading("Alice's seat: what she could tell of the labels"),
        Paragraph(_ANSWERS[check.verdict]),
        _verdicts(check.verdicts),
    ]
    if check.verdict != CLEAR:
        advice = {f"for {one.need}": f"{one.use}: {one.why}" for one in check.recommendations}
        blocks += [Heading("What to use in its place"), Facts(advice)]
    if check.bob_seat is not None:
        heading, *rest = rehearsal_blocks(check.bob_seat)
        answer = _BOB_TELLS if check.bob_seat.level == LEAKS else _BOB_CLEAR
        blocks += [heading, Paragraph(answer), *rest]
    else:
        blocks += [
            Heading("Bob's seat: what he could tell of Alice's columns"),
            Paragraph(
                "That is rehearsed with her columns, which are not here: her side's review says "
                "it. What he receives stands above."
            ),
        ]
    if check.prediction is not None:
        said = check.prediction
        blocks += [
            Heading("Afterwards: what predictions with the model tell"),
            Facts({"Bob": said.bob, "Alice": said.alice, "repeated": said.repeated}),
        ]
    stood = tuple(f"{note[:1].upper()}{note[1:]}." for note in (*check.warnings, *check.notes))
    return [*blocks, Heading("How this was rehearsed"), Bullets(stood)]


def _verdicts(verdicts: tuple[AttackVerdict, ...]) -> Table:
    names: dict[tuple[Level, str, str], list[str]] = {}
    for one in sorted(verdicts, key=lambda verdict: _ORDER.index(verdict.verdict)):
        names.setdefault((one.verdict, one.why, one.change), []).append(one.attack)
    rows = [
        (", ".join(alike), Span(level, _TONES[level]), why, change)
        for (level, why, change), alike in names.items()
    ]
    headings = ("attack", "verdict", "why", "smallest change that helps")
    # Where nothing has to change, no room is left for it.
    wide = 4 if any(row[3] for row in rows) else 3
    return table(
        headings[:wide],
        [row[:wide] for row in rows],
        words=range(wide),
        label="Attacks from Alice's seat, the worst first",
    )


def _argument(result: Review) -> list[Section]:
    settings = result.agreement.settings
    bits = settings.get("key-bits")
    if settings.get("reveal") or not isinstance(bits, int):
        return []
    return argument(str(settings.get("mechanism")), str(settings.get("scheme")), bits)


def _price(result: Review) -> Section:
    price, opened = result.price, result.opened
    blocks: list[Block] = []
    if price.ledger is not None:
        ledger, total = price.ledger, price.ledger_book
        facts: dict[str, Words] = {
            "this training": f"of a label, {label_epsilon(ledger.label_epsilon_total)}",
            "in releases": f"at most {counted(ledger.releases_per_row, 'release')} of a row"
            if ledger.releases_per_row
            else "none: nothing about a label leaves Bob readable",
            "this rests on": ledger.assumption,
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
            facts["at best"] = (
                f"any attack on them is right about {share(ceiling)} of labels at even odds"
            )
        blocks += [Heading("What it costs Bob's labels"), Facts(facts)]
    else:
        words = "What it costs Bob's labels, his own side's review says: his ledger is there."
        blocks.append(Paragraph(words))
    if opened is not None:
        limit = "none is set (scores-per-row)" if opened.limit is None else f"{opened.limit:,}"
        blocks += [
            Heading("What it costs Alice's columns: scores of one row that Bob has"),
            Facts(
                {
                    "so far": f"up to {opened.so_far:,}",
                    "this training": f"up to {opened.this:,}",
                    "then": f"up to {opened.then:,}",
                    "limit": limit,
                }
            ),
        ]
    return Section("The ledger: so far, this training, then", "price", tuple(blocks), "Ledger")


def _cost(result: Review) -> Section:
    estimate = result.estimate
    if estimate is None:
        words = "Only a side that has Alice's columns can tell: a dry run on her side does."
        return Section("Time and traffic", "cost", (Paragraph(words),), "Time")
    traffic = data_size(estimate.bytes_to_alice + estimate.bytes_to_bob)
    facts: dict[str, Words] = {
        "computing": f"about {duration(estimate.seconds)} on this machine, both sides together",
        "traffic": f"{traffic}: {data_size(estimate.bytes_to_alice)} to Alice, "
        f"{data_size(estimate.bytes_to_bob)} to Bob",
        "iterations": f"{estimate.iterations:,}",
    }
    blocks: list[Block] = [Facts(facts)]
    if result.assumed_columns is not None:
        stood = counted(result.assumed_columns, "random column")
        blocks.append(Paragraph(f"{stood} stood in for Alice's, which may take longer.", "muted"))
    blocks.append(Paragraph("The network's own time comes on top.", "muted"))
    return Section("Time and traffic", "cost", tuple(blocks), "Time")


def _who_signed(result: Review) -> Section:
    agreed = result.agreement
    facts: dict[str, Words] = {
        "agreement": Span(agreed.id, "code"),
        "digest": Span(agreed.digest, "code"),
        "valid until": f"{printed_date(agreed.valid_until)}: a training may begin until then, and "
        "one that has begun may be finished later; predictions and services end then",
    }
    note = (
        "A fingerprint tells a key. Compare those of the other side with it by another way than "
        "this file, such as the telephone."
    )
    blocks = (_signatures(agreed), Facts(facts), Paragraph(note, "muted"))
    return Section("Who has signed", "signatures", blocks, "Signatures")


def _signatures(agreed: AgreementRecord) -> Table:
    rows = [
        (
            side.name,
            side.role,
            Span("not yet", "warning") if side.signed is None else printed_date(side.signed),
            Span(side.fingerprint, "code") if side.fingerprint else "not known yet",
        )
        for side in agreed.sides
    ]
    headings = ("side", "role", "signed", "fingerprint of its key")
    return table(headings, rows, words=range(4), label="Who has signed")


def _settings(result: Review) -> Section:
    settings = {key: _value(value) for key, value in result.agreement.settings.items()}
    words = "All of them are a part of what is signed; defaults are written out."
    blocks = (Paragraph(words), Facts(dict(settings)))
    return Section("All agreed settings", "settings", blocks, "Settings")


def _value(value: object) -> str:
    if isinstance(value, Mapping):
        return ", ".join(f"{key} {_value(part)}" for key, part in value.items())
    if isinstance(value, list | tuple):
        return ", ".join(map(_value, value))
    return plain(value) if value != "" else "(empty)"


def _meaning() -> Section:
    blocks: tuple[Block, ...] = (
        Bullets(tuple(map(coded, _MEANS))),
        Paragraph("What it does not mean:", "strong"),
        Bullets(_MEANS_NOT),
    )
    return Section("What signing means, and what not", "meaning", blocks, "Meaning")


def _glossary() -> Section:
    return Section("Words used here", "words", (Facts(dict(_GLOSSARY)),), "Words")


def _decision(result: Review) -> Section:
    words = (
        f"About the agreement {result.agreement.id} with the digest {result.agreement.digest}. "
        "What is signed by hand here is for your own records; the program needs taciturn sign."
    )
    return Section("Decision", "decision", (Paragraph(words, "muted"), Blanks(SIGNED)), "Decision")
