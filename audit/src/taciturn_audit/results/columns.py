"""How well Bob can reconstruct Alice's columns: an audit with Bob as the adversary.

Where several runs are averaged, the same types hold means, and ``recovered_low`` and
``recovered_high`` are the 95 % interval of the *mean* over the runs (Student's t), not of one run's
values.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from statistics import fmean
from typing import Any

from taciturn.errors import counted
from taciturn.report.blocks import (
    Block,
    Bullets,
    Heading,
    Paragraph,
    Span,
    Table,
    Words,
    table,
)
from taciturn.report.formatting import NONE, interval, share
from taciturn.results.serialise import INLINE, OMITTED


@dataclass(frozen=True, slots=True)
class Look:
    """Guesses of secret bits, or of halves of scores, from one side of the received messages.

    The ends are those of a 95 % interval.
    """

    name: str
    right: int
    judged: int
    accuracy: float
    accuracy_low: float
    accuracy_high: float
    noticed: bool


@dataclass(frozen=True, slots=True)
class Fault:
    """A fault that was put in on purpose, and whether it was noticed.

    ``size`` is the least that was: bytes, or microseconds; absent where there is none.
    """

    name: str
    words: str
    by: str
    noticed: bool
    size: int | None = field(default=None, metadata=OMITTED)


@dataclass(frozen=True, slots=True, kw_only=True)
class Separation:
    """Whether Bob can separate single Alices' scores from the sum that he receives.

    ``numbers`` counts the answers that there are. A dependence that tells the share ``detectable``
    of the scores of a look is noticed with probability 95 %; where there is none, one is said to be
    noticed with probability ``false_alarm`` at most, over all looks.
    """

    alices: tuple[str, ...]
    numbers: int
    looks: tuple[Look, ...]
    false_alarm: float
    detectable: float
    faults: tuple[Fault, ...]
    noticed: bool
    seconds: float


@dataclass(frozen=True, slots=True)
class Skipped:
    """An attack, or a control, that did not apply."""

    name: str
    reason: str


R2_MARGIN = 0.1
"""By how much an attack's R2 must exceed the controls' to count as told."""


@dataclass(frozen=True, slots=True)
class ColumnControl:
    """Baseline knowledge of Alice's columns without scores; ``r2`` is None if none is numeric."""

    name: str
    r2: float | None
    recovered: float


@dataclass(frozen=True, slots=True)
class ColumnScore:
    """Accuracy of an estimate of Alice's columns, over rows that were not known.

    ``r2`` is the mean over her numeric columns, None where she has none. ``recovered`` is the share
    of her values within a tenth of their column's standard deviation, or of the right category; its
    ends are those of a 95 % interval. ``ambiguity`` is what the attack leaves open, which the judge
    settled on other rows. ``limited`` says that a limit on its work ended the attack, and is absent
    otherwise.
    """

    name: str
    known_rows: float
    r2: float | None
    recovered: float
    recovered_low: float
    recovered_high: float
    seconds: float
    values: float
    remark: str = ""
    ambiguity: str = "none"
    limited: bool | None = field(default=None, metadata=OMITTED)


@dataclass(frozen=True, slots=True)
class ColumnFindings:
    """Findings of the column attacks in a run, with the baselines."""

    controls: tuple[ColumnControl, ...]
    attacks: tuple[ColumnScore, ...]
    skipped: tuple[Skipped, ...]
    leaks: bool
    verdict: str


@dataclass(frozen=True, slots=True)
class ExposedColumn:
    """R2 of an attack on one of Alice's columns."""

    name: str
    r2: float


@dataclass(frozen=True, slots=True, kw_only=True)
class ColumnRehearsal:
    """Predicted success of Bob as the adversary, before any training, for Alice.

    ``exposed`` are the columns that an attack reconstructs best. No number of passes is called
    safe: an attack that is not known here may need fewer.
    """

    findings: ColumnFindings = field(metadata=INLINE)
    level: str
    rehearsed_passes: int
    exposed: tuple[ExposedColumn, ...]
    advice: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class BobSeat:
    """Audit with Bob as the adversary; ``canary`` has Alice's rows permuted against his.

    ``separation`` says whether he can tell single Alices' scores, and is absent where there is one.
    """

    findings: ColumnFindings = field(metadata=INLINE)
    canary: ColumnFindings | None
    separation: Separation | None = field(default=None, metadata=OMITTED)


