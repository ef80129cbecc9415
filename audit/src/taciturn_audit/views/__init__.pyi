from taciturn_audit.views.alice_view import AliceView as AliceView
from taciturn_audit.views.alice_view import Observations as Observations
from taciturn_audit.views.bob_view import BobView as BobView
from taciturn_audit.views.coalition import pooled as pooled
from taciturn_audit.views.recall import RecallKey as RecallKey
from taciturn_audit.views.recall import RecallScheme as RecallScheme
