"""Leak or no leak: the one rule, for a run, for several, for a rehearsal and for a whole audit.

**Guarantee.** An attack is said to tell more than the controls only where the lower end of its 95 %
interval, of the accuracy or of the AUC, lies above the best control's figure; the sentence names
the figure that shows it. Where labels were shuffled before training, only ``prior`` is a control:
whatever else ranks such labels, the model that Alice ends up with included, learnt of them through
the protocol. There a protocol that tells nothing is called a leak with probability 5 % at most in
one run, for all attacks and both figures together: at an area of one half the interval is the
Mann-Whitney test, whose normal quantile errs on the side of silence for few positives and for ties,
and its confidence is Bonferroni's (``_beyond_chance``).

In a rehearsal on random labels an attack that guesses at random is said to
leak with probability ``FALSE_ALARM`` at most, and to be a risk with ``RISK_ALARM``: a leak where it
gets most labels right, and any labels at all where the ledger promises nothing; one that calls rows
certain leaks where nine of ten of those are right, and is a risk where they are few and all of
them right. An attack that a limit on its work ended is a risk, whatever it said until then. No
outcome is worded as safety.

**Assumes.** What the intervals assume (``judge``). A control's figure is taken as it is. On real
labels each attack and figure is compared on its own: with k of them, one may show by chance up to k
times as often as one alone.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from enum import Enum
from typing import Literal, TypeAlias

import numpy as np

from taciturn.data.label_table import LabelTable
from taciturn.errors import counted
from taciturn.numerics.intervals import auc_interval
from taciturn.results.run_entry import Leakage
from taciturn_audit.attacks.base import LabelGuess, ModelOnlyControl
from taciturn_audit.exact_intervals import clopper_pearson
from taciturn_audit.results.audit import (
    REUSED_SEED,
    UNENCRYPTED,
    AttackScore,
    Control,
    Distinguisher,
    Evidence,
    Fault,
    Findings,
)
from taciturn_audit.results.check import AT_RISK, CLEAR, LEAKS, RAN, Level
from taciturn_audit.results.columns import BobSeat, gain
from taciturn_audit.results.runs import AuditResult, mean_findings
from taciturn_audit.results.session import SessionAudit

FALSE_ALARM, RISK_ALARM = 1e-4, 0.05
# Of the rows an attack speaks about it must get this share right, for sure, to be called a leak.
_LEAK_SHARE = 0.75
# A smaller share right is not called a risk, unless it is as far beyond chance as a leak must be.
_RISK_SHARE = 0.55
# Where the commonest label is a larger share of the rows than this, attacks are ranked by AUC.
_UNBALANCED = 2 / 3
# Rows called certain count where they are this share of all, and nine of ten of them right.
_CERTAIN_SHARE = 0.02

_LIMITED = "a limit on its work ended it, so that more may be possible"

Measure: TypeAlias = Literal["accuracy", "AUC"]


class Status(Enum):
    """Outcome of an audit, the gravest first: a word for style sheets, a sign, a label."""

    REFUTED = ("refuted", "▲", "Claim refuted")
    LEAK = ("leak", "▲", "Leak found")
    CERTAIN = ("certain", "◆", "Leak possible")
    UNJUDGED = ("unjudged", "◆", "Not judged yet")
    NOT_SHOWN = ("not-shown", "○", "No leak found; not a proof of safety")
    NOT_TESTED = ("not-tested", "○", "No attack applies; not a proof of safety")
    CHECK = ("check", "■", "Self-test of the audit, not of the protocol")

    def __init__(self, word: str, sign: str, label: str) -> None:
        self.word, self.sign, self.label = word, sign, label


GRAVEST_FIRST = tuple(Status)


# --- one run ----------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Verdict:
    """Outcome of the attacks on one run.

    ``attack`` is the strongest of those above the controls, by the figure that shows it, or else
    the best by ``ranked_by``; None where none applies. ``control`` is the best of ``controls`` by
    the same figure. ``above`` names the attacks above the controls, and the first figure that shows
    it. ``ranked_by`` is the AUC where one label is rare, or where the AUC alone shows a leak.
    """

    status: Status
    figure: Measure
    attack: AttackScore | None
    control: Control
    above: Mapping[str, Measure]
    sentence: str
    ranked_by: Measure
    controls: tuple[Control, ...]

    @property
    def value(self) -> float:
        """The figure of the attack; NaN where there is none."""
        return math.nan if self.attack is None else value_of(self.attack, self.figure)

    @property
    def interval(self) -> tuple[float, float]:
        """The 95 % interval of the attack's figure; NaN where there is none."""
        return (
            (math.nan, math.nan) if self.attack is None else interval_of(self.attack, self.figure)
        )

    @property
    def known(self) -> float:
        """The figure of the control."""
        return value_of(self.control, self.figure)


