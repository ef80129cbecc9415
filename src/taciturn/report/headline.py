"""The words on top of the page: the gravest of what was found. Nothing is ever called safe."""

from __future__ import annotations

from dataclasses import dataclass

from taciturn.report.claim import Evidence, Ledger
from taciturn.report.findings import GRAVEST_FIRST, Findings, Status, tells
from taciturn.report.record import Record


@dataclass(frozen=True, slots=True)
class Verdict:
    """What stands on top."""

    status: Status
    headline: str
    sentences: tuple[str, ...]


_HIDDEN = (
    "On the real labels no attack stands out from the controls. The leak is there all the same: "
    "shuffled labels show it."
)

_WITHOUT_CANARY = {
    False: "No canary run stands beside this run: what the columns tell and what the messages tell "
    "are not held apart.",
    True: "The labels were shuffled before training, so that the columns say nothing about them.",
}


def verdict_of(
    record: Record, run: Findings, canary: Findings | None, ledger: Ledger, evidence: Evidence
) -> Verdict:
    """Weighs the claim, the canary run and the run itself; the gravest gives the headline."""
    guarantee = ledger.meaning
    if record.get("shuffle_truth"):
        return Verdict(
            Status.CHECK,
            "Judged against labels shuffled after the run",
            (
                "Here every attack must sit at chance. The figures say whether the audit can be "
                "trusted, and nothing about the protocol.",
                tells(run),
            ),
        )
    if evidence.violated:
        return Verdict(
            Status.REFUTED,
            "The claimed protection does not hold",
            (*evidence.sentences, tells(canary or run)),
        )
    if canary is None:
        caveat = _WITHOUT_CANARY[bool(record.get("permute_labels"))]
        return _weighed(run, (run,), caveat, guarantee)
    both = (canary, run)
    if canary.status is Status.LEAK:
        return _weighed(canary, both, "" if run.status is Status.LEAK else _HIDDEN, guarantee)
    if run.status is Status.LEAK:
        return Verdict(
            Status.LEAK,
            "On the real labels, an attack told Alice more than the controls",
            (tells(run), tells(canary), guarantee),
        )
    gravest = min(both, key=lambda found: GRAVEST_FIRST.index(found.status))
    return _weighed(gravest, both, "", guarantee)


def _weighed(
    gravest: Findings, shown: tuple[Findings, ...], caveat: str, guarantee: str
) -> Verdict:
    """The headline of the findings that weigh most, with what each told."""
    proof = ""
    if gravest.status in (Status.NOT_SHOWN, Status.NOT_TESTED):
        proof = "That is not a proof of safety: a better attack may exist."
    sentences = (*(tells(found) for found in shown), proof, caveat, guarantee)
    return Verdict(gravest.status, _headline(gravest), tuple(filter(None, sentences)))


def _headline(found: Findings) -> str:
    if found.status is Status.LEAK:
        shared = not found.alone or found.scope.startswith("mean")
        whole = shared and found.lead.figure == "accuracy" and found.lead.value == 1.0
        return "Alice can tell every label" if whole else "The messages tell Alice about the labels"
    if found.status is Status.CERTAIN and found.leaking:
        return "Some runs show a leak"
    return {
        Status.CERTAIN: "Some labels may be given away",
        Status.NOT_SHOWN: "No attack of ours succeeded",
        Status.NOT_TESTED: "No attack of ours applies to what Alice has",
    }[found.status]
