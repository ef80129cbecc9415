"""Settings: those of a run, and those that the parties agree on."""

from taciturn.lazy import lazy_names

__getattr__, __dir__ = lazy_names(__name__, __file__)