def value_of(entry: AttackScore | Control, figure: Measure) -> float:
    """An attack's or a control's figure."""
    return entry.auc if figure == "AUC" else entry.accuracy


def interval_of(attack: AttackScore, figure: Measure) -> tuple[float, float]:
    """The ends of the 95 % interval of an attack's figure."""
    if figure == "AUC":
        return attack.auc_low, attack.auc_high
    return attack.accuracy_low, attack.accuracy_high


def ranking_figure(controls: Sequence[Control]) -> Measure:
    """The figure by which attacks compare: the AUC where one label is rare.

    Always guessing the commonest label is then hard to beat, and an attack that ranks every row
    rightly can lie below it by its accuracy.

    >>> ranking_figure([Control("prior", 0.93, 0.5)]), ranking_figure([Control("prior", 0.6, 0.5)])
    ('AUC', 'accuracy')
    """
    commoner = next((control.accuracy for control in controls if control.name == "prior"), 0.0)
    return "AUC" if commoner > _UNBALANCED else "accuracy"


def weigh(
    controls: Sequence[Control], attacks: Sequence[AttackScore], *, shuffled: bool = False
) -> Verdict:
    """The verdict of the attacks, if any, against the controls, at least one.

    The accuracy is looked at first, then the AUC: where one label is rare, an attack may rank the
    rows perfectly and still guess fewer of them right than always guessing the common label does.
    An attack that solved some rows for certain is named even where that shows in neither.
    ``shuffled``: labels were shuffled before training, and only the prior is a control.

    >>> prior = Control("prior", 0.93, 0.5)
    >>> blind = AttackScore("x", 455, 0.84, 0.80, 0.87, 0.52, 0.43, 0.61, 0.0, None, 0.1, "")
    >>> print(weigh([prior], [blind]).sentence)  # doctest: +NORMALIZE_WHITESPACE
    No attack we know recovered more than the controls: best accuracy 84.00 % (control 93.00 %),
    best AUC 52.00 % (control 50.00 %). That is not a proof of safety.
    """
    if shuffled:
        controls = [score for score in controls if score.name == "prior"]
    known = max(controls, key=lambda control: control.accuracy)
    ranked = max(controls, key=lambda control: _or_none(control.auc))
    right = [attack for attack in attacks if attack.accuracy_low > known.accuracy]
    ranking = [attack for attack in attacks if attack.auc_low > ranked.auc]
    if shuffled:
        right = [score for score in right if _beyond_chance(score, "accuracy", known, len(attacks))]
        ranking = [score for score in ranking if _beyond_chance(score, "AUC", ranked, len(attacks))]
    above: dict[str, Measure] = {attack.name: "AUC" for attack in ranking}
    above |= {attack.name: "accuracy" for attack in right}
    by, used = ranking_figure(controls), tuple(controls)
    kind = "shuffled labels" if shuffled else "labels"
    if right:
        best = max(right, key=lambda attack: attack.accuracy)
        sentence = (
            f"{best.name} recovers {_percent(best.accuracy)} of {best.rows:.0f} labels "
            f"({_interval(best.accuracy_low, best.accuracy_high)}); "
            f"{control_words(known)} recovers {_percent(known.accuracy)}."
        )
        return Verdict(Status.LEAK, "accuracy", best, known, above, sentence, by, used)
    if ranking:
        best = max(ranking, key=lambda attack: attack.auc)
        sentence = (
            f"{best.name} ranks the {kind} with AUC {_percent(best.auc)} "
            f"({_interval(best.auc_low, best.auc_high)}, {best.rows:.0f} rows); "
            f"{control_words(ranked)} has {_percent(ranked.auc)}."
        )
        return Verdict(Status.LEAK, "AUC", best, ranked, above, sentence, "AUC", used)
    status, sentence = _nothing_shown(attacks, known.accuracy, ranked.auc)
    strongest = max(attacks, key=lambda attack: _or_none(value_of(attack, by)), default=None)
    best_control = ranked if by == "AUC" else known
    return Verdict(status, by, strongest, best_control, above, sentence, by, used)


