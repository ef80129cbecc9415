"""What the findings say, in words that claim no more than they show.

**Guarantee.** An attack is said to tell more than the controls only where the lower end of its 95 %
interval, of the accuracy or of the AUC, lies above the best control's figure; the sentence names
the figure that shows it. No outcome is worded as safety.

**Assumes.** What the intervals assume (``judge``). A control's figure is taken as it is, and each
attack and figure is compared on its own: with k of them, one may show by chance up to k times as
often as one alone.
"""

from __future__ import annotations

from collections.abc import Sequence

from taciturn.audit.judge import AttackScore, ControlScore


def verdict(controls: Sequence[ControlScore], attacks: Sequence[AttackScore]) -> str:
    """Names the strongest attack that told more than the controls, or says that none did.

    The accuracy is looked at first, then the AUC: where one label is rare, an attack may rank the
    rows perfectly and still guess fewer of them right than always guessing the common label does.
    An attack that solved some rows for certain is named even where that shows in neither.

    Args:
        controls: What is known without the messages; at least one.
        attacks: What each attack told; there may be none.

    Returns:
        One or a few sentences.

    >>> prior = ControlScore("prior", 0.93, 0.5)
    >>> blind = AttackScore("x", 455, 0.84, 0.80, 0.87, 0.52, 0.43, 0.61, 0.0, None, 0.1, "")
    >>> print(verdict([prior], [blind]))  # doctest: +NORMALIZE_WHITESPACE
    No attack of ours told more than the controls: best accuracy 84.00 % against 93.00 %, best AUC
    52.00 % against 50.00 %. That is not a proof of safety.
    """
    known = max(control.accuracy for control in controls)
    known_auc = max(control.auc for control in controls)
    if not attacks:
        return (
            f"No attack of ours applies to what Alice has; the controls tell {_percent(known)} of "
            "the labels. That is not a proof of safety."
        )
    if telling := [attack for attack in attacks if attack.accuracy_low > known]:
        best = max(telling, key=lambda attack: attack.accuracy)
        return (
            f"{best.name} tells Alice {_percent(best.accuracy)} of {best.rows} labels "
            f"({_interval(best.accuracy_low, best.accuracy_high)}); "
            f"the better control tells {_percent(known)}."
        )
    if ranking := [attack for attack in attacks if attack.auc_low > known_auc]:
        best = max(ranking, key=lambda attack: attack.auc)
        return (
            f"{best.name} ranks the labels with AUC {_percent(best.auc)} "
            f"({_interval(best.auc_low, best.auc_high)}, {best.rows} rows); "
            f"the better control's AUC is {_percent(known_auc)}."
        )
    sure = max(attacks, key=lambda attack: attack.decided)
    if sure.decided_correct is not None:
        return (
            "Over all rows no attack of ours told more than the controls (accuracy "
            f"{_percent(known)}, AUC {_percent(known_auc)}), but {sure.name} calls "
            f"{_percent(sure.decided)} of {sure.rows} labels certain and is right on "
            f"{_percent(sure.decided_correct)} of those. A canary run (--permute-labels) shows "
            "what the protocol alone tells."
        )
    accuracy = max(attack.accuracy for attack in attacks)
    area = max(attack.auc for attack in attacks)
    return (
        f"No attack of ours told more than the controls: best accuracy {_percent(accuracy)} "
        f"against {_percent(known)}, best AUC {_percent(area)} against {_percent(known_auc)}. "
        "That is not a proof of safety."
    )


def _percent(share: float) -> str:
    return f"{100 * share:.2f} %"


def _interval(low: float, high: float) -> str:
    return f"95 % interval {100 * low:.2f} – {_percent(high)}"
