"""What a study will train, before its side meets anybody."""

from __future__ import annotations

from dataclasses import dataclass

from taciturn.engine.exposure import OpenedScores
from taciturn.party.config import PartyConfig
from taciturn.party.prospect import Prospect
from taciturn.party.study_plan import StudyPlan
from taciturn.party.tables import load_tables
from taciturn.results.estimate import Estimate
from taciturn.results.outlook import Outlook
from taciturn.settings.study import Study


@dataclass(frozen=True, slots=True)
class StudyProspect(Prospect):
    """All models of a study that are about to be trained; its terms are the first one's."""

    plan: StudyPlan

    @classmethod
    def of_study(cls, config: PartyConfig, study: Study) -> StudyProspect:
        """Reads this side's table, and plans the trainings."""
        plan = StudyPlan.of(config, study, load_tables(config.first))
        return cls(config.first, plan.tables, plan.first.terms, plan)

    @property
    def scores(self) -> OpenedScores:
        """The scores that all trainings open to Bob."""
        return self.plan.scores

    def outlook(self) -> Outlook:
        """What all trainings will cost, and tell."""
        return self.plan.outlook()

    def of_all(self, single: Estimate) -> Estimate:
        """What all trainings take."""
        return self.plan.of_all(single)
