"""``DryRunJob``: compares the two sides of a training, and stops before it."""

from __future__ import annotations

from contextlib import AbstractContextManager
from dataclasses import dataclass
from pathlib import Path

from taciturn.engine.callbacks import Callbacks
from taciturn.files import require_writable
from taciturn.jobs.base import Job, SessionFacts, Side
from taciturn.jobs.train.declaration import DRY_RUN
from taciturn.jobs.train.job import TrainSide, prepared_side
from taciturn.jobs.train.result import DryRun, Sizes
from taciturn.party.agreement_check import require_begun_in_time
from taciturn.party.config import PartyConfig
from taciturn.party.credentials import identity_of
from taciturn.party.log import Log
from taciturn.party.observers import require_observers
from taciturn.party.session import OPENING_SECONDS
from taciturn.protocol.party import dry_run
from taciturn.protocol.steps import Program
from taciturn.results.parties import Setup
from taciturn.rng import Entropy


@dataclass(frozen=True, slots=True)
class PeerShape:
    """The peer's number of columns, or that of all Alices together and of each (``widths``)."""

    columns: int
    widths: tuple[int, ...] = ()


@dataclass(frozen=True, slots=True)
class DryRunJob(Job[DryRun]):
    """Connect to the peer, compare everything, and stop before the training.

    ``record`` is the file of the training's transcript, which nothing is written to.
    """

    record: Path | None = None
    purpose = DRY_RUN
    reads_labels = True
    opens_first = True
    farewell_seconds = OPENING_SECONDS

    def check_files(self, config: PartyConfig) -> None:
        """Raise where an output cannot be written."""
        require_observers(config)
        require_writable(*map(config.path, config.output.files), self.record)

    def prepare(self, config: PartyConfig) -> DryRunSide:
        """Read this side's table, as a training does."""
        training = prepared_side(config)
        require_begun_in_time(config)
        return DryRunSide(training)


@dataclass(slots=True)
class DryRunSide(Side[PeerShape, DryRun]):
    """One side of a dry run."""

    training: TrainSide

    @property
    def setup(self) -> Setup:
        """Who would train, with which solver."""
        return self.training.setup

    def begin(self, log: Log, callbacks: Callbacks) -> None:
        """Log what the preparation found."""
        self.training.begin(log, callbacks)

    def at_work(self, config: PartyConfig, log: Log) -> AbstractContextManager[None]:
        """With this side's engine: a cluster that cannot be used is reported now."""
        return self.training.at_work(config, log)

    def program(self, entropy: Entropy) -> Program[PeerShape]:
        """The first messages of the training."""
        yield from self.training.plan.opening()
        inputs = self.training.plan
        config, tables, terms = inputs.config, inputs.tables, inputs.terms
        train, held_out, peer = tables.train, tables.held_out, inputs.peer_table
        if terms.agreement.parties is None:
            bits = inputs.magnitude_bits
            hello = yield from dry_run(config.role, terms, train, held_out, bits, peer)
            return PeerShape(hello.columns)
        # Each side loads its own programs only.
        if config.role == "bob":
            from taciturn.protocol.bob.party import dry_run as bobs

            names = tuple(terms.agreement.parties)
            state = yield from bobs(terms, train, held_out, peer, names, entropy)
            return PeerShape(state.columns, state.widths)
        from taciturn.protocol.alice.inputs import AliceInputs
        from taciturn.protocol.alice.party import dry_run as alices

        identity = identity_of(config)
        state = yield from alices(
            AliceInputs(train, terms, entropy, held_out=held_out, identity=identity)
        )
        return PeerShape(state.columns, state.widths)

    def conclude(self, outcome: PeerShape, session: SessionFacts) -> DryRun:
        """Cost and disclosure of the training."""
        training, tables = self.training, self.training.tables
        session.log("dry run passed", seconds=round(session.seconds, 3))
        consent = training.plan.consent
        alice_columns = sum(outcome.widths) or consent.alice_columns(outcome.columns)
        return DryRun(
            identity=training.plan.identity(),
            peer_columns=outcome.columns,
            parties=training.plan.feature_parties(outcome.widths),
            agreement=Sizes(alice_columns, tables.train.rows),
            outlook=training.plan.outlook(),
            estimate=consent.estimate(outcome.columns, outcome.widths, session.log),
            columns_exposed=consent.exposure(),
        )
