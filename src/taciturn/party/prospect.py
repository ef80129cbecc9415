"""What a party's file will train, before it meets anybody: rows, terms, price, scores.

The same for one training and for a study, whose figures are those of all its models together.
"""

from __future__ import annotations

from dataclasses import dataclass

from taciturn.engine.exposure import OpenedScores
from taciturn.party.config import PartyConfig
from taciturn.party.outlook import outlook
from taciturn.party.side import terms_of
from taciturn.party.tables import PartyTables, load_tables
from taciturn.protocol.terms import Terms
from taciturn.results.estimate import Estimate
from taciturn.results.outlook import Outlook


@dataclass(frozen=True, slots=True)
class Prospect:
    """What is about to be trained.

    For a study, the settings and terms are those of its first combination.
    """

    config: PartyConfig
    tables: PartyTables
    terms: Terms

    @classmethod
    def of(cls, config: PartyConfig) -> Prospect:
        """Reads this side's table."""
        if config.study is not None:
            # Loaded here: most files train one model.
            from taciturn.party.study_prospect import StudyProspect

            return StudyProspect.of_study(config, config.study)
        tables = load_tables(config)
        return cls(config, tables, terms_of(config, tables))

    @property
    def scores(self) -> OpenedScores:
        """The scores that are opened to Bob."""
        held_out = self.tables.held_out
        rows = 0 if held_out is None else held_out.rows
        return OpenedScores.of(self.terms, self.tables.train.rows, rows)

    def outlook(self) -> Outlook:
        """What it will cost and disclose.

        BudgetExceeded where the training would end with this error on its way.
        """
        return outlook(self.config, self.tables, self.terms)

    def of_all(self, single: Estimate) -> Estimate:
        """What everything takes, from what this one model takes."""
        return single
