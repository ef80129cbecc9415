"""``SideInputs``: one side's rows and terms, and its program, in a session and simulated."""

from __future__ import annotations

from typing import TYPE_CHECKING

from taciturn.memmap import MEMORY, Scratch
from taciturn.protocol.handshake import ANY_TABLE, PeerTable
from taciturn.protocol.party import PartyResult
from taciturn.protocol.state import TrainingState
from taciturn.protocol.steps import Program
from taciturn.protocol.terms import Terms
from taciturn.rng import Entropy

if TYPE_CHECKING:
    from taciturn.crypto.signatures import SigningIdentity
    from taciturn.data.tables import SideTables
    from taciturn.party.bob_inputs import BobTrainingInputs
    from taciturn.protocol.alice.inputs import AliceInputs


class SideInputs:
    """One side's inputs of one training; a subclass says where they come from."""

    __slots__ = ()
    # At run time they would be taken for defaults of a dataclass's fields.
    if TYPE_CHECKING:

        @property
        def tables(self) -> SideTables:
            """This side's prepared rows."""

        @property
        def terms(self) -> Terms:
            """Terms of the training."""

        @property
        def table_memory(self) -> int:
            """Bytes that a whole table of this side may take in the scheme's own form."""

        @property
        def signer(self) -> SigningIdentity | None:
            """Signing identity of one of several Alices; None elsewhere."""

    @property
    def peer_table(self) -> PeerTable:
        """What Bob requires of Alice's table; she requires nothing of his."""
        return ANY_TABLE

    def program(
        self,
        entropy: Entropy,
        bob: BobTrainingInputs | None,
        resume: TrainingState | None = None,
        scratch: Scratch = MEMORY,
        *,
        opens_held_out: bool = True,
    ) -> Program[PartyResult]:
        """This side's program, from the first message to the last; ``resume`` is None to begin.

        ``opens_held_out`` is whether Alice's limits allow scores of the held-out rows, as the
        checkpoint has it.
        """
        # Each side loads its own programs only.
        if bob is not None:
            from taciturn.protocol.bob.party import bob_program

            inputs = bob.inputs(self, entropy, resume, scratch, opens_held_out=opens_held_out)
            return bob_program(inputs)
        from taciturn.protocol.alice.party import alice_program

        return alice_program(
            self.alice_inputs(entropy, resume, scratch, opens_held_out=opens_held_out)
        )

    def alice_inputs(
        self,
        entropy: Entropy,
        resume: TrainingState | None = None,
        scratch: Scratch = MEMORY,
        *,
        opens_held_out: bool = True,
    ) -> AliceInputs:
        """Everything that Alice's program needs."""
        from taciturn.protocol.alice.inputs import AliceInputs

        return AliceInputs(
            self.tables.train,
            self.terms,
            entropy,
            resume,
            self.tables.held_out,
            self.table_memory,
            scratch,
            self.signer,
            opens_held_out,
        )
