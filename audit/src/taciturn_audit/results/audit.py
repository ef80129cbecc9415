"""An audit: a training, what the attacks found in it, and what makes their figures mean something.

Where several runs are averaged, the same types hold means; a count is then a mean of counts.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from taciturn.results.serialise import INLINE, OMITTED, Result
from taciturn.results.training import TrainingRun
from taciturn_audit.results.columns import BobSeat
from taciturn_audit.results.columns import Fault as Fault
from taciturn_audit.results.columns import Look as Look
from taciturn_audit.results.columns import Skipped as Skipped
from taciturn_audit.results.openings import OpeningFindings

SEATS = ("alice", "bob", "both")
"""From whose side an audit looks: Alice at labels, Bob at columns. Of several Alices ``alice`` is
all together; their names, joined by ``+``, are some of them."""


@dataclass(frozen=True, slots=True)
class Control:
    """Success without the messages."""

    name: str
    accuracy: float
    auc: float


@dataclass(frozen=True, slots=True)
class AttackScore:
    """Success of a guess.

    The ends are those of 95 % intervals. ``decided`` is the share of all rows that the attack calls
    certain, ``decided_correct`` the share of those that are right (None where none is). ``limited``
    says that a limit on its work ended it, and is absent otherwise.
    """

    name: str
    rows: float
    accuracy: float
    accuracy_low: float
    accuracy_high: float
    auc: float
    auc_low: float
    auc_high: float
    decided: float
    decided_correct: float | None
    seconds: float
    remark: str
    limited: bool | None = field(default=None, metadata=OMITTED)


@dataclass(frozen=True, slots=True)
class Findings:
    """Findings of the attacks in a run, with the controls.

    ``verdict`` is the sentence of ``taciturn_audit.verdict``.
    """

    controls: tuple[Control, ...]
    attacks: tuple[AttackScore, ...]
    skipped: tuple[Skipped, ...]
    verdict: str


@dataclass(frozen=True, slots=True)
class Accuracy:
    """An attack's accuracy and its AUC, with their 95 % intervals; older records have no AUC."""

    name: str
    accuracy: float
    accuracy_low: float
    accuracy_high: float
    auc: float | None = field(default=None, metadata=OMITTED)
    auc_low: float | None = field(default=None, metadata=OMITTED)
    auc_high: float | None = field(default=None, metadata=OMITTED)


@dataclass(frozen=True, slots=True)
class AfterEpochs:
    """Success of the attacks if the training had stopped after this many epochs."""

    epochs: int
    attacks: tuple[Accuracy, ...]


@dataclass(frozen=True, slots=True)
class Evidence:
    """Strongest lower bound on a label's epsilon from guesses at random labels.

    ``failure`` is the largest chance that the bound is above the truth.
    """

    claim: float
    lower_bound: float
    attack: str
    guesses: int
    correct: int
    rows: int
    failure: float
    violated: bool


READABLE = "readable in this run"
"""In ``MessageSeen.allows`` of a message that is encrypted between machines, and was not here."""


@dataclass(frozen=True, slots=True)
class MessageSeen:
    """One kind of message that reached Alice."""

    message: str
    count: int
    bytes: int
    encrypted: bool
    scheme: str | None
    key_bits: int | None
    allows: str


@dataclass(frozen=True, slots=True)
class Membership:
    """Success of guesses at hidden batches; a share of nothing is None.

    ``certified`` is the share of iterations that the attack calls certain.
    """

    precision: float | None
    recall: float | None
    k_exact: float | None
    iterations: float
    base_rate: float | None
    certified: float | None


UNENCRYPTED, REUSED_SEED = "unencrypted", "reused-seed"
"""Faults that every look at ciphertexts must notice, on any machine."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Distinguisher:
    """Test whether Alice's messages distinguish trainings on labels 1 from labels 0.

    ``trained`` and ``judged`` count trainings, ``batch`` the rows of each; ``repeated`` counts
    blocks of 16 bytes that occurred before, in ``bytes`` of ciphertext. A dependence that tells the
    share ``detectable`` of the trainings is noticed with probability 95 %.
    """

    trained: int
    judged: int
    batch: int
    columns: int
    scheme: str
    looks: tuple[Look, ...]
    messages: int
    bytes: int
    repeated: int
    entropy: float
    false_alarm: float
    detectable: float
    faults: tuple[Fault, ...]
    noticed: bool
    seconds: float


@dataclass(frozen=True, slots=True, kw_only=True)
class AuditRun(Result):
    """One training, and the labels that Alice recovers.

    ``canary`` has the findings of the same training on labels shuffled beforehand, and
    ``over_epochs`` those after fewer epochs of it. ``distinguisher`` is there where all that Alice
    receives is encrypted. ``bob_seat`` is what Bob can tell of Alice's columns, where his seat was
    audited too; ``seat`` says which were. ``pooled`` names those of several Alices whose views, put
    together, are Alice's seat here, and is absent where there is one Alice. ``openings`` has the
    attacks on what is opened after training.
    """

    training: TrainingRun = field(metadata=INLINE)
    shuffle_truth: bool
    findings: Findings = field(metadata=INLINE)
    canary: Findings | None
    over_epochs: tuple[AfterEpochs, ...]
    evidence: Evidence | None
    messages: tuple[MessageSeen, ...]
    membership: Membership | None
    distinguisher: Distinguisher | None = field(default=None, metadata=OMITTED)
    seat: str = "alice"
    bob_seat: BobSeat | None = field(default=None, metadata=OMITTED)
    pooled: tuple[str, ...] | None = field(default=None, metadata=OMITTED)
    openings: OpeningFindings | None = field(default=None, metadata=OMITTED)
