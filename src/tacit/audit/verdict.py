"""What the findings say, in words that claim no more than they show."""

from __future__ import annotations

from collections.abc import Sequence

from tacit.audit.judge import AttackScore, ControlScore


def verdict(controls: Sequence[ControlScore], attacks: Sequence[AttackScore]) -> str:
    """Names the strongest attack that told more than the controls, or says that none did.

    Over all rows an attack tells more when the lower end of its interval lies above the better
    control. An attack that solved some rows for certain is named even where that is too little to
    show over all rows.
    """
    known = max(control.accuracy for control in controls)
    telling = [attack for attack in attacks if attack.accuracy_low > known]
    if telling:
        best = max(telling, key=lambda attack: attack.accuracy)
        return (
            f"{best.name} tells Alice {best.accuracy:.2%} of the labels; "
            f"the controls tell {known:.2%}."
        )
    sure = max(attacks, key=lambda attack: attack.decided, default=None)
    if sure is not None and sure.decided_correct is not None:
        return (
            f"Over all rows no attack of ours beat the controls ({known:.2%}), but {sure.name} "
            f"calls {sure.decided:.2%} of the labels certain and is right on "
            f"{sure.decided_correct:.2%} of those. A canary run (--permute-labels) shows what the "
            "protocol alone tells."
        )
    return (
        f"No attack of ours told more than the controls ({known:.2%}). "
        "That is not a proof of safety."
    )
