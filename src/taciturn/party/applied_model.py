"""``AppliedModel``: one side's share of a model, ready to score rows.

New rows for a trained model: read from a file, prepared as the model says.

Nothing is fitted: a missing value, an unknown category or a clip is treated as the stored
preparation does it. Which of the rows both sides have is found out with the peer, or taken from a
list that an alignment wrote.

Past sessions in which Alice's columns were exposed: what her consent store and model files hold.

**Guarantee.** Every session that was charged is listed, except those that are known
to have opened no training score.

**Assumes.** The files are those that were used: a deleted store or model is not listed.
"""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from shlex import quote
from typing import cast

import numpy as np
import polars as pl

from taciturn.arrays import FloatArray, IndexArray
from taciturn.crypto.registry import scheme
from taciturn.data.frames import require_column
from taciturn.data.ids import AS_THEY_ARE, Normalisation, RowIds
from taciturn.data.prepare import prepared_table
from taciturn.data.rules import CategoricalRule, Rule
from taciturn.data.source import TableSource
from taciturn.data.tables import FeatureTable, checked_factor
from taciturn.engine.exposure import OpenedScores
from taciturn.errors import (
    ColumnError,
    ConfigError,
    DataError,
    ExtensionError,
    FileError,
    MissingValueError,
    nearest,
)
from taciturn.families.base import Family
from taciturn.families.registry import BINOMIAL
from taciturn.model.share import ModelShare, listed_models
from taciturn.numerics.logistic import sigmoid
from taciturn.numerics.metrics import log_odds_shift
from taciturn.numerics.sorted_scores import Threshold
from taciturn.numerics.whitening import Whitening
from taciturn.party.config import PartyConfig
from taciturn.party.consent.budget import ScoreBudget
from taciturn.party.tables import AlignedRows
from taciturn.privacy.registry import mechanism_class
from taciturn.protocol.messages import Role
from taciturn.protocol.outcome import WeightShare
from taciturn.protocol.prediction import ModelName
from taciturn.protocol.scales import Scales
from taciturn.protocol.terms import Terms
from taciturn.results.cost_preview import ExposedModel, PastExposure
from taciturn.results.model import ListedModel
from taciturn.results.parties import MeanRow, ScoredRow
from taciturn.settings.agreement import Agreement


@dataclass(frozen=True, slots=True)
class AppliedModel:
    """A side's share of a model, and what was agreed on when it was trained."""

    model: ModelShare
    terms: Terms

    @classmethod
    def read(cls, config: PartyConfig, path: Path) -> AppliedModel:
        """Reads a model's file; FileError where it is the other side's, or not in use."""
        share = ModelShare.load(path)
        if share.role != config.role:
            raise FileError(
                f"this is {share.role}'s share of a model, and the settings are {config.role}'s",
                where=str(path),
                hint=f"name the file that {config.role}'s side of the training wrote",
            )
        require_used(share, str(path), config.where)
        return cls(share, model_terms(share, path))

    @property
    def role(self) -> Role:
        """Whose share it is."""
        return cast(Role, self.model.role)

    @property
    def name(self) -> ModelName:
        """Which training it comes from."""
        model = self.model
        return ModelName(model.session, model.agreement_digest, model.sealed)

    @property
    def parties(self) -> dict[str, str]:
        """Several Alices, with the fingerprints of their keys."""
        return self.terms.agreement.parties or {}

    @property
    def widths(self) -> tuple[int, ...]:
        """Number of columns of each Alice, at Bob."""
        return tuple(self.model.parties.values()) or (len(self.model.share),)

    @property
    def shift(self) -> float:
        """By how much class weights have moved the scores."""
        return log_odds_shift(self.terms.agreement.class_weight)

    @property
    def has_classes(self) -> bool:
        """Whether its labels are of two classes, so that there are probabilities."""
        return self.terms.agreement.family == BINOMIAL

    @property
    def meaning(self) -> str:
        """What a probability or a mean is, after a training by this agreement."""
        return self.meaning_with(exposure=False)

    def meaning_with(self, exposure: bool) -> str:
        """The same, where rows have an ``exposure``."""
        if self.has_classes:
            return probability_meaning(self.terms.agreement)
        return mean_meaning(self.model.family, exposure)

    def threshold(self, path: Path) -> Threshold:
        """Threshold that the training chose; even odds in files without one."""
        try:
            return self.model.threshold
        except ConfigError as problem:
            raise FileError(problem.message, where=str(path)) from None

    @property
    def noise_key(self) -> bytes:
        """Alice's key of the noise on her scores; none at Bob."""
        return bytes.fromhex(self.model.noise_key)

    @property
    def alice_share(self) -> WeightShare:
        """This side's share of Alice's weights."""
        values, bits = np.array(self.model.share, dtype=np.int64), self.model.magnitude_bits
        return WeightShare(values, self.scales, self._whitening("alice"), bits)

    @property
    def bob_share(self) -> WeightShare:
        """This side's share of Bob's weights."""
        values, bits = np.array(self.model.bob_share, dtype=np.int64), self.model.bob_bits
        return WeightShare(values, self.scales, self._whitening("bob"), bits)

    @property
    def shares(self) -> tuple[WeightShare | None, WeightShare | None]:
        """This side's shares of Alice's and of Bob's weights; None for those held in clear."""
        if not self.model.sealed:
            return None, None
        return self.alice_share, self.bob_share if self.terms.mechanism.shares_scores else None

    @property
    def scales(self) -> Scales:
        """Scales of the shares."""
        return Scales.from_json(self.model.scales)

    def _whitening(self, owner: Role) -> Whitening | None:
        """The coordinates of a side's weights, where this is that side and has any."""
        return self.model.coordinates if self.model.role == owner else None


