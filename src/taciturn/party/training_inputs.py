"""``TrainingInputs``: what one side brings to a training: its rows and terms, and its program."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Self

from taciturn.crypto.registry import on_engine
from taciturn.errors import AgreementError, rendering_errors_as
from taciturn.party.config import PartyConfig
from taciturn.party.credentials import identity_of
from taciturn.party.side_inputs import SideInputs
from taciturn.party.tables import PartyTables
from taciturn.protocol.agree import agree, with_row_defaults
from taciturn.protocol.handshake import PeerTable
from taciturn.protocol.terms import Terms
from taciturn.results.parties import Identity
from taciturn.results.training import FeatureParty
from taciturn.rng import Entropy
from taciturn.setting_syntax import Hint
from taciturn.settings.agreement import Agreement
from taciturn.version import __version__

if TYPE_CHECKING:
    from taciturn.crypto.bfv.workers import Engine
    from taciturn.crypto.signatures import SigningIdentity
    from taciturn.party.bob_inputs import BobTrainingInputs


@dataclass(frozen=True, slots=True)
class TrainingInputs(SideInputs):
    """One side's inputs of one training."""

    config: PartyConfig
    tables: PartyTables
    terms: Terms

    def on(self, engine: Engine | None) -> Self:
        """The inputs of a training whose table work an engine does."""
        if engine is None:
            return self
        scheme = on_engine(self.terms.scheme, engine)
        return replace(self, terms=replace(self.terms, scheme=scheme))

    def feature_parties(self, widths: tuple[int, ...]) -> tuple[FeatureParty, ...] | None:
        """Several Alices, with their columns; None with one."""
        named = zip(self.terms.agreement.parties or {}, widths, strict=True)
        return tuple(FeatureParty(name, columns) for name, columns in named) or None

    @property
    def peer_table(self) -> PeerTable:
        """What Bob requires of Alice's table; she requires nothing of his."""
        return self.config.side.peer_table(self.config)

    @property
    def magnitude_bits(self) -> int:
        """The size of this side's values, where the peer needs it; 0 elsewhere."""
        if self.terms.shares_scores:
            # Loaded here: other trainings have no use for it.
            from taciturn.protocol.mutual_table import whitened_bits

            return whitened_bits(self.tables.train, self.terms)
        if self.tables.labels is not None:
            return 0
        # Each side loads its own programs only.
        from taciturn.protocol.alice.whitened import largest_bits

        return largest_bits(self.tables.train, self.terms)

    @property
    def table_memory(self) -> int:
        """Bytes that a whole table of this side may take in the scheme's own form."""
        return self.config.compute.table_memory << 20

    @property
    def iterations(self) -> int:
        """Number of iterations, unless the training ends early."""
        return self.terms.iterations(self.tables.train.rows)

    @property
    def signer(self) -> SigningIdentity | None:
        """Signing identity of one of several Alices; None elsewhere."""
        return identity_of(self.config)

    @property
    def name(self) -> str:
        """Which of several Alices this side is; empty elsewhere."""
        return "" if self.signer is None else self.signer.name

    def bob_side(
        self, entropy: Entropy, spent: dict[str, Any] | None = None
    ) -> BobTrainingInputs | None:
        """Bob's labels and ledger, the latter as it stood at the checkpoint; None at Alice."""
        if self.tables.labels is None:
            return None
        # Each side loads its own programs only.
        from taciturn.party.bob_inputs import BobTrainingInputs

        return BobTrainingInputs.from_config(
            self.config, self.tables.labels, self.terms, entropy, spent
        )

    def identity(self) -> Identity:
        """Identity of the party in its result."""
        held_out = self.tables.held_out
        return Identity(
            role=self.config.role,
            peer=self.config.peer,
            mechanism=self.terms.agreement.mechanism,
            scheme=self.terms.agreement.scheme,
            key_bits=self.terms.agreement.key_bits,
            columns=len(self.tables.train.columns),
            rows=self.tables.train.rows,
            held_out_rows=0 if held_out is None else held_out.rows,
            version=__version__,
        )


def party_terms(config: PartyConfig, tables: PartyTables) -> Terms:
    """The terms of a party's training, from its file and its table."""
    known, width = config.alice_columns, len(tables.train.columns)
    with rendering_errors_as(config.syntax):
        require_agreed_rows(config, tables.train.rows)
        require_agreed_columns(config, width)
    return terms_for(config, width if known is None else known, tables.train.rows)


def require_agreed_rows(config: PartyConfig, rows: int) -> None:
    """Insists that this side trains on as many rows as was agreed, where that is agreed."""
    agreed = config.agreed.get("rows", rows)
    if agreed != rows:
        raise AgreementError(
            f"rows is {agreed}, and this side's table has {rows} to train on",
            setting="rows",
            hint=Hint("write {rows} on both sides", rows=rows),
        )


def require_agreed_columns(config: PartyConfig, columns: int) -> None:
    """Insists that the only Alice has as many prepared columns as was agreed."""
    agreed, width = config.alice_columns, config.side.agreed_width(config, columns)
    if None not in (agreed, width) and agreed != width:
        raise AgreementError(
            f"alice-columns is {agreed}, and her prepared table has {columns}",
            setting="alice_columns",
            hint=Hint("write {alice_columns} on both sides", alice_columns=columns),
        )


def terms_for(config: PartyConfig, columns: int, rows: int, table_rows: int | None = None) -> Terms:
    """Terms of a training on this many columns of Alice's, and rows.

    ``table_rows`` decides the defaults of a fold: the number of all training rows.
    """
    beside = {k: v for k, v in config.beside().items() if k in Agreement.model_fields}
    if config.agreement_file is not None:
        # Two sides with two files notice when they meet; a model's file has which one it was.
        beside["file_digest"] = config.agreement_file.digest
    with rendering_errors_as(config.syntax):
        settings = with_row_defaults(config.settings(), table_rows or rows)
        return agree(settings, columns, rows, parties=config.parties or None, beside=beside)
