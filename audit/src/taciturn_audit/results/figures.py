"""Figures of an attack by name, for exports (``taciturn.results.figures``)."""

from __future__ import annotations

from taciturn.results.figures import Values
from taciturn.results.run_entry import Leakage
from taciturn_audit.results.columns import BobSeat


def leakage_values(leakage: Leakage | None) -> Values:
    """Labels that the best attack recovered, and the baseline."""
    if leakage is None:
        return {}
    labels = "labels shuffled" if leakage.labels == "shuffled" else "true labels"
    values = {
        f"leakage/best attack, {labels}": leakage.value,
        f"leakage/known without messages, {labels}": leakage.known,
        f"leakage/beyond the control, {labels}": leakage.beyond,
    }
    return {name: value for name, value in values.items() if value is not None}


def adversary_values(seat: BobSeat | None) -> Values:
    """Values of Alice's columns that Bob's best attack recovered."""
    if seat is None or not seat.findings.attacks:
        return {}
    best = max(attack.recovered for attack in seat.findings.attacks)
    return {"leakage/Alice's values that Bob tells": best}
