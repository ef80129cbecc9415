from taciturn.cli.app import COMMANDS as COMMANDS
from taciturn.cli.app import app_of as app_of
from taciturn.cli.app import whole_app as whole_app
from taciturn.cli.console import ALIVE as ALIVE
from taciturn.cli.console import BEAT_SECONDS as BEAT_SECONDS
from taciturn.cli.console import Watchdog as Watchdog
from taciturn.cli.console import console as make_console
from taciturn.cli.dashboard import watched_bar as watched_bar
from taciturn.cli.dashboard import watched_side as watched_side
from taciturn.cli.options import SHARED as SHARED
from taciturn.cli.options import merged as merged

# Exported under another name than their module gives them.
__all__ = ["make_console"]
