"""Training: one model of all sides' columns, and the labels stay with Bob."""

from taciturn.lazy import lazy_names

__getattr__, __dir__ = lazy_names(__name__, __file__)