def _beyond_chance(attack: AttackScore, figure: Measure, prior: Control, looked_at: int) -> bool:
    """Whether guesses that know nothing of shuffled labels would rarely do as well.

    Several attacks on both figures have as many chances to look right, hence the confidence: all of
    them together exceed the prior with probability 5 % at most.
    """
    confidence, rows = 1 - 0.05 / looked_at, round(attack.rows)
    if figure == "accuracy":
        low, _ = clopper_pearson(round(attack.accuracy * rows), rows, confidence)
    else:
        # Which class is the rarer one does not matter to the interval.
        rarer = max(1, round((1 - prior.accuracy) * rows))
        low, _ = auc_interval(attack.auc, rarer, rows - rarer, confidence)
    return low > value_of(prior, figure)


def _nothing_shown(
    attacks: Sequence[AttackScore], accuracy: float, auc: float
) -> tuple[Status, str]:
    if not attacks:
        return Status.NOT_TESTED, (
            "No attack was run, as none applies to what Alice receives; guessing the commonest "
            f"label is right for {_percent(accuracy)} of the rows. That is not a proof "
            "of safety."
        )
    sure = max(attacks, key=lambda attack: attack.decided)
    if sure.decided_correct is not None:
        return Status.CERTAIN, (
            "Over all rows no attack we know recovered more than the controls (accuracy "
            f"{_percent(accuracy)}, AUC {_percent(auc)}), but {sure.name} calls "
            f"{_count(sure.decided * sure.rows)} of {sure.rows:.0f} labels certain and is right on "
            f"{_percent(sure.decided_correct)} of those. A run on shuffled labels "
            "(--permute-labels) shows what the protocol alone leaks."
        )
    best = max(attack.accuracy for attack in attacks)
    area = max((attack.auc for attack in attacks), key=_or_none)
    return Status.NOT_SHOWN, (
        f"No attack we know recovered more than the controls: best accuracy {_percent(best)} "
        f"(control {_percent(accuracy)}), best AUC {_percent(area)} (control {_percent(auc)}). "
        f"{_unfinished(attacks)}That is not a proof of safety."
    )


def _unfinished(attacks: Sequence[AttackScore]) -> str:
    names = " and ".join(attack.name for attack in attacks if attack.limited)
    return f"A limit on work ended {names}: more may be possible. " if names else ""


_CONTROLS = {"prior": "guessing the commonest label", "model-only": "the model alone"}


def control_words(control: Control) -> str:
    """What a control does, in words."""
    return _CONTROLS.get(control.name, control.name)


def _or_none(figure: float) -> float:
    return -math.inf if math.isnan(figure) else figure


def _percent(share: float) -> str:
    return f"{100 * share:.2f} %"


def _count(rows: float) -> str:
    return f"{rows:.0f}" if abs(rows - round(rows)) < 0.05 else f"{rows:.1f}"


def _interval(low: float, high: float) -> str:
    return f"95 % interval {100 * low:.2f} – {_percent(high)}"


# --- a rehearsal ------------------------------------------------------------------------------


