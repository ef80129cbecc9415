from taciturn.serve.callers import Callers as Callers
from taciturn.serve.callers import new_token as new_token
from taciturn.serve.refusals import REASONS as REASONS
from taciturn.serve.server import MOST_OPEN as MOST_OPEN
from taciturn.serve.server import settings_of as settings_of
from taciturn.serve.server import tls_context as tls_context
from taciturn.serve.service import partner_of as partner_of
from taciturn.serve.service import service_of as service_of
