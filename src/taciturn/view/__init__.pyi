from taciturn.view.alice_view import AliceView as AliceView
from taciturn.view.alice_view import Observations as Observations
from taciturn.view.bob_view import BobView as BobView
from taciturn.view.coalition import pooled as pooled
from taciturn.view.recall import RecallKey as RecallKey
from taciturn.view.recall import RecallScheme as RecallScheme
