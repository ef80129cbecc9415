from taciturn.watch.address import HOST as HOST
from taciturn.watch.address import Address as Address
from taciturn.watch.address import new_token as new_token
from taciturn.watch.board import MOST_LINES as MOST_LINES
from taciturn.watch.board import Board as Board
from taciturn.watch.board import BobBoard as BobBoard
from taciturn.watch.open import open_server as open_server
from taciturn.watch.page import page as dashboard_page
from taciturn.watch.server import EVENT_SECONDS as EVENT_SECONDS
from taciturn.watch.server import Server as Server

# Exported under another name than their module gives them.
__all__ = ["dashboard_page"]
