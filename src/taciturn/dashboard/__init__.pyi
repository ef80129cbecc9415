from taciturn.dashboard.dashboard_state import MOST_LINES as MOST_LINES
from taciturn.dashboard.dashboard_state import BobDashboardState as BobDashboardState
from taciturn.dashboard.dashboard_state import DashboardState as DashboardState
from taciturn.dashboard.server import EVENT_SECONDS as EVENT_SECONDS
from taciturn.dashboard.server import HOST as HOST
from taciturn.dashboard.server import Address as Address
from taciturn.dashboard.server import Server as Server
from taciturn.dashboard.server import new_token as new_token
from taciturn.dashboard.server import open_server as open_server
from taciturn.dashboard.server import page as dashboard_page

# Exported under another name than their module gives them.
__all__ = ["dashboard_page"]
