from taciturn.jobs.scorecard.build import ReportRequest as ReportRequest
from taciturn.jobs.scorecard.build import judged_rows as judged_rows
from taciturn.jobs.scorecard.card import Fit as Fit
from taciturn.jobs.scorecard.card import bound_errors as bound_errors
from taciturn.jobs.scorecard.card import card as model_card
from taciturn.jobs.scorecard.card import exact_errors as exact_errors
from taciturn.jobs.scorecard.card import named_coefficients as named_coefficients
from taciturn.jobs.scorecard.page import model_page as render_model_page
from taciturn.jobs.scorecard.party import party_report as party_report
from taciturn.jobs.scorecard.result import CoefficientTest as CoefficientTest
from taciturn.jobs.scorecard.result import ColumnEffect as ColumnEffect
from taciturn.jobs.scorecard.result import ComparedScores as ComparedScores
from taciturn.jobs.scorecard.result import EffectLevel as EffectLevel
from taciturn.jobs.scorecard.result import ModelReport as ModelReport
from taciturn.jobs.scorecard.result import ScoreScale as ScoreScale

# Exported under another name than their module gives them.
__all__ = ["model_card", "render_model_page"]
