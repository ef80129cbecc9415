from taciturn_audit.attacks.base import Attack as Attack
from taciturn_audit.attacks.base import LabelGuess as LabelGuess
from taciturn_audit.attacks.base import ModelOnlyControl as ModelOnlyControl
from taciturn_audit.attacks.base import about_labels as about_labels
from taciturn_audit.attacks.bin_statistics import UNKNOWN as UNKNOWN
from taciturn_audit.attacks.bin_statistics import PublishedStatistics as PublishedStatistics
from taciturn_audit.attacks.bin_statistics import certain_labels as certain_labels
from taciturn_audit.attacks.bin_statistics import likeliest_labels as likeliest_labels
from taciturn_audit.attacks.bin_statistics import majority_labels as majority_labels
from taciturn_audit.attacks.bin_statistics import recover_counts as recover_counts
from taciturn_audit.attacks.bin_statistics import total_ones as total_ones
from taciturn_audit.attacks.gradient_statistics import (
    GradientDirectionAttack as GradientDirectionAttack,
)
from taciturn_audit.attacks.gradient_statistics import GradientNormAttack as GradientNormAttack
from taciturn_audit.attacks.gradient_statistics import best_cut as best_cut
from taciturn_audit.attacks.integer_program import Search as Search
from taciturn_audit.attacks.integer_program import exchangeable as exchangeable
from taciturn_audit.attacks.known_scores import KnownScoresAttack as KnownScoresAttack
from taciturn_audit.attacks.known_scores import affordable as affordable
from taciturn_audit.attacks.known_scores import recover_states as recover_states
from taciturn_audit.attacks.label_enumeration import CLUSTERS as CLUSTERS
from taciturn_audit.attacks.label_enumeration import (
    LabelEnumerationAttack as LabelEnumerationAttack,
)
from taciturn_audit.attacks.label_enumeration import clusters as clusters
from taciturn_audit.attacks.linear import ExactSolveAttack as ExactSolveAttack
from taciturn_audit.attacks.linear import LeastSquaresAttack as LeastSquaresAttack
from taciturn_audit.attacks.linear import gradients as gradients
from taciturn_audit.attacks.linear import residue_step as residue_step
from taciturn_audit.attacks.linear import solve as solve
from taciturn_audit.attacks.membership import MembershipGuess as MembershipGuess
from taciturn_audit.attacks.membership import guess_membership as guess_membership
from taciturn_audit.attacks.moments import MomentsAttack as MomentsAttack
from taciturn_audit.attacks.posterior import Law as Law
from taciturn_audit.attacks.posterior import gather as gather
from taciturn_audit.attacks.posterior import hear as hear
from taciturn_audit.attacks.recovery import System as System
from taciturn_audit.attacks.recovery import evenly as evenly
from taciturn_audit.attacks.recovery import independent_columns as independent_columns
from taciturn_audit.attacks.recovery import lone as lone
from taciturn_audit.attacks.recovery import scattered as scattered
from taciturn_audit.attacks.registry import ATTACKS as ATTACKS
from taciturn_audit.attacks.registry import attacks as attacks
from taciturn_audit.attacks.registry import rehearsal_attacks as rehearsal_attacks
from taciturn_audit.attacks.released_residues import SURE as SURE
from taciturn_audit.attacks.released_residues import LikelihoodAttack as LikelihoodAttack
from taciturn_audit.attacks.released_residues import SignAttack as SignAttack
from taciturn_audit.attacks.released_residues import log_ratios as log_ratios
from taciturn_audit.attacks.sparse import SparseAttack as SparseAttack
from taciturn_audit.attacks.sparse import recover_sparse as recover_sparse
from taciturn_audit.attacks.stacking import Block as Block
from taciturn_audit.attacks.stacking import StackingAttack as StackingAttack
from taciturn_audit.attacks.stacking import System as StackedSystem
from taciturn_audit.attacks.stacking import largest_gap as largest_gap

# Exported under another name than their module gives them.
__all__ = ["StackedSystem"]
