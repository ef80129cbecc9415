"""Scores on demand between two machines: what each side does beside the programs."""

from taciturn.lazy import lazy_names

__getattr__, __dir__ = lazy_names(__name__, __file__)
