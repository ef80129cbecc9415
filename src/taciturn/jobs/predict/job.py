"""``PredictJob``: one side of a joint prediction of new rows.

::

    Alice                                            Bob
      an alignment of the new rows' ids         <->  (its terms name the model)
      Hello (which model, which rows)           <->  Hello
      the introductions of several Alices
      the prediction, from weights or from shares    scores of the common rows

Where both name a list of common rows, the first part is left out. Only Bob learns scores. Entropy
and keys are drawn anew each time and no state is kept: after an interruption both sides run the
command again. Alice's budget is charged before her scores are sent.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from taciturn.crypto.group import library
from taciturn.data.ids import Normalisation
from taciturn.errors import ConfigError
from taciturn.jobs.base import Job
from taciturn.jobs.predict.declaration import LISTED_PREDICTION, PREDICTION
from taciturn.jobs.predict.side import Answer, PredictionSide
from taciturn.numerics.threshold import threshold_at
from taciturn.party.agreement_check import require_begun_in_time
from taciturn.party.aligned_rows import AlignedRows
from taciturn.party.applied_model import AppliedModel
from taciturn.party.config import PartyConfig
from taciturn.party.consent.score_budget import ScoreBudget
from taciturn.party.credentials import identity_of
from taciturn.party.new_rows import new_rows


@dataclass(frozen=True, slots=True)
class PredictJob(Job[Answer]):
    """Score new rows.

    ``model`` is this side's file, ``rows`` a file or a SELECT statement for its database. ``only``
    scores these ids alone, all where empty; ``common`` is a list of the rows that both sides have,
    None to find them with the peer; None for ``normalisation`` or ``threshold`` takes that of the
    settings or the model.
    """

    model: Path
    rows: Path | str
    only: tuple[str, ...] = ()
    normalisation: Normalisation | None = None
    common: Path | None = None
    threshold: float | None = None

    @property
    def purpose(self) -> int:
        """A prediction that aligns first, or one of listed rows."""
        return PREDICTION if self.common is None else LISTED_PREDICTION

    def prepare(self, config: PartyConfig) -> PredictionSide:
        """Read the model and the rows."""
        require_begun_in_time(config)
        used = AppliedModel.read(config, self.model)
        column, chosen = config.data.id, self.normalisation or config.normalisation
        listed = None
        if self.common is None:
            library()  # now, rather than when the peer waits
        else:
            listed = AlignedRows.read(self.common, column, "the command")
        exposure = config.data.exposure if used.role == "bob" else None
        source = config.table(self.rows)
        rows = new_rows(source, column, used.model, self.only, chosen, listed, exposure)
        known = (used.model, rows, used.terms, chosen)
        # Each side loads its own programs only.
        if used.role == "alice":
            from taciturn.jobs.predict.alice import FeatureSide

            columns = len(used.model.columns)
            budget = ScoreBudget.from_terms(config, used.terms, columns)
            return FeatureSide(*known, identity=identity_of(config), budget=budget)
        from taciturn.jobs.predict.bob import LabelSide

        if self.threshold is not None and not used.has_classes:
            raise ConfigError(
                f"a threshold parts two classes, and {used.model.family.name} has none",
                setting="threshold",
                hint="leave it out",
            )
        if self.threshold is None:
            return LabelSide(*known, threshold=used.threshold(self.model))
        return LabelSide(*known, threshold=threshold_at(self.threshold, used.shift))
