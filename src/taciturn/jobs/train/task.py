"""``TrainingTask``: one training in a session, from its checkpoint to the model file."""

from __future__ import annotations

from contextlib import nullcontext
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from taciturn.arrays import FloatArray
from taciturn.engine.callbacks import Observer, noop
from taciturn.errors import StateError
from taciturn.jobs.resumable import JournaledSession
from taciturn.jobs.train.result import ColumnImportance, PartyMetrics, PartyRun
from taciturn.party.log import Figures, Log
from taciturn.party.model_file import model_share, save_model, suspected_wraps
from taciturn.party.training_inputs import TrainingInputs
from taciturn.protocol.events import Boundary, Event, Progress
from taciturn.protocol.outcome import BobTrained
from taciturn.protocol.party import PartyResult
from taciturn.protocol.state import TrainingState
from taciturn.results.parties import QUALITY_LEARNT
from taciturn.results.serialise import record_of
from taciturn.rng import KeyedEntropy
from taciturn.setting_syntax import Hint
from taciturn.version import __version__

if TYPE_CHECKING:
    from taciturn.engine.transcript import TranscriptFile
    from taciturn.party.bob_inputs import BobTrainingInputs
from taciturn.jobs.train.evaluation import FinishedTraining


@dataclass(frozen=True, slots=True, repr=False)
class TrainingTask:
    """One training, from its checkpoint to its model file; ``bob`` is None at Alice."""

    inputs: TrainingInputs
    session: JournaledSession
    log: Log
    observe: Observer
    bob: BobTrainingInputs | None
    figures: Figures
    recording: TranscriptFile | None

    @classmethod
    def resume(
        cls,
        inputs: TrainingInputs,
        session: JournaledSession,
        log: Log,
        observe: Observer,
        record: Path | None,
    ) -> TrainingTask:
        """As the checkpoint left it; ``record`` is the file of this side's transcript."""
        body, entropy, tables, terms = (
            session.checkpoint,
            session.entropy,
            inputs.tables,
            inputs.terms,
        )
        per_epoch = terms.per_epoch(tables.train.rows)
        figures = Figures(tables.labels, per_epoch, log, terms.agreement.class_weight)
        if body is not None:
            figures.restore(body["figures"])
        session.follow(figures)
        bob = inputs.bob_side(entropy, None if body is None else body["ledger"])
        recording = None if record is None else _recording(inputs, record, body, entropy)
        return cls(inputs, session, log, observe, bob, figures, recording)

    def train(self) -> FinishedTraining:
        """Train and write the model; what depends on labels is left for later."""
        inputs, session, recording = self.inputs, self.session, self.recording
        body, array_store = session.checkpoint, session.state.array_store
        state = (
            None if body is None else TrainingState.from_bytes(body["state"].encode(), array_store)
        )
        program = inputs.program(
            session.entropy,
            self.bob,
            state,
            session.state.scratch,
            opens_held_out=session.opens_held_out,
        )
        with recording or nullcontext():
            result = session.run_from_checkpoint(
                program,
                self._observe,
                self._freeze,
                tap=recording or noop,
                # A replay of what Alice saw does not need her key: it stays out of the file.
                note=noop if recording is None or self.bob is None else recording.persisted,
            )
            self.figures.finish(result.trained)
            share = model_share(inputs, self.bob, result, session.meeting.name)
            output = inputs.config.output.model
            save_model(share, inputs.config.path(output), self.log)
            if recording is not None:
                recording.conclude({"session": share.session})
        self.log("model written", file=output)
        self._log_end(result)
        return FinishedTraining.from_result(self._result(result), result, share.session)

    def _log_end(self, result: PartyResult) -> None:
        if result.quality is not None:
            quality = record_of(result.quality)
            figures = {name: value for name, value in quality.items() if value is not None}
            self.log("quality told" if self.bob else QUALITY_LEARNT, **figures)
        for note in () if self.bob is None else self.bob.ledger.notes():
            self.log("note", about=note)

    def _result(self, result: PartyResult) -> PartyRun:
        config, terms = self.inputs.config, self.inputs.terms
        trained, figures = result.trained, self.session.figures(self.figures)
        return PartyRun(
            identity=self.inputs.identity(),
            model=str(config.path(config.output.model)),
            parties=self.inputs.feature_parties(trained.group_shape.widths),
            stopped=None if trained.stopped is None else trained.stopped.value,
            metrics=PartyMetrics(curve=figures.curve or None),
            suspected_wraps=suspected_wraps(terms, trained),
            opened_change=trained.opened_change if isinstance(trained, BobTrained) else None,
            scores_beyond_range=(
                trained.scores_beyond_range if isinstance(trained, BobTrained) else None
            ),
            told_quality=result.quality,
            importance=self._importance(trained.weights),
            ledger=None if self.bob is None else self.bob.ledger.statement(),
            run=figures,
        )

    def _observe(self, event: Event) -> None:
        self.figures.observe(event)
        self.observe(event)
        if isinstance(event, Boundary) and self.bob is None:
            # Her program says where she stands, and not out of how many.
            self._observe(Progress(event.state.iteration, self.inputs.iterations))

    def _freeze(self, at: TrainingState) -> dict[str, Any]:
        """Content of a checkpoint; long arrays are on disk before it is."""
        return {
            "state": at.to_bytes(self.session.state.array_store).decode("ascii"),
            "ledger": None if self.bob is None else self.bob.ledger.to_json(),
            "recorded": None if self.recording is None else self.recording.position(),
            "figures": self.figures.to_json(),
        }

    def _importance(self, weights: FloatArray) -> tuple[ColumnImportance, ...] | None:
        """Alice's columns, the most important first; None where she has no weights of them.

        Bob's weights depend on labels, and how long they take to sort too: his file has them.
        """
        if self.bob is not None or not len(weights):
            return None
        table = self.inputs.tables.train
        sizes = (np.abs(weights) * table.deviations()).tolist()
        named = zip(table.columns, weights.tolist(), sizes, strict=True)
        columns = (ColumnImportance(name, weight, size) for name, weight, size in named)
        return tuple(sorted(columns, key=lambda column: -column.importance))


def _recording(
    inputs: TrainingInputs, record: Path, body: dict[str, Any] | None, entropy: KeyedEntropy
) -> TranscriptFile:
    """The transcript of this side, new or continued at the checkpoint."""
    # Loaded here: few trainings are recorded.
    from taciturn.engine.transcript import TranscriptFile

    if body is not None and body["recorded"] is None:
        raise StateError(
            "the session started without a transcript, and a partial one is of little use",
            setting="record",
            hint=Hint("leave {record} out, or start over on both sides with {fresh}", fresh=True),
        )
    held_out = inputs.tables.held_out
    header = {
        "kind": "party",
        "role": inputs.config.role,
        "peer": inputs.config.peer,
        "version": __version__,
        "started": datetime.now(UTC).isoformat(timespec="seconds"),
        "agreement": inputs.terms.agreement.model_dump(),
        "coins": {inputs.config.role: entropy.key.hex()},
        "features_digest": inputs.tables.train.digest(),
        "held_out_digest": "" if held_out is None else held_out.digest(),
    }
    at = None if body is None else body["recorded"]
    return TranscriptFile(record, header, at=at, keep=True)
