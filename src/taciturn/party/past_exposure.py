"""Past sessions in which Alice's columns were exposed: what her consent store and model files hold.

**Guarantee.** Every session that was charged is listed, except those that are known
to have opened no training score.

**Assumes.** The files are those that were used: a deleted store or model is not listed.
"""

from __future__ import annotations

from contextlib import suppress
from pathlib import Path

from taciturn.errors import (
    ConfigError,
    FileError,
)
from taciturn.model.archive import listed_models
from taciturn.model.share import ModelShare
from taciturn.party.applied_model import model_terms
from taciturn.party.config import PartyConfig
from taciturn.party.consent.score_budget import ScoreBudget
from taciturn.privacy.registry import mechanism_class
from taciturn.protocol.opened_scores import OpenedScores
from taciturn.results.cost_preview import ExposedModel, PastExposure
from taciturn.results.model import ListedModel


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
        return "alice" in mechanism_class(mechanism).unprotected
    except ConfigError:
        return True


def _opened(path: Path) -> int | None:
    with suppress(FileError, ConfigError):
        share = ModelShare.load(path)
        return OpenedScores.from_terms(model_terms(share, path), share.rows).per_row
    return None
