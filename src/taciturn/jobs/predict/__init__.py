"""Joint prediction of new rows; only Bob learns the scores."""

from taciturn.lazy import lazy_names

__getattr__, __dir__ = lazy_names(__name__, __file__)
