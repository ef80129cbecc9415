from taciturn.model.card import card as model_card
from taciturn.model.card import coefficients as coefficients
from taciturn.model.coefficient_tests import Fit as Fit
from taciturn.model.coefficient_tests import bound_errors as bound_errors
from taciturn.model.coefficient_tests import exact_errors as exact_errors
from taciturn.model.history import archive_model as archive_model
from taciturn.model.history import listed_models as listed_models
from taciturn.model.onnx import own_to_onnx as own_to_onnx
from taciturn.model.onnx import whole_to_onnx as whole_to_onnx
from taciturn.model.report import judged_rows as judged_rows
from taciturn.model.scores_file import ScoredRows as ScoredRows
from taciturn.model.scores_file import StoredScores as StoredScores
from taciturn.model.scores_file import scores_path as scores_path
from taciturn.model.share import VERSION as VERSION
from taciturn.model.share import ModelShare as ModelShare
from taciturn.model.sklearn import to_sklearn as to_sklearn
from taciturn.model.whole import Part as Part
from taciturn.model.whole import WholeModel as WholeModel
from taciturn.model.whole import input_names as input_names
from taciturn.model.whole import own_part as own_part
from taciturn.model.whole import whole_model as whole_model

# Exported under another name than their module gives them.
__all__ = ["model_card"]