def foresee(
    guess: LabelGuess,
    labels: LabelTable,
    kind: str = "random labels",
    *,
    promised: bool = True,
) -> tuple[Level, str]:
    """The level and the words for a guess in a rehearsal, of the rows that it speaks about.

    ``labels`` are random, or others at even odds. ``promised``: the ledger bounds the leak. A
    little more than chance is then what it allows, and a risk; where nothing is promised, it is a
    leak, as in an audit.
    """
    spoken = int(np.count_nonzero(guess.signal))
    if not spoken:
        nothing = RAN[1]
        return (AT_RISK, f"{nothing}; {_LIMITED}") if guess.limited else (CLEAR, nothing)
    right = (guess.scores > 0) == labels.upper
    correct = int(np.count_nonzero(right & guess.signal))
    low, _ = clopper_pearson(correct, spoken, confidence=1 - 2 * FALSE_ALARM)
    likely_low, _ = clopper_pearson(correct, spoken, confidence=1 - 2 * RISK_ALARM)
    sure = int(np.count_nonzero(guess.certain))
    sure_right = int(np.count_nonzero(right & guess.certain))
    words = f"{RAN[0]}{100 * correct / spoken:.0f} % of {spoken:,} {kind} correct"
    if sure:
        words += f"; {sure_right:,} of {sure:,} certain guesses correct"
    certain = sure >= _CERTAIN_SHARE * labels.rows and sure_right > 0.9 * sure
    if certain or low > (_LEAK_SHARE if promised else 0.5):
        return LEAKS, words
    # Few rows proven are few labels lost, however little random labels show of it.
    proven = sure > 0 and sure_right == sure
    if proven or low > 0.5 or (likely_low > 0.5 and correct > _RISK_SHARE * spoken):
        return AT_RISK, words
    return (AT_RISK, f"{words}; {_LIMITED}") if guess.limited else (CLEAR, words)


def worst(levels: Sequence[Level]) -> Level:
    """The worst of several levels.

    >>> worst(["no attack of ours applies", "at risk"])
    'at risk'
    """
    return min(levels, key=(LEAKS, AT_RISK, CLEAR).index, default=CLEAR)


# --- an audit ---------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Weighed:
    """The findings of one run or the mean of several, and their verdict.

    ``leaking`` counts the runs that show a leak by themselves: the interval of a mean over few runs
    is wide. ``status`` is a leak where the mean or half of the runs show it, and a possible one
    where fewer do: of many runs, one may by chance.
    """

    findings: Findings
    verdict: Verdict
    status: Status
    runs: int
    leaking: int

    @property
    def sentence(self) -> str:
        """The verdict; of several runs also how many show a leak."""
        alone = (
            f" Taken alone, {self.leaking} of {self.runs} runs show an attack above the controls."
        )
        return self.verdict.sentence + (alone if self.runs > 1 else "")

    @property
    def headline(self) -> str:
        """The status in a few words."""
        if self.status is Status.LEAK:
            whole = self.verdict.figure == "accuracy" and self.verdict.value == 1.0
            best = self.verdict.attack
            model = best is not None and best.name == ModelOnlyControl.name
            source = "model that Alice receives leaks" if model else "messages to Alice leak"
            part = f"The {source} information about the labels"
            return "Alice can recover every label" if whole else part
        if self.status is Status.CERTAIN:
            return "Some runs leak labels" if self.leaking else "Some labels may leak"
        if self.status is Status.NOT_SHOWN:
            return _NO_SUCCESS
        return _NO_ATTACK


@dataclass(frozen=True, slots=True)
class Conclusion:
    """Outcome of an audit: the gravest of its findings.

    ``evidence`` refutes the ledger's claim, by run number ``refuted_by``, or else is the strongest
    there is. ``apart`` is the test of ciphertexts in the first run that told them apart, or else in
    the first run. ``simulated``: the scheme hides nothing, and stands for one that does.
    ``unprotected``: the ledger is infinite, so that the attacks' failure shows nothing.
    """

    status: Status
    headline: str
    canary: Weighed | None
    run: Weighed
    evidence: Evidence | None
    refuted_by: int | None
    caveat: str = ""
    apart: Distinguisher | None = None
    simulated: bool = False
    unprotected: bool = False


