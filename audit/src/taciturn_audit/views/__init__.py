"""Views of one side: exactly what Alice or Bob has seen."""

from taciturn.lazy import lazy_names

__getattr__, __dir__ = lazy_names(__name__, __file__)
