from taciturn.families.base import Family as Family
from taciturn.families.base import Response as Response
from taciturn.families.base import RowLikelihood as RowLikelihood
from taciturn.families.registry import BINOMIAL as BINOMIAL
from taciturn.families.registry import FAMILIES as FAMILIES
from taciturn.families.registry import family as family