_HIDDEN = (
    "On the real labels no attack recovers more than the controls; the run with shuffled labels "
    "shows the leak."
)
_ALONE = (
    "Without a run on shuffled labels, this audit cannot separate what the columns predict from "
    "what the messages leak."
)
_SHUFFLED = "The labels were shuffled before training: the columns carry no information about them."
_CHECK = (
    "In this self-test every attack must be at chance. It says whether the audit can be trusted, "
    "and nothing about the protocol."
)
_NO_SUCCESS = "No attack we know succeeded"
_NO_ATTACK = "No attack we know applies to what Alice received"
_SIMULATED = "No attack we know would apply to what Alice receives in an encrypted run"
_ENCRYPTED = "No attack we know applies: labels reach Alice only encrypted or masked"


def conclude(audit: AuditResult) -> Conclusion:
    """The gravest of the claim, the canary run, the run itself and the test of ciphertexts."""
    looks = [run.distinguisher for run in audit.runs if run.distinguisher is not None]
    shuffled = audit.first.permute_labels
    # A run whose labels were shuffled is its own canary; it is not shown twice.
    canaries = [] if shuffled else [run.canary for run in audit.runs if run.canary is not None]
    conclusion = _conclude_attacks(
        weigh_runs([run.findings for run in audit.runs], shuffled=shuffled),
        weigh_runs(canaries, shuffled=True) if canaries else None,
        _strongest(audit),
        permuted=shuffled,
        check=any(run.shuffle_truth for run in audit.runs),
    )
    totals = [training.ledger.label_epsilon_total for training in audit.trainings]
    conclusion = replace(conclusion, unprotected=any(map(math.isinf, totals)))
    encrypted = audit.first.encrypted or audit.first.agreement.noise is not None
    return _beside_ciphertexts(conclusion, looks, encrypted=encrypted)


def conclude_session(audit: SessionAudit) -> Conclusion | None:
    """The conclusion of a real session's audit; None where nobody has judged it."""
    if audit.findings is None:
        return None
    proof = audit.evidence
    refuted_by = 0 if proof is not None and proof.violated else None
    conclusion = _conclude_attacks(
        weigh_runs([audit.findings]),
        None if audit.canary is None else weigh_runs([audit.canary], shuffled=True),
        (proof, refuted_by),
        permuted=False,
        check=audit.shuffle_truth,
    )
    ledger = None if audit.judgement is None else audit.judgement.ledger
    unprotected = ledger is not None and math.isinf(ledger.label_epsilon_total)
    conclusion = replace(conclusion, unprotected=unprotected)
    looks = [audit.distinguisher] if audit.distinguisher else []
    encrypted = audit.recording.agreement["scheme"] != "clear"
    return _beside_ciphertexts(conclusion, looks, encrypted=encrypted)


@dataclass(frozen=True, slots=True)
class Summary:
    """Outcome of an audit without findings about labels."""

    status: Status
    headline: str
    sentence: str


def before_judgement(audit: SessionAudit) -> Summary:
    """Outcome for the recorder alone: rows called certain, and the test of ciphertexts."""
    look, rows = audit.distinguisher, audit.recording.rows
    if look is not None and look.noticed:
        return Summary(Status.LEAK, _DEPENDS, apart_sentence(look))
    sure = max(audit.guesses, key=lambda guess: guess.certain, default=None)
    if sure is not None and sure.certain:
        return Summary(
            Status.CERTAIN,
            "Some labels may leak",
            f"{sure.name} calls {sure.certain:,} of {rows:,} labels certain. Only Bob, who has the "
            "labels, can check them.",
        )
    if audit.guesses:
        return Summary(
            Status.UNJUDGED,
            "Attacks guessed labels; the guesses have not been checked",
            f"{counted(len(audit.guesses), 'attack')} guessed {rows:,} labels. Only Bob, who has "
            "the labels, can check them.",
        )
    tested = look is not None and _would_notice(look)
    return Summary(
        Status.NOT_SHOWN if tested else Status.NOT_TESTED,
        _NO_ATTACK,
        "That is not a proof of safety." if look is None else apart_sentence(look),
    )


