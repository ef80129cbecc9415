"""What ``taciturn propose``, ``review`` and ``sign`` give."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from taciturn.results.check import CheckResult, ColumnExposure
from taciturn.results.estimate import Estimate
from taciturn.results.outlook import Outlook, Refusal
from taciturn.results.serialise import OMITTED, Result


@dataclass(frozen=True, slots=True, kw_only=True)
class SideRecord:
    """One side of an agreement.

    Args:
        title: ``bob``, ``alice``, or the name of one of several Alices.
        role: ``bob`` or ``alice``.
        name: The name in its certificate.
        fingerprint: Of its key, as far as the agreement, or its signature, says.
        label: Bob's column of labels, where it is told.
        columns: Its columns, where they are told.
        prepared_columns: How many they are once prepared, where that is told.
        signed: When it signed, by its own clock; None where it has not.
    """

    title: str
    role: str
    name: str
    fingerprint: str | None
    label: str | None
    columns: tuple[str, ...] | None
    prepared_columns: int | None
    signed: str | None


@dataclass(frozen=True, slots=True, kw_only=True)
class AgreementRecord:
    """What an agreement says.

    Args:
        id: By which it is told from every other one.
        digest: SHA-256 of what is signed.
        valid_until: Until when a training may begin with it.
        purpose: What it is for, in words; empty where that is not said.
        settings: Every agreed setting, as a file spells it.
        study: The trainings that are agreed on together, where there are several.
        sides: Everybody, Bob first.
    """

    id: str
    digest: str
    valid_until: str
    purpose: str
    settings: Mapping[str, object]
    study: Mapping[str, object] | None = field(default=None, metadata=OMITTED)
    sides: tuple[SideRecord, ...]

    @property
    def unsigned(self) -> tuple[str, ...]:
        """Who has not signed, by name."""
        return tuple(side.name for side in self.sides if side.signed is None)


@dataclass(frozen=True, slots=True, kw_only=True)
class Proposal(Result):
    """An agreement that one side proposes.

    Args:
        proposed_by: The name of that side.
        agreement: What it says.
        lines: What each side's file needs, to use it.
        text: The file itself, where it was not written anywhere.
        file: Where it was written; None where it was not.
        version: Of the program.
    """

    proposed_by: str
    agreement: AgreementRecord
    lines: tuple[str, ...]
    text: str | None = field(default=None, metadata=OMITTED, repr=False)
    file: str | None = field(default=None, metadata=OMITTED)
    version: str


@dataclass(frozen=True, slots=True, kw_only=True)
class SignedAgreement(Result):
    """An agreement that one side has signed.

    Args:
        signed_by: The name of that side.
        file: Where the agreement lies.
        already: Whether it had signed before; then nothing was changed.
        agreement: What it says, and who has signed it now.
        lines: What each side's file needs, to use it.
        version: Of the program.
    """

    signed_by: str
    file: str
    already: bool
    agreement: AgreementRecord
    lines: tuple[str, ...]
    version: str


@dataclass(frozen=True, slots=True, kw_only=True)
class OpenedSum:
    """How many scores of a row of Alice's this peer has, and will have.

    Args:
        so_far: The most of any of her rows that it was given before.
        this: The most of a row that this training gives.
        then: Both together.
        limit: The most that she allows; None for no limit.
    """

    so_far: int
    this: int
    then: int
    limit: int | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Review(Result):
    """An agreement as one side sees it before it signs.

    Args:
        reviewed: The agreement's file.
        role: Whose side this is.
        name: Its name.
        peers: The others' names.
        agreement: What it says, and who has signed it.
        mechanism: What protects the labels, in words.
        rows: How many are trained on.
        held_out_rows: How many the model is measured on.
        own_columns: The number of this side's prepared columns.
        own_column_names: Its columns as its table has them.
        price: What each side receives by the mechanism's own statement, and what it costs.
        columns: What the training tells Bob of Alice's columns, at Alice; None at Bob.
        check: What either side could learn, rehearsed on this side's table; None where no attack
            was run, because the packages for it are not installed.
        assumed_columns: How many random columns stood in for Alice's, at Bob; None at Alice.
        opened: The scores of her rows, at Alice; None at Bob.
        estimate: Time and traffic; None where only Alice's side can tell.
        obstacles: Why this side would not begin, or not sign, as it stands.
        version: Of the program.
        command: As it was typed.
        made: When.
    """

    reviewed: str
    role: str
    name: str
    peers: tuple[str, ...]
    agreement: AgreementRecord
    mechanism: str
    rows: int
    held_out_rows: int
    own_columns: int
    own_column_names: tuple[str, ...]
    price: Outlook
    columns: ColumnExposure | None = field(default=None, metadata=OMITTED)
    check: CheckResult | None = field(default=None, metadata=OMITTED)
    assumed_columns: int | None
    opened: OpenedSum | None
    estimate: Estimate | None
    obstacles: tuple[Refusal, ...]
    version: str | None = field(default=None, metadata=OMITTED)
    command: str | None = field(default=None, metadata=OMITTED)
    made: str | None = field(default=None, metadata=OMITTED)
