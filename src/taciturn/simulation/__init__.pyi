from taciturn.simulation.coins import Coins as Coins
from taciturn.simulation.source import arrange as arrange
from taciturn.simulation.source import load_raw as load_raw