def conclude_seat(seat: BobSeat) -> Summary:
    """Outcome of an audit with Bob as the adversary: the stronger of the run and its canary."""
    canary, tried = seat.canary, seat.separation
    worst = max((part for part in (seat.findings, canary) if part is not None), key=gain)
    sentence = worst.verdict if worst is not canary else f"{_PERMUTED} {worst.verdict}"
    if worst.leaks and gain(worst)[0]:
        return Summary(Status.LEAK, "Bob can reconstruct values of Alice's columns", sentence)
    if tried is not None and tried.noticed:
        return Summary(Status.LEAK, "A single Alice's scores leak to Bob", sentence)
    if worst.leaks:
        return Summary(Status.CERTAIN, "Bob recovers a little more than without scores", sentence)
    if seat.findings.attacks:
        headline = "No attack we know reconstructs Alice's columns"
        return Summary(Status.NOT_SHOWN, headline, sentence)
    return Summary(Status.NOT_TESTED, _NOTHING_OPENED, sentence)


def conclude_columns_of(audit: SessionAudit) -> Summary:
    """Outcome of Bob's own recording: by Alice's columns, or by itself alone."""
    if audit.bob_seat is not None:
        return conclude_seat(audit.bob_seat)
    best = max(audit.estimates or (), key=lambda estimate: estimate.explains, default=None)
    if best is None:
        return Summary(Status.NOT_TESTED, _NOTHING_OPENED, "That is not a proof of safety.")
    return Summary(
        Status.UNJUDGED,
        "Attacks estimated Alice's columns; the estimates have not been checked",
        f"{best.name} explains {_percent(max(0.0, best.explains))} of the variance of the scores "
        f"of rows that it was not fitted on, with {counted(best.columns, 'column')}; Alice has "
        f"{audit.recording.peer_columns}. Only Alice, who has the values, can check them.",
    )


_NOTHING_OPENED = "No attack we know applies to what Bob received"
_PERMUTED = "With Alice's rows permuted before training, only the protocol can tell Bob about them."
_DEPENDS = "What Alice receives depends on the labels"


def _beside_ciphertexts(
    conclusion: Conclusion, looks: Sequence[Distinguisher], *, encrypted: bool
) -> Conclusion:
    if conclusion.headline == _NO_ATTACK:
        conclusion = replace(conclusion, headline=_ENCRYPTED if encrypted else _SIMULATED)
    conclusion = replace(conclusion, simulated=not encrypted)
    if not looks:
        return conclusion
    apart = next((look for look in looks if look.noticed), looks[0])
    conclusion = replace(conclusion, apart=apart)
    if apart.noticed and conclusion.status is not Status.REFUTED:
        return replace(conclusion, status=Status.LEAK, headline=_DEPENDS)
    if conclusion.status is Status.NOT_TESTED and _would_notice(apart):
        return replace(conclusion, status=Status.NOT_SHOWN)
    return conclusion


def _would_notice(look: Distinguisher) -> bool:
    """Whether it noticed the faults that it must on any machine, and so tested something."""
    must = (UNENCRYPTED, REUSED_SEED)
    return all(f.noticed or _is_share(f) for f in look.faults if f.name in must)


def _is_share(fault: Fault) -> bool:
    """Whether a share was sent unencrypted: it is uniform, so that nothing is to be noticed."""
    return fault.name == UNENCRYPTED and "shares" in fault.words


def apart_sentence(look: Distinguisher) -> str:
    """The outcome of a test of ciphertexts, in words."""
    if look.noticed:
        return f"What Alice receives depends on the labels: {'; '.join(_noticed(look))}."
    counts = ", ".join(
        f"{attempt.name} {attempt.right} of {attempt.judged}" for attempt in look.looks
    )
    missed = [fault for fault in look.faults if not fault.noticed]
    unseen = "; ".join(fault.words for fault in missed if not _is_share(fault))
    blind = f" It would not detect: {unseen}." if unseen else ""
    if any(map(_is_share, missed)):
        blind += " As expected, random shares reveal nothing even unencrypted."
    return (
        "A classifier could not distinguish label-1 from label-0 trainings by their ciphertexts "
        f"(correct by {counts}: chance).{blind} That is not a proof of safety."
    )


