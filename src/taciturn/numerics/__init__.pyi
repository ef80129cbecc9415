from taciturn.numerics.bands import Bands as Bands
from taciturn.numerics.bands import stability as population_stability
from taciturn.numerics.calibration_tests import calibration_groups as calibration_groups
from taciturn.numerics.calibration_tests import calibration_line as calibration_line
from taciturn.numerics.calibration_tests import hosmer_lemeshow as hosmer_lemeshow
from taciturn.numerics.calibration_tests import spiegelhalter as spiegelhalter
from taciturn.numerics.convergence import MOST_LOSS as MOST_LOSS
from taciturn.numerics.convergence import SEEN_ONCE as SEEN_ONCE
from taciturn.numerics.convergence import assess_convergence as assess_convergence
from taciturn.numerics.convergence import tolerance as tolerance
from taciturn.numerics.descent import BoundedTable as BoundedTable
from taciturn.numerics.descent import DescentSolver as DescentSolver
from taciturn.numerics.descent import parties_with_columns as parties_with_columns
from taciturn.numerics.descent import row_bound as row_bound
from taciturn.numerics.fixedpoint import FixedPoint as FixedPoint
from taciturn.numerics.fixedpoint import magnitude_bits as magnitude_bits
from taciturn.numerics.information import covariance as covariance
from taciturn.numerics.information import errors_of as errors_of
from taciturn.numerics.information import information as information_matrix
from taciturn.numerics.information import row_information as row_information
from taciturn.numerics.information import wald as wald
from taciturn.numerics.intervals import auc_interval as auc_interval
from taciturn.numerics.intervals import clopper_pearson as clopper_pearson
from taciturn.numerics.intervals import t_interval as t_interval
from taciturn.numerics.intervals import wilson as wilson
from taciturn.numerics.likelihood import Likelihood as Likelihood
from taciturn.numerics.likelihood import RowLikelihood as RowLikelihood
from taciturn.numerics.likelihood import clip_scores as clip_scores
from taciturn.numerics.likelihood import corrected_likelihood as corrected_likelihood
from taciturn.numerics.likelihood import corrected_loss as corrected_loss
from taciturn.numerics.likelihood import corrected_residue as corrected_residue
from taciturn.numerics.likelihood import debiased_loss as debiased_loss
from taciturn.numerics.likelihood import debiased_residue as debiased_residue
from taciturn.numerics.likelihood import of_labels as of_labels
from taciturn.numerics.likelihood import weighted_likelihood as weighted_likelihood
from taciturn.numerics.logistic import Penalty as Penalty
from taciturn.numerics.logistic import gradient as gradient
from taciturn.numerics.logistic import log_loss as log_loss
from taciturn.numerics.logistic import residue as residue
from taciturn.numerics.logistic import row_products as products_by_row
from taciturn.numerics.logistic import row_transforms as row_transforms
from taciturn.numerics.logistic import sigmoid as sigmoid
from taciturn.numerics.logistic import weighted_residue as weighted_residue
from taciturn.numerics.metrics import AddedAuc as AddedAuc
from taciturn.numerics.metrics import CalibrationBin as CalibrationBin
from taciturn.numerics.metrics import Metrics as Metrics
from taciturn.numerics.metrics import accuracy as accuracy
from taciturn.numerics.metrics import added_auc as added_auc
from taciturn.numerics.metrics import auc as auc
from taciturn.numerics.metrics import balanced_accuracy as balanced_accuracy
from taciturn.numerics.metrics import brier as brier
from taciturn.numerics.metrics import calibration as calibration
from taciturn.numerics.metrics import evaluate as evaluate
from taciturn.numerics.metrics import ks as ks
from taciturn.numerics.metrics import log_odds_shift as log_odds_shift
from taciturn.numerics.metrics import pr_auc as pr_auc
from taciturn.numerics.periodic_sigmoid import PeriodicSigmoid as PeriodicSigmoid
from taciturn.numerics.periodic_sigmoid import SharedSigmoid as SharedSigmoid
from taciturn.numerics.periodic_sigmoid import half_range as half_range
from taciturn.numerics.scorecard import Scale as Scale
from taciturn.numerics.sgd import SCHEDULES as SCHEDULES
from taciturn.numerics.sgd import LearningRate as LearningRate
from taciturn.numerics.sgd import batch_count as batch_count
from taciturn.numerics.sgd import batches as cut_batches
from taciturn.numerics.sgd import train_centralised as train_centralised
from taciturn.numerics.shared_fraction import UNIT_BITS as UNIT_BITS
from taciturn.numerics.shared_fraction import Carried as Carried
from taciturn.numerics.shared_fraction import Momentum as Momentum
from taciturn.numerics.shared_fraction import SharedFraction as SharedFraction
from taciturn.numerics.shared_fraction import momentum as momentum
from taciturn.numerics.shared_range import RangeCount as RangeCount
from taciturn.numerics.sorted_scores import Costs as Costs
from taciturn.numerics.sorted_scores import SortedScores as SortedScores
from taciturn.numerics.sorted_scores import Threshold as Threshold
from taciturn.numerics.sorted_scores import cheapest as cheapest
from taciturn.numerics.sorted_scores import chosen as chosen
from taciturn.numerics.sorted_scores import cutoff as cutoff
from taciturn.numerics.sorted_scores import cutoffs as threshold_cutoffs
from taciturn.numerics.sorted_scores import even_odds as even_odds
from taciturn.numerics.sorted_scores import gains as gains_table
from taciturn.numerics.sorted_scores import ks_point as ks_point
from taciturn.numerics.sorted_scores import roc_points as roc_points
from taciturn.numerics.sorted_scores import threshold_at as threshold_at
from taciturn.numerics.subspace import ITERATIONS as ITERATIONS
from taciturn.numerics.subspace import NEWTON_STEPS as NEWTON_STEPS
from taciturn.numerics.subspace import OUTER_ITERATIONS as OUTER_ITERATIONS
from taciturn.numerics.subspace import SAFE_STEPS as SAFE_STEPS
from taciturn.numerics.subspace import SubspaceSolver as SubspaceSolver
from taciturn.numerics.symmetry import OpenedPasses as OpenedPasses
from taciturn.numerics.symmetry import Symmetry as Symmetry
from taciturn.numerics.whitening import MOST_COLUMNS as MOST_COLUMNS
from taciturn.numerics.whitening import Whitening as Whitening
from taciturn.numerics.whole_table import Fit as Fit
from taciturn.numerics.whole_table import fit_in_clear as fit_in_clear
from taciturn.numerics.whole_table import fit_on_schedule as fit_on_schedule
from taciturn.numerics.whole_table import optimum as optimum
from taciturn.numerics.whole_table import penalised_loss as penalised_loss

# Exported under another name than their module gives them.
__all__ = [
    "cut_batches",
    "gains_table",
    "information_matrix",
    "population_stability",
    "products_by_row",
    "threshold_cutoffs",
]