def mean_adversary(seats: Sequence[BobSeat]) -> BobSeat:
    """Means over runs; of the canary where every run has one, and the worst separation."""
    canaries = [seat.canary for seat in seats if seat.canary is not None]
    findings = mean_columns([seat.findings for seat in seats])
    canary = mean_columns(canaries) if len(canaries) == len(seats) else None
    tried = [seat.separation for seat in seats if seat.separation is not None]
    return BobSeat(
        findings, canary, max(tried, key=lambda separation: separation.noticed, default=None)
    )


def mean_columns(parts: Sequence[ColumnFindings]) -> ColumnFindings:
    """Means over runs, of the attacks that the first run has; what was skipped is the first's."""
    first = parts[0]
    if len(parts) == 1:
        return first
    controls = tuple(
        ColumnControl(
            first_control.name, _mean_fit(same), fmean(control.recovered for control in same)
        )
        for first_control in first.controls
        for same in [[c for part in parts for c in part.controls if c.name == first_control.name]]
    )
    attacks = tuple(
        _mean_score(
            [
                score
                for part in parts
                for score in part.attacks
                if (score.name, score.known_rows) == (attack.name, attack.known_rows)
            ]
        )
        for attack in first.attacks
    )
    leaks, verdict = conclude_columns(controls, attacks)
    alone = sum(part.leaks for part in parts)
    words = (
        f"{verdict} Taken alone, {alone} of {len(parts)} runs show an attack above the controls."
    )
    return ColumnFindings(controls, attacks, first.skipped, leaks, words)


def _mean_score(scores: Sequence[ColumnScore]) -> ColumnScore:
    # An attack that applied in one run alone keeps the interval of that run's values.
    low, high = scores[0].recovered_low, scores[0].recovered_high
    if len(scores) > 1:
        # Loaded here: it needs scipy, which a training does without.
        from taciturn_audit.exact_intervals import t_interval

        low, high = t_interval([score.recovered for score in scores])
    means: dict[str, Any] = {
        name: fmean(getattr(score, name) for score in scores)
        for name in ("recovered", "seconds", "values")
    }
    return replace(
        scores[0],
        **means,
        r2=_mean_fit(scores),
        recovered_low=low,
        recovered_high=high,
        remark=f"mean of {len(scores)} runs",
        limited=any(score.limited for score in scores) or None,
    )


def _mean_fit(parts: Sequence[ColumnControl] | Sequence[ColumnScore]) -> float | None:
    fits = [fit.r2 for fit in parts if fit.r2 is not None]
    return fmean(fits) if fits else None


def conclude_columns(
    known: Sequence[ColumnControl], attacks: Sequence[ColumnScore]
) -> tuple[bool, str]:
    """Whether an attack recovered more than the controls, and the sentence about it.

    It did where the whole interval of what it recovered lies above every control, or its R2 does by
    ``R2_MARGIN``.
    """
    most, fit = _without(known)
    without = f"{100 * most:.1f} %" + (f", R2 {fit:.2f}" if fit < 1.0 else "")
    above = [attack for attack in attacks if is_above(attack, known)]
    if above:
        # More values before a better fit; of equal ones, the one that leaves less open.
        best = max(
            above,
            key=lambda one: (one.recovered_low > most, one.recovered, one.ambiguity == "none"),
        )
        how = f"the attack {best.name}, knowing {_known(best)}{_left(best)}"
        if best.recovered_low > most:
            little = "" if _is_clearly_more(best, most) else " a little"
            return True, (
                f"Her scores raise the values that Bob gets right{little} (within a tenth of a "
                "standard deviation, or in the right category) from "
                f"{100 * most:.1f} % to {100 * best.recovered:.1f} % of {best.values:,.0f} (95 % "
                f"interval {100 * best.recovered_low:.1f} – {100 * best.recovered_high:.1f} %): "
                f"{how}."
            )
        return True, (
            "Her scores raise the variance of her columns that Bob explains (R2) from "
            f"{fit:.2f} to {best.r2 or 0.0:.2f}: {how}. They do not raise the values that he gets "
            f"right ({100 * best.recovered:.1f} %, {100 * most:.1f} % without her scores)."
        )
    if not attacks:
        return False, (
            "No column attack we know applies to what Bob received. That is not a proof of safety."
        )
    return False, (
        f"No column attack we know recovers more than the better control ({without}). That is not "
        "a proof of safety."
    )


