"""Guesses of the labels from Alice's view alone."""

from taciturn.lazy import lazy_names

__getattr__, __dir__ = lazy_names(__name__, __file__)
