"""``AppliedModel``: one side's share of a model, ready to score rows."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from shlex import quote
from typing import cast

import numpy as np

from taciturn.arrays import FloatArray
from taciturn.crypto.registry import scheme
from taciturn.errors import (
    ConfigError,
    ExtensionError,
    FileError,
)
from taciturn.families.base import Family
from taciturn.families.binomial import sigmoid
from taciturn.model.share import ModelShare
from taciturn.numerics.metrics import log_odds_shift
from taciturn.numerics.threshold import Threshold
from taciturn.numerics.whitening import Whitening
from taciturn.party.config import PartyConfig
from taciturn.privacy.registry import mechanism_class
from taciturn.protocol.messages import Role
from taciturn.protocol.model_name import ModelName
from taciturn.protocol.outcome import WeightShare
from taciturn.protocol.scales import Scales
from taciturn.protocol.terms import Terms
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
        return self.terms.agreement.kind.has_classes

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
        return self.alice_share, self.bob_share if self.terms.shares_scores else None

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