def _noticed(look: Distinguisher) -> list[str]:
    parts = [
        f"{attempt.right} of {attempt.judged} trainings were recognised by {attempt.name}"
        for attempt in look.looks
        if attempt.noticed
    ]
    if look.repeated:
        parts.append(f"{look.repeated:,} blocks of 16 bytes are repeated")
    # What is neither told nor repeated was noticed by its entropy.
    if not parts:
        parts.append(f"a byte has {look.entropy:.2f} bits of entropy, unlike one of a ciphertext")
    return parts


def _conclude_attacks(
    run: Weighed,
    canary: Weighed | None,
    claim: tuple[Evidence | None, int | None],
    *,
    permuted: bool,
    check: bool,
) -> Conclusion:
    """``claim`` is the evidence against the ledger, and the run that refutes it.

    ``permuted``: the run's own labels were shuffled before it. ``check``: it was judged against
    labels shuffled afterwards.
    """
    evidence, refuted_by = claim
    rest = (canary, run, evidence, refuted_by)
    if check:
        headline = "Self-test: labels shuffled after the run"
        return Conclusion(Status.CHECK, headline, *rest, _CHECK)
    if refuted_by is not None:
        return Conclusion(Status.REFUTED, "The claimed protection does not hold", *rest)
    if canary is None:
        return Conclusion(run.status, run.headline, *rest, _SHUFFLED if permuted else _ALONE)
    if canary.status is Status.LEAK:
        caveat = "" if run.status is Status.LEAK else _HIDDEN
        return Conclusion(canary.status, canary.headline, *rest, caveat)
    if run.status is Status.LEAK:
        headline = "On the real labels, an attack recovered more than the controls"
        return Conclusion(run.status, headline, *rest)
    gravest = min((canary, run), key=lambda weighed: GRAVEST_FIRST.index(weighed.status))
    return Conclusion(gravest.status, gravest.headline, *rest)


def weigh_runs(parts: Sequence[Findings], *, shuffled: bool = False) -> Weighed:
    """The findings of one run, or the mean of several, with their verdict."""
    mean = mean_findings(parts)
    verdict = weigh(mean.controls, mean.attacks, shuffled=shuffled)
    alone = [weigh(part.controls, part.attacks, shuffled=shuffled).status for part in parts]
    leaking = alone.count(Status.LEAK)
    gravest = min([verdict.status, *alone], key=GRAVEST_FIRST.index)
    enough = verdict.status is Status.LEAK or 2 * leaking >= len(alone)
    status = Status.CERTAIN if gravest is Status.LEAK and not enough else gravest
    return Weighed(mean, verdict, status, len(parts), leaking)


def _strongest(audit: AuditResult) -> tuple[Evidence | None, int | None]:
    evidence = audit.evidence
    for number, run in enumerate(audit.runs):
        # One run that refutes the claim refutes it; but one of many may do so by chance, so that
        # the failure is that of all together.
        if evidence is not None and run.evidence is not None and run.evidence.violated:
            return replace(run.evidence, failure=evidence.failure), number
    return evidence, None


def leakage(weighed: Weighed, *, shuffled: bool) -> Leakage:
    """Best attack and best control, as a list of runs shows them."""
    verdict = weighed.verdict
    value = None if verdict.attack is None else verdict.value
    low, high = verdict.interval
    return Leakage(
        labels="shuffled" if shuffled else "true",
        figure=verdict.figure,
        attack=None if verdict.attack is None else verdict.attack.name,
        value=value,
        low=None if value is None else low,
        high=None if value is None else high,
        control=verdict.control.name,
        known=verdict.known,
        beyond=None if value is None else value - verdict.known,
        shown=weighed.status in (Status.LEAK, Status.REFUTED),
    )
