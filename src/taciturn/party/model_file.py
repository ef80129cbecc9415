"""Files of a trained model: this side's share, and its scores."""

from __future__ import annotations

import os
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from taciturn.arrays import FloatArray
from taciturn.data.label_table import LabelTable
from taciturn.errors import OutputError
from taciturn.model.archive import archive_model
from taciturn.model.scores_file import ScoredRows, StoredScores, scores_path
from taciturn.model.share import ModelShare
from taciturn.party.log import Log
from taciturn.party.tables import PartyTables
from taciturn.party.training_inputs import TrainingInputs
from taciturn.protocol.outcome import BobTrained, Trained, WeightShare
from taciturn.protocol.party import PartyResult
from taciturn.protocol.terms import Terms
from taciturn.results.serialise import record_of

if TYPE_CHECKING:
    from taciturn.party.bob_inputs import BobTrainingInputs


def model_share(
    side: TrainingInputs,
    bob: BobTrainingInputs | None,
    result: PartyResult,
    session: str,
    study: dict[str, Any] | None = None,
) -> ModelShare:
    """This side's share of the model, for its file.

    ``session`` is the name of the training, the same on both sides; several Alices have their own.
    ``study`` names the model of a study.
    """
    tables, terms, trained = side.tables, side.terms, result.trained
    several, names = trained.group_shape.widths, terms.agreement.parties or {}
    notes = () if bob is None else bob.ledger.notes()
    return ModelShare(
        role=side.config.role,
        columns=tables.train.columns,
        weights=trained.weights,
        preparation=tables.preparation,
        agreement=terms.agreement.model_dump(),
        session=trained.group_shape.session if several else session,
        rows=tables.train.rows,
        data_digest=tables.train.digest(),
        metrics={} if result.quality is None else {"told_quality": record_of(result.quality)},
        ledger={} if bob is None else record_of(bob.ledger.statement()),
        notes=(*tables.notes, *notes),
        share=_values(trained.share),
        bob_share=_values(trained.bob_share),
        bob_bits=0 if trained.bob_share is None else trained.bob_share.magnitude_bits,
        scales={} if trained.share is None else trained.share.scales.to_json(),
        magnitude_bits=0 if trained.share is None else trained.share.magnitude_bits,
        whitening=_whitening_of(trained.share) or _whitening_of(trained.bob_share),
        means=() if trained.means is None else tuple(trained.means.tolist()),
        noise_key=result.noise_key.hex(),
        response=_response(tables.labels),
        name=side.name,
        parties=dict(zip(names, several, strict=True)),
        study=study or {},
    )


def save_model(share: ModelShare, path: Path, log: Log) -> None:
    """Write the model; one of an earlier session is archived."""
    archived = archive_model(path, share.session) if os.path.exists(path) else None
    if archived is not None:
        log("earlier model kept", file=archived.name)
    share.save(path)


def keep_scores(
    model: Path,
    session: str,
    tables: PartyTables,
    train: FloatArray | None,
    held_out: FloatArray | None,
    log: Log,
) -> None:
    """Leaves Bob's scores beside his model, for its page; a full disk only costs the page."""
    sets = (
        # What is no number becomes one, as in the figures.
        None
        if scores is None or labels is None
        else ScoredRows.from_labels(np.nan_to_num(scores), labels)
        for scores, labels in ((train, tables.labels), (held_out, tables.held_out_labels))
    )
    stored, path = StoredScores(session, *sets), scores_path(model)
    if stored.train is None and stored.held_out is None:
        return
    try:
        stored.save(path)
    except OutputError as problem:
        log("warning", about=f"{problem.message}: the model will have no page")


def suspected_wraps(terms: Terms, trained: Trained) -> int | None:
    """Scores that may have wrapped since the first iteration; None where none can."""
    if trained.share is None or not isinstance(trained, BobTrained):
        return None
    if terms.shares_scores:
        # Nobody sees a score, so nobody can suspect one.
        return None
    return trained.suspected_wraps


def _response(labels: LabelTable | None) -> dict[str, float]:
    return {} if labels is None or labels.kind.has_classes else asdict(labels.response)


def _values(share: WeightShare | None) -> tuple[int, ...]:
    return () if share is None else tuple(share.values.tolist())


def _whitening_of(share: WeightShare | None) -> tuple[float, ...]:
    """The coordinates of a side's own weights, where they are shared and not its columns'."""
    return () if share is None or share.whitening is None else share.whitening.to_numbers()
