from taciturn.dashboard.address import HOST as HOST
from taciturn.dashboard.address import Address as Address
from taciturn.dashboard.address import new_token as new_token
from taciturn.dashboard.board import MOST_LINES as MOST_LINES
from taciturn.dashboard.board import Board as Board
from taciturn.dashboard.board import BobBoard as BobBoard
from taciturn.dashboard.open import open_server as open_server
from taciturn.dashboard.page import page as dashboard_page
from taciturn.dashboard.server import EVENT_SECONDS as EVENT_SECONDS
from taciturn.dashboard.server import Server as Server

# Exported under another name than their module gives them.
__all__ = ["dashboard_page"]
