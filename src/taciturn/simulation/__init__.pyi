from taciturn.simulation.coins import Coins as Coins
from taciturn.simulation.outcome import Outcome as Outcome
from taciturn.simulation.record import RecordedRun as RecordedRun
from taciturn.simulation.run import programs as programs
from taciturn.simulation.run import simulate as simulate
from taciturn.simulation.source import arrange as arrange
from taciturn.simulation.source import load_raw as load_raw
