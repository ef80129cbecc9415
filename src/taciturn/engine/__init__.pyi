from taciturn.engine.callbacks import SILENT as SILENT
from taciturn.engine.callbacks import Callbacks as Callbacks
from taciturn.engine.callbacks import Observer as Observer
from taciturn.engine.callbacks import ReportProgress as ReportProgress
from taciturn.engine.callbacks import noop as noop
from taciturn.engine.driver import Driver as Driver
from taciturn.engine.driver import Outlet as Outlet
from taciturn.engine.driver import Tap as Tap
from taciturn.engine.estimate import estimate_cost as estimate_cost
from taciturn.engine.exposure import OpenedScores as OpenedScores
from taciturn.engine.exposure import column_exposure as column_exposure
from taciturn.engine.exposure import disclosure_text as disclosure_of
from taciturn.engine.pair import StarTap as StarTap
from taciturn.engine.pair import run_pair as run_pair
from taciturn.engine.pair import run_star as run_star
from taciturn.engine.progress import ProgressEstimate as ProgressEstimate
from taciturn.engine.transcript import MAGIC as MAGIC
from taciturn.engine.transcript import MAX_HEADER as MAX_HEADER
from taciturn.engine.transcript import Header as Header
from taciturn.engine.transcript import Recorder as Recorder
from taciturn.engine.transcript import Transcript as Transcript
from taciturn.engine.transcript import TranscriptFile as TranscriptFile
from taciturn.engine.transcript import replay as replay_program

# Exported under another name than their module gives them.
__all__ = ["disclosure_of", "replay_program"]
