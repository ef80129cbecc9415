"""Results of ``taciturn agreement propose``, ``review`` and ``sign``."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, ClassVar

from taciturn.results.cost_preview import ColumnExposure, Estimate, Outlook, Refusal
from taciturn.results.serialise import OMITTED, Result
from taciturn_ops.agreement.rehearsal import CheckResult

if TYPE_CHECKING:
    from taciturn.report.blocks import Block


@dataclass(frozen=True, slots=True, kw_only=True)
class SideRecord:
    """One side of an agreement.

    ``title`` is ``bob``, ``alice``, or the name of one of several Alices; ``name`` stands in the
    certificate. ``signed`` is the time by that side's own clock. What is not told is None.
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
    """Content of an agreement.

    ``digest`` is SHA-256 of what is signed. A training may begin until ``valid_until``.
    ``settings`` are spelled as in a file. ``study`` has the trainings that are agreed on together,
    where there are several; Bob is the first of ``sides``.
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
        """Names of the sides that have not signed."""
        return tuple(side.name for side in self.sides if side.signed is None)


@dataclass(frozen=True, slots=True, kw_only=True)
class Proposal(Result):
    """An agreement that one side proposes.

    ``lines`` are what each side's file needs to use it. ``text`` is the file itself, where it was
    not written to ``file``.
    """

    kind: ClassVar[str] = "propose"
    known_by: ClassVar[str] = "proposed_by"

    proposed_by: str
    agreement: AgreementRecord
    lines: tuple[str, ...]
    text: str | None = field(default=None, metadata=OMITTED, repr=False)
    file: str | None = field(default=None, metadata=OMITTED)
    version: str


@dataclass(frozen=True, slots=True, kw_only=True)
class SignedAgreement(Result):
    """An agreement that one side has signed.

    ``already``: the side had signed before, and nothing was changed. ``settings`` is this side's
    file, and ``added`` whether it names the agreement now, with ``lines``.
    """

    kind: ClassVar[str] = "sign"
    known_by: ClassVar[str] = "signed_by"

    signed_by: str
    file: str
    already: bool
    agreement: AgreementRecord
    lines: tuple[str, ...]
    settings: str
    added: bool
    version: str

    def blocks(self) -> list[Block]:
        """Report blocks for the terminal."""
        from taciturn_ops.agreement.report import signed_blocks

        return signed_blocks(self)


@dataclass(frozen=True, slots=True, kw_only=True)
class OpenedSum:
    """Scores of one row of Alice's that this peer has, and will have.

    Each count is the most of any row. ``limit`` is None for no limit.
    """

    so_far: int
    this: int
    then: int
    limit: int | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Review(Result):
    """An agreement as one side sees it before it signs.

    ``columns`` is what the training tells Bob of Alice's columns and ``opened`` the scores of her
    rows; both are None at Bob. ``assumed_columns`` is how many random columns stood in for Alice's;
    None at Alice. ``check`` is None where the packages for the attacks are not installed,
    ``estimate`` where only Alice's side can tell. ``obstacles`` are why this side would not begin,
    or not sign.
    """

    kind: ClassVar[str] = "review"
    known_by: ClassVar[str] = "reviewed"

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

    def blocks(self) -> list[Block]:
        """Report blocks for the terminal."""
        from taciturn_ops.agreement.report import review_blocks

        return review_blocks(self)