def probability_meaning(agreed: Agreement) -> str:
    """Meaning of a probability after a training by this agreement."""
    meaning, weights = mechanism_class(agreed.mechanism).meaning, agreed.class_weight
    if weights is None:
        return meaning
    if not all(weights):
        return f"{meaning}, if both classes had counted: one did not, so it is none"
    return f"{meaning}; it is corrected for the class weights"


def mean_meaning(family: Family, exposure: bool) -> str:
    """What a mean is that of, for other families than ``binomial``."""
    label = f"that of the label ({family.name})"
    if not family.takes_exposure:
        return f"{label}, for rows like the training rows"
    unit = "the row's exposure" if exposure else "one unit of exposure"
    return f"{label} for {unit}, for rows like the training rows"


def scored_rows(
    ids: Sequence[str],
    scores: FloatArray,
    used: AppliedModel,
    threshold: Threshold,
    exposure: FloatArray | None = None,
) -> tuple[ScoredRow | MeanRow, ...]:
    """Each row with its log-odds, its probability and its class; or its predictor and mean."""
    if not used.has_classes:
        predictor = used.model.coordinates_of_scores.predictor(scores)
        if exposure is not None:
            predictor = predictor + np.log(exposure)
        means = used.model.family.mean(predictor)
        return tuple(map(MeanRow, ids, predictor.tolist(), means.tolist()))
    # Class weights have moved the scores, and a probability is among the rows as they come.
    probabilities = sigmoid(scores - used.shift).tolist()
    return tuple(
        ScoredRow(name, score, probability, int(score > threshold.score))
        for name, score, probability in zip(ids, scores.tolist(), probabilities, strict=True)
    )


def require_used(share: ModelShare, where: str, settings: str = "") -> None:
    """Refuses a model of a study that was not taken into use; ``settings`` is the side's file."""
    if not share.study or share.study.get("used"):
        return
    number, models = share.study.get("model"), share.study.get("models")
    raise ConfigError(
        f"this is model {number} of {models} of a study: to use it tells the other side which one "
        "was chosen",
        where=where,
        hint=f"taciturn model use {quote(settings or f'{share.role}.toml')} {number} takes it into "
        "use, on the other side the same with its file, and counts what that tells",
    )


def model_terms(share: ModelShare, path: Path) -> Terms:
    """The agreement that a model was trained by."""
    try:
        agreed = Agreement.from_mapping(share.agreement)
        # What a probability means is the mechanism's to say; said now, not after the last row.
        mechanism_class(agreed.mechanism)
        return Terms(agreed, scheme(agreed.scheme))
    except ExtensionError:
        raise
    except ConfigError as problem:
        raise FileError(
            f"the model's agreement is not one that this program knows: {problem.message}",
            where=str(path),
            hint="read it with the version of taciturn that wrote it",
        ) from None


_MOST_NAMED = 8


@dataclass(frozen=True, slots=True)
class NewRows:
    """Rows to score, in the order of the file.

    ``own_ids`` are as the file spells them; ``table`` those by which both sides know the
    rows. ``listed`` says which of them both sides have, in the order of the common ids; None where
    that is still to be found out.
    """

    own_ids: RowIds
    table: FeatureTable
    where: str
    listed: IndexArray | None = None
    exposure: FloatArray | None = field(default=None, repr=False)


