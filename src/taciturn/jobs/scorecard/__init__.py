"""The model report and scorecard: figures, coefficients and points, as far as a side may see."""

from taciturn.lazy import lazy_names

__getattr__, __dir__ = lazy_names(__name__, __file__)
