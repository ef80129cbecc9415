"""Cost and disclosure of a training: before it begins, and over all trainings so far."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import ClassVar

from taciturn.privacy.events import Statement
from taciturn.results.serialise import EMPTY, OMITTED, Result


@dataclass(frozen=True, slots=True, kw_only=True)
class OpenedNumbers:
    """One kind of number that a training opens to a party, from the table of openings.

    ``numbers`` counts them per ``per``; None if it is not known before. ``noise_rows`` is the width
    of the noise on a sum over rows, in rows.
    """

    kind: str
    description: str
    receiver: str
    numbers: int | None
    per: str
    noise: str
    noise_rows: float | None = field(default=None, metadata=OMITTED)
    bounded_by: str
    rests_on: str
    depends_on_labels: bool
    depends_on_columns: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class Disclosure:
    """Messages that each side receives in a training, in sentences; the same on both sides.

    ``columns`` is what Bob can do to Alice's columns; None where no training score is opened.
    ``openings`` are the numbers that are opened in clear, by kind and receiver.
    """

    alice: str
    bob: str
    columns: str | None = field(default=None, metadata=OMITTED)
    openings: tuple[OpenedNumbers, ...] = ()


@dataclass(frozen=True, slots=True)
class AskedLine:
    """A line that a file must hold before a training begins, and why."""

    line: str
    why: str


@dataclass(frozen=True, slots=True)
class AskedConsent:
    """What each side would be asked to accept before a training between machines; None: nothing.

    ``both`` is what they would have to agree on.
    """

    alice: AskedLine | None
    bob: AskedLine | None
    both: AskedLine | None


@dataclass(frozen=True, slots=True)
class Refusal:
    """Reason why a side would not begin, and the line that changes it."""

    why: str
    way_out: str


@dataclass(frozen=True, slots=True, kw_only=True)
class LedgerSum:
    """Total cost of a training's labels with this partner, over time.

    ``so_far`` is for these rows, ``then`` includes this training.
    """

    trainings: int
    so_far: Statement
    then: Statement
    limit: float | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Outlook:
    """Expected cost and disclosure of a training.

    ``ledger`` is Bob's at the end of the training, ``ledger_book`` with the trainings before it;
    both are None at Alice.
    """

    ledger: Statement | None = field(metadata=EMPTY)
    learns: Disclosure
    ledger_book: LedgerSum | None = field(default=None, metadata=OMITTED)
    refused: Refusal | None = field(default=None, metadata=OMITTED)


@dataclass(frozen=True, slots=True)
class Cost:
    """Duration and traffic of a training, all parties in one process.

    From the first message to the last: reading the tables, and a simulation's comparison with
    centralised training and with the optimum, come on top.
    """

    iterations: int
    seconds: float
    bytes_to_alice: int
    bytes_to_bob: int


@dataclass(frozen=True, slots=True)
class Estimate(Cost, Result):
    """Estimated duration and traffic of a training."""

    kind: ClassVar[str] = "estimate"
    known_by: ClassVar[str] = "iterations"


@dataclass(frozen=True, slots=True, kw_only=True)
class ColumnExposure:
    """Exposure of Alice's columns through the scores that are opened to Bob.

    ``scores_per_row`` is the most of one training row; ``opened_values`` includes held-out rows.
    ``columns_per_score`` is the most columns that a Bob who deviates reads from one score, and
    ``scores_for_all`` how many scores of a row can give him all of its columns.
    """

    scores_per_row: int
    opened_values: int
    columns_per_score: int
    scores_for_all: int
    warning: str


@dataclass(frozen=True, slots=True, kw_only=True)
class LedgerAccount:
    """Releases to one partner about one label, over all trainings.

    ``ledger`` has the figures of the row that paid most.
    """

    partner: str
    label: str
    rows: int
    trainings: int
    ledger: Statement


@dataclass(frozen=True, slots=True, kw_only=True)
class LabelStopsAccount:
    """Stops for labels that one partner has seen: since Bob's last command, and ``in_all``."""

    partner: str
    stops: int
    in_all: int


@dataclass(frozen=True, slots=True, kw_only=True)
class OpenedSums:
    """``numbers`` sums of one kind over all ``rows`` of trainings of ``passes`` each.

    ``kind`` is that of ``privacy.openings``, which has their noise.
    """

    kind: str
    numbers: int
    rows: int
    passes: int


@dataclass(frozen=True, slots=True, kw_only=True)
class ScoreAccount:
    """What Alice opened to one partner of her rows, over all sessions.

    ``models`` is the most different models that have scored one row, ``repetitions`` how often at
    most they scored one row again, and ``trainings`` the most trainings that had one row. ``sums``
    are those of ``mutual``; ``unrecorded`` counts its sessions of an earlier release, which did not
    record theirs.
    """

    partner: str
    rows: int
    models: int
    repetitions: int
    trainings: int
    sums: tuple[OpenedSums, ...] = ()
    unrecorded: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class ExposedSession:
    """A session of Alice's that opened scores of training rows to a partner.

    ``session`` is its name on Alice's side. ``scores_per_row`` is the most of one training row.
    What was not recorded is None; without ``mechanism``, perhaps no training score was opened.
    """

    partner: str
    session: str
    when: str | None = None
    mechanism: str | None = None
    scores_per_row: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class ExposedModel:
    """A model on Alice's disk whose training opened scores of training rows.

    ``scores_per_row`` is the most of one training row; None where it cannot be computed.
    """

    file: str
    written: str
    session: str
    mechanism: str
    scores_per_row: int | None


@dataclass(frozen=True, slots=True, kw_only=True)
class PastExposure:
    """Past sessions in which Alice's columns were exposed.

    ``exposed_sessions`` come from her consent store, ``exposed_models`` from the model files beside
    the one that her settings name. A session since its mechanism is recorded may stand in both
    lists, which share no name.
    """

    exposed_sessions: tuple[ExposedSession, ...]
    exposed_models: tuple[ExposedModel, ...]

    def __bool__(self) -> bool:
        return bool(self.exposed_sessions or self.exposed_models)
