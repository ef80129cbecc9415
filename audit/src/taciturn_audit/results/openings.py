"""Attacks on what is opened after training, and with inputs that a side chooses.

Where several runs are averaged, the same types hold means.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from statistics import fmean

from taciturn_audit.results.columns import Skipped

RECOVERED = "share of values recovered"
ALICE_PART = "correlation with Alice's part of the scores"
DIRECTION = "cosine of Alice's weights with the row"
LABELS = "share of labels right"
BITS = "bits about the row, at most"
ROW = "correlation with the row"


@dataclass(frozen=True, slots=True, kw_only=True)
class OpeningAttack:
    """Success of an attack on what is opened after training.

    ``adversary`` is "alice" or "bob", ``uses`` what the attack works with. ``control`` is the same
    measure without the opened numbers, or without the chosen input; ``above`` says whether the
    result is significantly above it. ``models`` counts the models whose scores or weights it uses.
    """

    name: str
    adversary: str
    uses: str
    measure: str
    result: float
    control: float
    above: bool
    known_rows: float
    models: float
    seconds: float
    remark: str = ""


@dataclass(frozen=True, slots=True)
class OpeningFindings:
    """Findings of the attacks on what is opened after training.

    ``leaks`` says whether an attack is above its control; ``verdict`` is the sentence about the
    strongest. ``further`` says whether further trainings were run for it.
    """

    attacks: tuple[OpeningAttack, ...]
    skipped: tuple[Skipped, ...]
    leaks: bool
    verdict: str
    further: bool


def conclude_openings(
    attacks: Sequence[OpeningAttack], skipped: Sequence[Skipped] = (), *, further: bool = False
) -> OpeningFindings:
    """Findings with their verdict."""
    above = [attack for attack in attacks if attack.above]
    if not attacks:
        verdict = "Nothing was opened after training that an attack we know can use."
    elif not above:
        verdict = "No attack we know on what is opened after training is above its control."
    else:
        best = max(above, key=lambda one: (", up to" not in one.measure, abs(one.result)))
        verdict = (
            f"{best.adversary.capitalize()} learns from {best.uses}: {best.measure} "
            f"{best.result:.3g}, control {best.control:.3g} (attack {best.name})."
        )
    return OpeningFindings(tuple(attacks), tuple(skipped), bool(above), verdict, further)


def mean_openings(parts: Sequence[OpeningFindings]) -> OpeningFindings:
    """Means over runs of the attacks that the first run has; above where it is in every run."""
    first = parts[0]
    if len(parts) == 1:
        return first
    means = []
    for attack in first.attacks:
        same = [
            other
            for part in parts
            for other in part.attacks
            if (other.name, other.measure, other.known_rows, other.models)
            == (attack.name, attack.measure, attack.known_rows, attack.models)
        ]
        means.append(
            replace(
                attack,
                result=fmean(one.result for one in same),
                control=fmean(one.control for one in same),
                seconds=fmean(one.seconds for one in same),
                above=all(one.above for one in same),
                remark=f"mean of {len(same)} runs",
            )
        )
    return conclude_openings(means, first.skipped, further=first.further)