def new_rows(
    source: TableSource,
    id_column: str,
    model: ModelShare,
    only: Sequence[str] = (),
    normalisation: Normalisation = AS_THEY_ARE,
    common: AlignedRows | None = None,
    exposure: str | None = None,
) -> NewRows:
    """Reads and prepares rows for a model, by the model's own preparation.

    ``only`` takes these ids alone, all where empty. ``common`` are the rows that both sides have,
    where that is known; their common ids are used. ``exposure`` is a column that the rows may have.
    """
    texts = {rule.column for rule in model.preparation.rules if is_text(rule)}
    # As text, as a whole column with a word in it would be: a level "1" of a few rows is no number.
    frame = source.frame(text=[id_column, *sorted(texts)])
    try:
        _require_columns(frame.columns, id_column, model)
        # A list names rows as the table spells them.
        compared = normalisation if common is None else AS_THEY_ARE
        distinct = source.distinct(frame, id_column, compared)
        frame, ids, names = distinct.taken_from(frame), distinct.own_ids, distinct.common
        if only:
            chosen = _chosen(ids, only, normalisation)
            frame, ids, names = frame[chosen], ids.take(chosen), names.take(chosen)
        known = _exposure(frame, ids, exposure)
        if common is None:
            return NewRows(ids, _prepared(frame, names, model), source.where, exposure=known)
        return _listed(frame, ids, model, common, source.where, known)
    except MissingValueError as problem:
        raise MissingValueError(
            problem.message,
            where=_place(source.where, problem),
            hint="the model's preparation fills no gaps: complete the rows, or leave them out",
        ) from None
    except DataError as problem:
        raise problem.at(_place(source.where, problem)) from None


def _exposure(frame: pl.DataFrame, ids: RowIds, column: str | None) -> FloatArray | None:
    """The rows' exposures, checked as in a training; None where the rows have no such column."""
    if column is None or column not in frame.columns:
        return None
    return checked_factor(frame[column], ids, "exposure")


def _place(where: str, problem: DataError) -> str:
    return f"{where}, {problem.where}" if problem.where else where


def is_text(rule: Rule) -> bool:
    """Whether a rule's column is read as text, whatever it looks like."""
    return isinstance(rule, CategoricalRule) or rule.reading.is_text


def _listed(
    frame: pl.DataFrame,
    ids: RowIds,
    model: ModelShare,
    common: AlignedRows,
    where: str,
    exposure: FloatArray | None,
) -> NewRows:
    places = common.rows_of(ids)
    in_file = np.argsort(places)
    names, places = common.common.take(in_file), places[in_file]
    table = _prepared(frame[places], names, model)
    # By id on both sides: lists may be in any order.
    order = names.series.arg_sort().to_numpy().astype(np.int64)
    taken = None if exposure is None else exposure[places]
    return NewRows(ids.take(places), table, where, order, taken)


def _prepared(frame: pl.DataFrame, ids: RowIds, model: ModelShare) -> FeatureTable:
    return prepared_table(model.preparation, frame, ids, intercept=model.intercept)


def _require_columns(columns: list[str], id_column: str, model: ModelShare) -> None:
    require_column(columns, id_column, "id")
    present = {*columns}
    # A date and its parts come from one column.
    wanted = dict.fromkeys(rule.column for rule in model.preparation.rules)
    lacking = [column for column in wanted if column not in present]
    if lacking:
        named = ", ".join(repr(column) for column in lacking[:_MOST_NAMED])
        more = f" and {len(lacking) - _MOST_NAMED} more" if len(lacking) > _MOST_NAMED else ""
        raise ColumnError(
            f"the rows lack {len(lacking)} of the {len(wanted)} columns that the "
            f"model was trained on: {named}{more}",
            hint=nearest(lacking[0], [column for column in columns if column != id_column]),
        )


def _chosen(ids: RowIds, only: Sequence[str], normalisation: Normalisation) -> IndexArray:
    """Positions of the named rows; names are normalised as ids are."""
    wanted = RowIds.from_values([*dict.fromkeys(map(normalisation.one, only))])
    return np.sort(normalisation.apply(ids).rows_of(wanted, hint="name an id of the table"))


def past_exposure(config: PartyConfig) -> PastExposure | None:
    """Alice's sessions that opened scores of training rows; None at Bob."""
    if config.role == "bob":
        return None
    models: tuple[ListedModel, ...] = ()
    with suppress(FileError):
        models = listed_models(config.path(config.output.model)).models
    return PastExposure(
        exposed_sessions=ScoreBudget.from_config(config).exposed_sessions(),
        exposed_models=tuple(
            ExposedModel(
                file=model.file,
                written=model.written,
                session=model.session or "",
                mechanism=model.mechanism,
                scores_per_row=_opened(Path(model.file)),
            )
            for model in models
            if model.mechanism and _opens(model.mechanism)
        ),
    )


def _opens(mechanism: str) -> bool:
    """Whether a mechanism opens training scores; one that is not known here may have."""
    try:
        return not mechanism_class(mechanism).shares_scores
    except ConfigError:
        return True


def _opened(path: Path) -> int | None:
    with suppress(FileError, ConfigError):
        share = ModelShare.load(path)
        return OpenedScores.from_terms(model_terms(share, path), share.rows).per_row
    return None
