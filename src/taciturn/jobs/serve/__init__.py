"""Scores on demand; only Bob learns them, and gives them to callers over HTTP."""

from taciturn.lazy import lazy_names

__getattr__, __dir__ = lazy_names(__name__, __file__)