def _without(known: Sequence[ColumnControl]) -> tuple[float, float]:
    """What is recovered and explained without scores; an R2 of 1, which none exceeds, if none."""
    fits = [control.r2 for control in known if control.r2 is not None]
    return max(control.recovered for control in known), max(fits, default=1.0)


def _is_clearly_more(attack: ColumnScore, most: float) -> bool:
    """Whether intervals as wide as the attack's, of it and of the control, would lie apart."""
    return attack.recovered_low - most > attack.recovered - attack.recovered_low


def gain(findings: ColumnFindings) -> tuple[bool, float, float]:
    """How much more attacks find than the controls: whether clearly so, in values, and in R2."""
    most, fit = _without(findings.controls)
    more = [attack for attack in findings.attacks if attack.recovered_low > most]
    fits = [(one.r2 or 0.0) - fit for one in findings.attacks if _explains_more(one, fit)]
    clearly = bool(fits) or any(_is_clearly_more(attack, most) for attack in more)
    values = [attack.recovered - most for attack in more]
    return clearly, max(values, default=0.0), max(fits, default=0.0)


def _known(attack: ColumnScore) -> str:
    count = counted(round(attack.known_rows), "row") if attack.known_rows else "no row"
    return f"{count} of hers"


def _left(attack: ColumnScore) -> str:
    if attack.ambiguity == "a linear map":
        return ", after a linear change of coordinates that he does not know"
    return "" if attack.ambiguity == "none" else f", up to {attack.ambiguity}"


def is_above(attack: ColumnScore, known: Sequence[ColumnControl]) -> bool:
    """Whether an attack's figures lie above those of every control."""
    most, fit = _without(known)
    return attack.recovered_low > most or _explains_more(attack, fit)


def _explains_more(attack: ColumnScore, fit: float) -> bool:
    return attack.r2 is not None and attack.r2 > fit + R2_MARGIN


ABOVE = "▲"
MARKED = f"{ABOVE} above both controls: the whole interval of the values recovered, or R2 by 0.1."

TITLE = "How well Bob can reconstruct Alice's columns"

_LEFT_OPEN = {
    "none": NONE,
    "order and sign of columns": "sign",
    "order, unit and offset of columns": "unit",
    "a linear map": "linear map",
}


def column_scores(findings: ColumnFindings, caption: str) -> Table:
    """Column attacks below the controls."""
    headings = ["", "known rows", "recovered", "95 % interval", "R2", "recovered up to", "time"]
    controls: list[tuple[Words, ...]] = [
        (
            Span(f"{control.name} (control)", "muted"),
            NONE,
            share(control.recovered),
            NONE,
            r_squared(control.r2),
            NONE,
            NONE,
        )
        for control in findings.controls
    ]
    most, fit = _without(findings.controls)
    attacks: list[tuple[Words, ...]] = [
        (
            attack.name,
            f"{attack.known_rows:.0f}",
            _marked(share(attack.recovered), attack.recovered_low > most),
            interval(attack.recovered_low, attack.recovered_high),
            _marked(r_squared(attack.r2), _explains_more(attack, fit)),
            _LEFT_OPEN.get(attack.ambiguity, attack.ambiguity),
            f"{attack.seconds:.2f}\u00a0s",
        )
        for attack in findings.attacks
    ]
    drawn = table(headings, [], caption=caption)
    return Table(drawn.columns, tuple(filter(None, (tuple(controls), tuple(attacks)))), caption)


def _marked(figure: str, above: bool) -> Words:
    return (Span(ABOVE, "bad"), f" {figure}") if above else figure


def rehearsal_blocks(rehearsed: ColumnRehearsal) -> list[Block]:
    """Report on Bob as the adversary before a training, with advice to Alice."""
    findings = rehearsed.findings
    caption = f"{TITLE}: simulated with {rehearsed.rehearsed_passes} passes"
    blocks: list[Block] = [
        Heading("What Bob could learn about Alice's columns"),
        Paragraph(findings.verdict),
    ]
    if findings.attacks:
        blocks += [column_scores(findings, caption), Paragraph(MARKED, "muted")]
    if rehearsed.advice:
        blocks += [Paragraph("For Alice:", "strong"), Bullets(rehearsed.advice)]
    return blocks


def r_squared(r2: float | None) -> str:
    """R2 with two decimals."""
    # Adding 0.0 turns -0.0 into 0.0.
    return NONE if r2 is None else f"{round(r2, 2) + 0.0:.2f}"
