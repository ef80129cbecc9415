from taciturn_audit.column_attacks.base import Ambiguity as Ambiguity
from taciturn_audit.column_attacks.base import ColumnAttack as ColumnAttack
from taciturn_audit.column_attacks.base import ColumnEstimate as ColumnEstimate
from taciturn_audit.column_attacks.base import KnownRows as KnownRows
from taciturn_audit.column_attacks.discrete import DiscreteAttack as DiscreteAttack
from taciturn_audit.column_attacks.integer_columns import (
    IntegerColumnsAttack as IntegerColumnsAttack,
)
from taciturn_audit.column_attacks.lattice import LatticeAttack as LatticeAttack
from taciturn_audit.column_attacks.lattice import hidden_table as hidden_table
from taciturn_audit.column_attacks.motion import follow as follow
from taciturn_audit.column_attacks.opened_scores import (
    SeveralModelsAttack as SeveralModelsAttack,
)
from taciturn_audit.column_attacks.opened_scores import alice_part as alice_part
from taciturn_audit.column_attacks.opened_scores import signal_components as signal_components
from taciturn_audit.column_attacks.registry import COLUMN_ATTACKS as COLUMN_ATTACKS
from taciturn_audit.column_attacks.regression import PredictionAttack as PredictionAttack
from taciturn_audit.column_attacks.scores import Batches as Batches
from taciturn_audit.column_attacks.scores import Visits as Visits
