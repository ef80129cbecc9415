"""Studies: one model for each combination of settings, trained in one session."""

from taciturn.lazy import lazy_names

__getattr__, __dir__ = lazy_names(__name__, __file__)
